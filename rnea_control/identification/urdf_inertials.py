"""Writes inertias into a URDF, and leaves every other byte as it is.

Only the numbers in `<inertial>` change, so that comments, order and white space survive, in any
encoding, and a diff of the two files shows the numbers alone. XML libraries would write attributes,
entities and line ends anew; of them only the places of the tags are taken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from xml.parsers import expat

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError, listed
from rnea_control.model.rigid_body import link_inertia_of
from rnea_control.model.robot_description import description_from_urdf

_SYMMETRY = 1e-9  # relative
# An inertia that is this near to the one in the file differs by rounding, relative.
_SAME = 1e-14
_TAG = re.compile(r"<([^\s/>]+:)?([^\s/>]+)((?:[^\"'>]|\"[^\"]*\"|'[^']*')*?)(/?)>", re.ASCII)
_ATTRIBUTE = re.compile(r"([^\s=]+)\s*=\s*([\"'])(.*?)\2", re.DOTALL | re.ASCII)

# What stands in place of text[start:end].
Edit = tuple[int, int, str]
# The start tags of a link: "link", and those of its inertial, by their names.
Tags = dict[str, re.Match[str]]


def with_inertials(urdf: bytes, inertias: Mapping[str, FloatArray], source: str) -> bytes:
    """The URDF with other inertias for some of its links.

    A link without `<inertial>` gets one, on a line of its own; a link that has this inertia already
    stays as it is. `RobotModel` reads the same pseudo-inertias again, to rounding.

    Args:
        urdf: the bytes of the file.
        inertias: pseudo-inertia in the link's frame, shape (4, 4), by the link's name.
        source: where the URDF comes from, for error messages.

    Raises:
        RobotModelError: it is no URDF, or a link has more than one `<inertial>`.
        IdentificationError: a link that is not there, an inertia that is no pseudo-inertia, or a
            file in which elements have no place of their own.
    """
    present = description_from_urdf(urdf, source).inertias
    codec = _codec_of(urdf)
    text = urdf.decode(codec, "surrogatepass")
    links = _links(text)
    if len(links) != len(present):
        raise IdentificationError(
            f"{source}: inertias cannot be written into this file: its links are not all found in "
            "it. Write the text of XML entities in their place, and save it as UTF-8"
        )
    # Both are in the order of the file: names need not be decoded.
    tags_of = dict(zip(present, links, strict=True))
    edits: list[Edit] = []
    for link, inertia in inertias.items():
        matrix = np.asarray(inertia, dtype=np.float64)
        if link not in present:
            raise IdentificationError(
                f"{source}: there is no link {link!r} to give an inertia to; the robot has "
                f"{listed(present)}"
            )
        numbers = _numbers(link, matrix)
        if np.abs(matrix - present[link]).max() <= _SAME * np.abs(matrix).max():
            continue
        tags = tags_of[link]
        if not {"mass", "inertia"} <= tags.keys() and ("inertial" in tags or present[link].any()):
            raise IdentificationError(
                f"{source}: link {link!r} is written as an XML entity; write its text in its place"
            )
        edits += _edits(text, tags, numbers)
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text.encode(codec, "surrogatepass")


def _codec_of(urdf: bytes) -> str:
    """A codec that reads any bytes, and in which "<" and quotes are what they are."""
    if urdf.startswith(b"\xff\xfe") or urdf[1:2] == b"\x00":
        return "utf-16-le"
    if urdf.startswith(b"\xfe\xff") or urdf[:1] == b"\x00":
        return "utf-16-be"
    return "latin-1"


def _links(text: str) -> list[Tags]:
    """The tags of each link and of what its inertial holds, in the order of the text; as far as it
    can be read."""
    links: list[Tags] = []
    path: list[str] = []
    begin = max(text.find("<"), 0)
    parser = expat.ParserCreate("utf-8")

    def start(name: str, _: object) -> None:
        # Elements are known with the prefix of the root, as for RobotModel, and without any.
        root = path[0] if path else name
        path.append(name.removeprefix(root[: root.find(":") + 1]) if path else name)
        tag = _TAG.match(text, begin + parser.CurrentByteIndex)
        if tag is None:  # in the text of an entity
            return
        if path[1:] == ["link"]:
            links.append({})
        if path[1:] == ["link"] or (path[1:3] == ["link", "inertial"] and len(path) < 5):
            links[-1][path[-1]] = tag

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: path.pop()
    with suppress(expat.ExpatError):
        # A byte for each character, so that places are the same; what names say does not matter.
        parser.Parse(re.sub("[^\x01-\x7f]", "x", text[begin:]), True)
    return links


def _numbers(link: str, matrix: FloatArray) -> dict[str, dict[str, list[float]]]:
    """The numbers of an inertial, by element and attribute.

    Raises:
        IdentificationError: not a pseudo-inertia that a URDF can say.
    """
    wanted = ""
    if matrix.shape != (4, 4) or not np.isfinite(matrix).all():
        wanted = "a finite pseudo-inertia of shape (4, 4)"
    elif np.abs(matrix - matrix.T).max() > _SYMMETRY * np.abs(matrix).max():
        wanted = "symmetric"
    if wanted:
        raise IdentificationError(
            f"the inertia of link {link!r} is {matrix.tolist()}; it must be {wanted}"
        )
    inertia = link_inertia_of(link, matrix)
    if inertia.mass < 0.0 or (inertia.mass == 0.0 and matrix[:3, 3].any()):
        raise IdentificationError(
            f"the inertia of link {link!r} has a mass of {inertia.mass:g} kg and mass times center "
            f"of mass of {matrix[:3, 3].tolist()} kg m; a URDF can say that only of a mass above 0"
        )
    xx, xy, xz, _, yy, yz, _, _, zz = (0.0 + inertia.inertia).ravel().tolist()
    return {
        "origin": {"xyz": (0.0 + inertia.center_of_mass).tolist(), "rpy": [0.0, 0.0, 0.0]},
        "mass": {"value": [inertia.mass]},
        "inertia": {"ixx": [xx], "ixy": [xy], "ixz": [xz], "iyy": [yy], "iyz": [yz], "izz": [zz]},
    }


def _edits(text: str, tags: Tags, numbers: dict[str, dict[str, list[float]]]) -> list[Edit]:
    """New numbers in an inertial, but where they stay equal; and what is missing of it at the
    beginning of what it belongs to, on a line of its own if the next thing has one."""
    edits: list[Edit] = []
    missing = ""
    into = tags.get("inertial", tags["link"])
    prefix = into[1] or ""
    for element, attributes in numbers.items():
        if element not in tags:
            given = "".join(f' {key}="{_text(values)}"' for key, values in attributes.items())
            missing += f"<{prefix}{element}{given}/>"
            continue
        tag = tags[element]
        written = {found[1]: found.span(3) for found in _ATTRIBUTE.finditer(text, *tag.span(3))}
        for key, values in attributes.items():
            if key not in written:
                if any(values):
                    edits.append((tag.start(3), tag.start(3), f' {key}="{_text(values)}"'))
            elif not _says(text[slice(*written[key])], values):
                edits.append((*written[key], _text(values)))
    if "inertial" not in tags:
        missing = f"<{prefix}inertial>{missing}</{prefix}inertial>"
    end, rest = into.end(), text[into.end() :]
    if into[4]:  # <link/>
        start = into.start(3) + len(into[3].rstrip())
        edits.append((start, end, f">{missing}</{prefix}{into[2]}>"))
    elif missing:
        edits.append((end, end, rest[: len(rest) - len(rest.lstrip())] + missing))
    return edits


def _text(values: list[float]) -> str:
    """Numbers that read back as the same."""
    return " ".join(map(repr, values))


def _says(text: str, values: list[float]) -> bool:
    try:
        return [float(word) for word in text.split()] == values
    except ValueError:  # written with character references
        return False
