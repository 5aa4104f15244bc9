"""What a robot looks like: the shapes of its URDF, or bars between its joints.

MuJoCo loads STL and OBJ meshes, but no DAE. A link whose <visual> has another is drawn by its
<collision>, and where that has one too, or there is neither, by bars to its child links.
"""

from __future__ import annotations

import contextlib
import itertools
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory

from rnea_control.array_types import FloatArray
from rnea_control.model.rigid_body import rotation_from_rpy
from rnea_control.model.robot_description import description_from_urdf
from rnea_control.model.urdf_text import parse_xml

MESHES = (".stl", ".obj")

# Of links without a color of their own, alternately; and of bars.
LIGHT, DARK = (0.9, 0.9, 0.92, 1.0), (0.35, 0.38, 0.42, 1.0)
BAR = (0.95, 0.55, 0.15, 1.0)
BAR_RADIUS = 0.012


@dataclass(frozen=True)
class Shape:
    """A shape fixed to a link.

    Attributes:
        link: its name.
        kind: "mesh", "box", "cylinder", "sphere" or "bar".
        size: half sides of a box; radius and half length of a cylinder; radius of a sphere and of
            a bar; scale of a mesh; [m].
        rotation, translation: of the shape in the link's frame; a bar leads from its origin to
            `translation`.
        color: red, green, blue, opacity.
        file: of a mesh.
    """

    link: str
    kind: str
    size: tuple[float, ...]
    rotation: FloatArray
    translation: FloatArray
    color: tuple[float, ...]
    file: str = ""


def shapes(urdf: Path) -> list[Shape]:
    """The shapes of all links of a URDF file that `RobotModel` loads."""
    xml = urdf.read_bytes()
    root = parse_xml(xml)
    colors = _colors(root)
    bars = _bars(xml, str(urdf))
    result = []
    for link, color in zip(root.iter("link"), itertools.cycle((LIGHT, DARK)), strict=False):
        name = link.get("name", "")
        for tag in ("visual", "collision"):
            found = list(_link_shapes(link, tag, urdf, color, colors))
            if found and None not in found:
                result += found
                break
        else:
            result += bars.get(name, [])
    return result


def mesh_file(name: str, urdf: Path) -> Path | None:
    """The file that a URDF names: relative to the URDF, by file:// or by package://, which is
    looked for around the URDF and among the ROS packages."""
    scheme, separator, rest = name.partition("://")
    if not separator:
        path = urdf.parent / name
        return path if path.is_file() else None
    if scheme == "file":
        return Path(rest) if Path(rest).is_file() else None
    package, _, inside = rest.partition("/")
    folders = [parent / package for parent in urdf.resolve().parents]
    # Not a ROS package, or no ROS environment:
    with contextlib.suppress(PackageNotFoundError, ValueError, OSError):
        folders.append(Path(get_package_share_directory(package)))
    return next((f / inside for f in folders if (f / inside).is_file()), None)


def _link_shapes(
    link: ET.Element,
    tag: str,
    urdf: Path,
    color: tuple[float, ...],
    colors: dict[str, tuple[float, ...]],
) -> Iterator[Shape | None]:
    """The shapes of a link's visuals or collisions; None for one that cannot be drawn."""
    for element in link.findall(tag):
        geometry = element.find("geometry")
        if geometry is None or not len(geometry):
            continue
        shape, file = geometry[0], ""
        if shape.tag == "mesh":
            path = mesh_file(shape.get("filename", ""), urdf)
            if path is None or path.suffix.lower() not in MESHES:
                yield None
                continue
            size, file = _numbers(shape.get("scale", "1 1 1")), str(path)
        elif shape.tag == "box":
            size = tuple(0.5 * side for side in _numbers(shape.get("size", "")))
        elif shape.tag in ("cylinder", "capsule"):
            length = float(shape.get("length", "0"))
            size = (float(shape.get("radius", "0")), 0.5 * length)
        else:
            size = (float(shape.get("radius", "0")),)
        origin = element.find("origin")
        place = {} if origin is None else origin.attrib
        rotation = rotation_from_rpy(np.array(_numbers(place.get("rpy", "0 0 0"))))
        translation = np.array(_numbers(place.get("xyz", "0 0 0")))
        kind = "cylinder" if shape.tag == "capsule" else shape.tag
        own = _color(element.find("material"), colors) if tag == "visual" else None
        yield Shape(link.get("name", ""), kind, size, rotation, translation, own or color, file)


def _bars(xml: bytes, source: str) -> dict[str, list[Shape]]:
    """By link: bars to its child links, in their places with all joints at zero."""
    bars: dict[str, list[Shape]] = {}
    for joint in description_from_urdf(xml, source).joints:
        own = bars.setdefault(joint.parent, [])
        if np.linalg.norm(joint.translation) > 1e-3:
            own.append(Shape(joint.parent, "bar", (BAR_RADIUS,), np.eye(3), joint.translation, BAR))
    return bars


def _colors(root: ET.Element) -> dict[str, tuple[float, ...]]:
    found = {}
    for material in root.iter("material"):
        color = material.find("color")
        if color is not None and material.get("name"):
            found[material.get("name", "")] = _numbers(color.get("rgba", "1 1 1 1"))
    return found


def _color(
    material: ET.Element | None, colors: dict[str, tuple[float, ...]]
) -> tuple[float, ...] | None:
    if material is None:
        return None
    color = material.find("color")
    if color is not None:
        return _numbers(color.get("rgba", "1 1 1 1"))
    return colors.get(material.get("name", ""))


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split())
