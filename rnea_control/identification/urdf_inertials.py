"""Writes inertias into a URDF, and leaves every other byte as it is.

Only the numbers in `<inertial>` change, so that comments, order and white space survive, in any
encoding, and a diff of the two files shows the numbers alone. XML libraries would write attributes,
entities and white space anew, so the tags are found in the text; `description_from_urdf` has seen
before that it is well-formed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError, listed
from rnea_control.model.rigid_body import link_inertia_of
from rnea_control.model.robot_description import description_from_urdf

_DEFAULT_INDENT = "  "
_SYMMETRY = 1e-9  # relative
# An inertia that is this near to the one in the file differs by rounding, relative.
_SAME = 1e-14
SPACE = " \t\r\n"
# What begins with "<"; only tags have a name. White space is that of XML.
_MARKUP = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>"
    r"|<(?P<end>/?)(?P<name>[^\s/>]+)(?P<attributes>(?:[^\"'>]|\"[^\"]*\"|'[^']*')*?)(?P<empty>/?)>",
    re.DOTALL | re.ASCII,
)
_ATTRIBUTE = re.compile(r"([^\s=]+)\s*=\s*(?P<quote>[\"'])(.*?)(?P=quote)", re.DOTALL | re.ASCII)

# What stands in place of text[start:end].
Edit = tuple[int, int, str]
# The numbers of an inertial: by element and attribute.
Numbers = dict[str, dict[str, list[float]]]
# The start tags of a link: by the path below <link>, whose own is ().
Tags = dict[tuple[str, ...], re.Match[str]]


def with_inertials(urdf: bytes, inertias: Mapping[str, FloatArray], source: str) -> bytes:
    """The URDF with other inertias for some of its links.

    A link without `<inertial>` gets one, in the style of the file; a link that has this inertia
    already stays as it is. `RobotModel` reads the same pseudo-inertias again, to rounding.

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
        needed = {("inertial", "mass"), ("inertial", "inertia")}
        if needed <= tags.keys():
            edits += _changed_inertial(text, tags, numbers)
        elif ("inertial",) in tags or present[link].any():
            raise IdentificationError(
                f"{source}: link {link!r} is written as an XML entity; write its text in its place"
            )
        else:
            edits.append(_new_inertial(text, tags[()], numbers))
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
    """The tags of each link and of what its inertial holds, in the order of the text."""
    links: list[Tags] = []
    path: list[str] = []
    scopes: list[dict[str, str]] = [{}]  # the namespaces of the prefixes, in each open element
    of_root = ""
    for tag in _MARKUP.finditer(text):
        if tag["name"] is None:
            continue
        if not tag["end"]:
            scope = dict(scopes[-1])
            if "xmlns" in tag["attributes"]:
                for key, _, value in _ATTRIBUTE.findall(tag["attributes"]):
                    if key == "xmlns" or key.startswith("xmlns:"):
                        scope[key[len("xmlns:") :]] = value
            scopes.append(scope)
            prefix, _, local = tag["name"].rpartition(":")
            namespace = scope.get(prefix, "")
            of_root = of_root if path else namespace
            # Elements are known with the namespace of the root, as for RobotModel, and without any.
            path.append(local if namespace in ("", of_root) else "")
            if path[1:] == ["link"]:
                links.append({})
            if path[1:2] == ["link"] and path[2:3] in ([], ["inertial"]):
                # Below <inertial>, the first of a name is the only one.
                links[-1].setdefault(tuple(path[2:]), tag)
        if tag["end"] or tag["empty"]:
            path.pop()
            scopes.pop()
    return links


def _prefix(tag: re.Match[str]) -> str:
    """Of the namespace, with its colon."""
    name: str = tag["name"]
    return name[: name.find(":") + 1]


def _numbers(link: str, matrix: FloatArray) -> Numbers:
    """The numbers of an inertial, in the order of its elements.

    Raises:
        IdentificationError: not a pseudo-inertia that a URDF can say.
    """
    if matrix.shape != (4, 4) or not np.isfinite(matrix).all():
        raise IdentificationError(
            f"the inertia of link {link!r} is {matrix.tolist()}; it must be a finite "
            "pseudo-inertia of shape (4, 4)"
        )
    if np.abs(matrix - matrix.T).max() > _SYMMETRY * np.abs(matrix).max():
        raise IdentificationError(
            f"the inertia of link {link!r} is {matrix.tolist()}; it must be symmetric"
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


def _changed_inertial(text: str, tags: Tags, numbers: Numbers) -> list[Edit]:
    """New numbers in an inertial; those that stay equal are left as they are written."""
    edits: list[Edit] = []
    for element, attributes in numbers.items():
        tag = tags.get(("inertial", element))
        if tag is None:  # only <origin> may be missing
            first = min(found.start() for path, found in tags.items() if len(path) == 2)
            before = text[:first]
            gap = before[len(before.rstrip(SPACE)) :]
            new = _element(_prefix(tags[("inertial",)]), element, attributes)
            edits.append((first, first, new + gap))
            continue
        inside = tag.span("attributes")
        written = {found[1]: found.span(3) for found in _ATTRIBUTE.finditer(text, *inside)}
        for key, values in attributes.items():
            if key not in written:
                if any(values):
                    edits.append((inside[0], inside[0], f' {key}="{_text(values)}"'))
            elif not _says(text[slice(*written[key])], values):
                edits.append((*written[key], _text(values)))
    return edits


def _new_inertial(text: str, link: re.Match[str], numbers: Numbers) -> Edit:
    """An inertial at the beginning of a link that has none, on lines of its own where the file is
    written so."""
    # How the link's line begins, and how what comes first in the link is indented.
    line_start = max(text.rfind("\n", 0, link.start()), text.rfind("\r", 0, link.start())) + 1
    own = text[line_start : link.start()]
    rest = text[link.end() :]
    inside = "" if link["empty"] else rest[: len(rest) - len(rest.lstrip(SPACE))]
    newline = _newline(inside) or _newline(text[:line_start])
    if own.strip(SPACE) or not line_start or (not inside and rest[:2] != "</" and rest[:1] == "<"):
        newline = ""  # several elements on a line
    if link["empty"] and not newline:
        own = ""
    indent = inside[max(inside.rfind("\n"), inside.rfind("\r")) + 1 :]
    if rest[len(inside) :].startswith("</") or not indent.startswith(own) or indent == own:
        indent = own + (own or _DEFAULT_INDENT)
    break_, deeper = newline and newline + indent, newline and indent[len(own) :]
    p = _prefix(link)
    lines = [f"<{p}inertial>"]
    lines += [deeper + _element(p, element, numbers[element]) for element in numbers]
    lines += [f"</{p}inertial>"]
    block = break_ + break_.join(lines)
    if not link["empty"]:
        closing = newline + own if newline and rest.startswith("</") else ""
        return link.end(), link.end(), block + closing
    start = len(text[: link.end() - len("/>")].rstrip(SPACE))
    return start, link.end(), f">{block}{newline and newline + own}</{link['name']}>"


def _newline(text: str) -> str:
    """How the first line of a text ends; "" if there is only one line."""
    found = re.search("\r\n|\r|\n", text)
    return found[0] if found else ""


def _element(prefix: str, name: str, attributes: dict[str, list[float]]) -> str:
    given = " ".join(f'{key}="{_text(values)}"' for key, values in attributes.items())
    return f"<{prefix}{name} {given}/>"


def _text(values: list[float]) -> str:
    """Numbers that read back as the same."""
    return " ".join(map(repr, values))


def _says(text: str, values: list[float]) -> bool:
    try:
        return [float(word) for word in text.split()] == values
    except ValueError:  # written with character references
        return False
