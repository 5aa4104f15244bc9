"""Writes inertias into a URDF, and leaves its other elements unchanged.

Comments, order, line breaks between elements, prefixes and the encoding are kept, so that a diff of
the two files shows little more than the numbers. Within tags lxml normalizes differences that have
no meaning in XML: namespaces come before attributes, one space apart and in double quotes; an empty
element is `<link/>`; character references become characters.
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
_SYMMETRY = 1e-9  # largest relative difference of symmetric entries
_SAME = 1e-14  # largest relative difference of an inertia that is unchanged except for rounding
# Text before the root; its group is the DOCTYPE.
_PROLOG = re.compile(
    r"(?:[\s\ufeff]|<\?.*?\?>|<!--.*?-->)*(<!DOCTYPE[^\[>]*(?:\[.*?\])?\s*>)?", re.DOTALL
)


def with_inertials(urdf: bytes, inertias: Mapping[str, FloatArray], source: str) -> bytes:
    """Replaces the inertias of some links of a URDF.

    A link without `<inertial>` gets a new one, on a separate line; a link that already has this
    inertia is unchanged. `RobotModel` reads the same pseudo-inertias again, up to rounding.

    Args:
        urdf: bytes of the file.
        inertias: pseudo-inertia in the link's frame, shape (4, 4), by the link's name.
        source: name of the file, for error messages.

    Raises:
        RobotModelError: not a URDF, or a link has more than one `<inertial>`.
        IdentificationError: an unknown link, an inertia that is not a pseudo-inertia, or a link
            that is written as an XML entity.
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
    assert prolog is not None  # the pattern matches an empty string too
    # The text is well-formed, as it was read above: lxml only has to recover from undeclared
    # prefixes. The element around everything keeps the text after the root.
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
    """Name of an element as in the file, with its prefix."""
    name: str = element.tag.rpartition("}")[2]
    return f"{element.prefix}:{name}" if element.prefix else name


def _children(parent: Element, name: str, prefix: str) -> list[Element]:
    """Children with this name, with the prefix of the root or, as `RobotModel` allows, without."""
    return [each for each in parent.iterchildren("*") if _name(each) in (name, prefix + name)]


def _child(parent: Element, name: str, prefix: str, place: int = 0) -> Element:
    """Child with this name; without one, a new child, on a separate line if the next element is on
    a separate line."""
    if children := _children(parent, name, prefix):
        return children[0]
    child = etree.Element(parent.tag[: parent.tag.rfind("}") + 1] + name)
    child.tail = parent.text
    parent.insert(place, child)
    return child


def _write(attributes: dict[str, list[float]], element: Element) -> None:
    """Writes numbers that read back as the same, and leaves attributes of equal value unchanged; a
    missing attribute of `<origin>` means zeros. Orientations are written as rpy."""
    element.attrib.pop("quat_xyzw", None)
    for name, values in attributes.items():
        if [float(word) for word in element.get(name, "0 0 0").split()] != values:
            element.set(name, " ".join(map(repr, values)))


def _numbers(link: str, matrix: FloatArray) -> dict[str, dict[str, list[float]]]:
    """Numbers of an inertial, by element and attribute.

    Raises:
        IdentificationError: not a pseudo-inertia that a URDF can express.
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
