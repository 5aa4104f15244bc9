"""Writes inertias into a URDF, and leaves its other elements as they are.

Comments, order, line breaks between elements, prefixes and the encoding survive, so that a diff of
the two files shows little more than the numbers. Within tags lxml writes what XML does not tell
apart in its own way: namespaces, then attributes, one space apart and between double quotes,
`<link/>` without content, and characters in place of references to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from lxml import etree

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError, listed
from rnea_control.model.rigid_body import link_inertia_of
from rnea_control.model.robot_description import description_from_urdf
from rnea_control.model.urdf_text import encoding_of

Element: TypeAlias = etree._Element  # lxml has no public name for it
_SYMMETRY = 1e-9  # relative
# An inertia that is this near to the one in the file differs by rounding, relative.
_SAME = 1e-14
# What stands before the root, and in it the DOCTYPE.
_PROLOG = re.compile(
    r"(?:[\s\ufeff]|<\?.*?\?>|<!--.*?-->)*(<!DOCTYPE[^\[>]*(?:\[.*?\])?\s*>)?", re.DOTALL
)


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
            link that is written as an XML entity.
    """
    present = description_from_urdf(urdf, source).inertias
    changes = {}
    for name, inertia in inertias.items():
        matrix = np.asarray(inertia, dtype=np.float64)
        if name not in present:
            raise IdentificationError(
                f"{source}: there is no link {name!r} to give an inertia to; the robot has "
                f"{listed(present)}"
            )
        numbers = _numbers(name, matrix)
        if np.abs(matrix - present[name]).max() > _SAME * np.abs(matrix).max():
            changes[name] = numbers
    if not changes:
        return urdf
    encoding = encoding_of(urdf)
    text = urdf.decode(encoding)
    prolog = _PROLOG.match(text)
    assert prolog is not None  # it matches nothing, too
    # It is well-formed, as it was read above: what lxml recovers from are undeclared prefixes. The
    # element around all of it keeps what follows the root.
    parser = etree.XMLParser(resolve_entities=False, strip_cdata=False, recover=True)
    document = etree.fromstring(f"{prolog[1] or ''}<_>{text[prolog.end() :]}</_>", parser)
    robot = document.find("*")
    prefix = _name(robot).removesuffix("robot")
    links = {link.get("name"): link for link in _children(robot, "link", prefix)}
    for name, numbers in changes.items():
        if name not in links or next(links[name].iter(etree.Entity), None) is not None:
            raise IdentificationError(
                f"{source}: link {name!r} is written as an XML entity; write its text in its place"
            )
        inertial = _child(links[name], "inertial", prefix)
        for place, (element, attributes) in enumerate(numbers.items()):
            _write(attributes, _child(inertial, element, prefix, place))
    body: str = etree.tostring(document, encoding="unicode")[len("<_>") : -len("</_>")]
    if "\r\n" in text:
        body = body.replace("\n", "\r\n")
    return (text[: prolog.end()] + body).encode(encoding, "xmlcharrefreplace")


def _name(element: Element) -> str:
    """As it stands in the file, with its prefix."""
    name: str = element.tag.rpartition("}")[2]
    return f"{element.prefix}:{name}" if element.prefix else name


def _children(parent: Element, name: str, prefix: str) -> list[Element]:
    """Those of this name, with the prefix of the root or, as `RobotModel` takes them, without."""
    return [each for each in parent.iterchildren("*") if _name(each) in (name, prefix + name)]


def _child(parent: Element, name: str, prefix: str, place: int = 0) -> Element:
    """The one of this name; if there is none a new one, on a line of its own if what follows has
    one."""
    if children := _children(parent, name, prefix):
        return children[0]
    child = etree.Element(parent.tag[: parent.tag.rfind("}") + 1] + name)
    child.tail = parent.text
    parent.insert(place, child)
    return child


def _write(attributes: dict[str, list[float]], element: Element) -> None:
    """Numbers that read back as the same, but where they stay equal: `<origin>` has zeros where it
    says nothing. They are given as rpy."""
    element.attrib.pop("quat_xyzw", None)
    for name, values in attributes.items():
        if [float(word) for word in element.get(name, "0 0 0").split()] != values:
            element.set(name, " ".join(map(repr, values)))


def _numbers(link: str, matrix: FloatArray) -> dict[str, dict[str, list[float]]]:
    """The numbers of an inertial, by element and attribute.

    Raises:
        IdentificationError: not a pseudo-inertia that a URDF can say.
    """
    if (
        matrix.shape != (4, 4)
        or not np.isfinite(matrix).all()
        or np.abs(matrix - matrix.T).max() > _SYMMETRY * np.abs(matrix).max()
        or matrix[3, 3] < 0.0
        or (matrix[3, 3] == 0.0 and matrix[:3, 3].any())
    ):
        raise IdentificationError(
            f"the inertia of link {link!r} is {matrix.tolist()}; it must be a finite symmetric "
            "pseudo-inertia, shape (4, 4), with a mass above 0, or with neither mass nor center"
        )
    inertia = link_inertia_of(link, matrix)
    xx, xy, xz, _, yy, yz, _, _, zz = (0.0 + inertia.inertia).ravel().tolist()
    return {
        "origin": {"xyz": (0.0 + inertia.center_of_mass).tolist(), "rpy": [0.0, 0.0, 0.0]},
        "mass": {"value": [inertia.mass]},
        "inertia": {"ixx": [xx], "ixy": [xy], "ixz": [xz], "iyy": [yy], "iyz": [yz], "izz": [zz]},
    }
