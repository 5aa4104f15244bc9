"""Drawing of a robot on a floor by MuJoCo, from the shapes of its URDF, or as bars between its
joints.

MuJoCo loads STL and OBJ meshes only. A link with another mesh in its <visual> is drawn from its
<collision>. If that has another mesh too, or neither exists, bars to the child links are drawn.
"""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.model.robot_description import description_from_urdf
from rnea_control.model.urdf_text import parse_xml
from rnea_control.ros.mesh_files import mesh_file

SIZE = (400, 300)  # width and height of a frame [pixels]
MESHES = (".stl", ".obj")  # formats that MuJoCo loads

# Colors: red, green, blue, opacity. LIGHT and DARK alternate for links without a color.
LIGHT = (0.9, 0.9, 0.92, 1.0)
DARK = (0.35, 0.38, 0.42, 1.0)
BAR = (0.95, 0.55, 0.15, 1.0)
BAR_RADIUS = 0.012  # [m]
WHITE = [1.0, 1.0, 1.0, 1.0]

KINDS = mujoco.mjtGeom
# Arguments of MuJoCo's `add_geom`; the item "mesh" has file and scale of a mesh.
Shape = dict[str, Any]


class Scene:
    """The shapes of a robot on a floor.

    Args:
        urdf: URDF file of the robot; meshes that MuJoCo does not load are omitted.
        links: names of the links, in the order of the poses.
        poses: motion that the camera must show, shape (n, number of links, 4, 4).

    Attributes:
        model: model of MuJoCo.
        data: data of MuJoCo.
        camera: camera that shows the whole motion.
    """

    def __init__(self, urdf: Path, links: Sequence[str], poses: FloatArray) -> None:
        positions = poses[:, :, :3, 3]
        low, high = positions.min(axis=(0, 1)), positions.max(axis=(0, 1))
        extent = max(float(np.linalg.norm(high - low)), 0.1)
        floor = min(0.0, float(low[2]) - 0.05)
        loaded = {link: list(filter(_loads, found)) for link, found in shapes(urdf).items()}
        self.model = _spec(loaded, links, extent, floor).compile()
        self.data = mujoco.MjData(self.model)
        self._bodies = [self.model.body(f"link {link}").mocapid[0] for link in links]
        self.camera = mujoco.MjvCamera()
        self.camera.lookat[:] = 0.5 * (low + high)
        self.camera.distance = 1.5 * extent
        self.camera.azimuth, self.camera.elevation = 140.0, -18.0

    def place(self, poses: FloatArray) -> None:
        """Moves the links to `poses`, shape (number of links, 4, 4)."""
        for body, pose in zip(self._bodies, poses, strict=True):
            self.data.mocap_pos[body] = pose[:3, 3]
            mujoco.mju_mat2Quat(self.data.mocap_quat[body], pose[:3, :3].ravel())
        mujoco.mj_forward(self.model, self.data)


def render(urdf: Path, links: Sequence[str], poses: FloatArray) -> FloatArray:
    """Frames of a motion, shape (n, height, width, 3), bytes.

    Args:
        urdf: URDF file of the robot; meshes that MuJoCo does not load are omitted.
        links: names of the links, in the order of the poses.
        poses: motion to draw, shape (n, number of links, 4, 4).
    """
    scene = Scene(urdf, links, poses)
    frames = []
    with mujoco.Renderer(scene.model, SIZE[1], SIZE[0]) as renderer:
        for pose in poses:
            scene.place(pose)
            renderer.update_scene(scene.data, scene.camera)
            frames.append(renderer.render())
    return np.array(frames)


def _loads(shape: Shape) -> bool:
    """True if MuJoCo can load a shape."""
    try:
        _spec({"a": [shape]}, ["a"], 1.0, 0.0).compile()
    except ValueError:
        return False
    return True


def _spec(
    shapes: Mapping[str, Sequence[Shape]], links: Sequence[str], extent: float, floor: float
) -> mujoco.MjSpec:
    spec = mujoco.MjSpec()
    spec.visual.global_.offwidth, spec.visual.global_.offheight = SIZE
    spec.visual.headlight.ambient[:] = 0.45
    spec.visual.headlight.diffuse[:] = 0.4
    spec.visual.quality.shadowsize = 4096
    spec.stat.extent = extent
    sky = spec.add_texture(name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX)
    sky.builtin, sky.width, sky.height = mujoco.mjtBuiltin.mjBUILTIN_FLAT, 64, 384
    sky.rgb1 = sky.rgb2 = WHITE[:3]
    world = spec.worldbody
    # As bright as the sky, so that only the shadows are visible.
    spec.add_material(name="floor", rgba=WHITE, emission=0.2)
    size, place = [20.0 * extent, 20.0 * extent, 0.1], [0.0, 0.0, floor]
    world.add_geom(name="floor", type=KINDS.mjGEOM_PLANE, size=size, pos=place, material="floor")
    light = {"pos": [0.0, 0.0, floor + 6.0 * extent], "dir": [0.15, -0.2, -1.0]}
    colors = {"diffuse": [0.6, 0.6, 0.6], "specular": [0.1, 0.1, 0.1]}
    world.add_light(**light, **colors, cutoff=90.0, exponent=0.0)
    shell = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    for link in links:
        # The prefix avoids the name "world" of MuJoCo's own body.
        body = world.add_body(name=f"link {link}", mocap=True)
        for shape in shapes.get(link, ()):
            given = dict(shape)
            if mesh := given.pop("mesh", None):
                file, scale = mesh
                given["meshname"] = name = f"{file} {scale}"
                if spec.mesh(name) is None:
                    spec.add_mesh(name=name, file=file, scale=list(scale), inertia=shell)
            body.add_geom(contype=0, conaffinity=0, **given)
    return spec


def shapes(urdf: Path) -> dict[str, list[Shape]]:
    """Shapes of each link of a URDF file that `RobotModel` loads."""
    xml = urdf.read_bytes()
    root = parse_xml(xml)
    named = [each for each in root.iter("material") if each.get("name")]
    colors = {each.get("name", ""): color for each in named if (color := _color(each, {}))}
    result: dict[str, list[Shape]] = {}
    for joint in description_from_urdf(xml, str(urdf)).joints:
        bars = result.setdefault(joint.parent, [])
        if np.linalg.norm(joint.translation) > 1e-3:
            line, size = [0.0, 0.0, 0.0, *joint.translation], [BAR_RADIUS, 0.0, 0.0]
            bars.append({"type": KINDS.mjGEOM_CAPSULE, "size": size, "fromto": line, "rgba": BAR})
    for link, color in zip(root.iter("link"), itertools.cycle((LIGHT, DARK)), strict=False):
        for tag in ("visual", "collision"):
            found = list(_of_link(link, tag, urdf, color, colors))
            if found and None not in found:
                result[link.get("name", "")] = found
                break
    return result


def _of_link(
    link: ET.Element, tag: str, urdf: Path, color: tuple[float, ...], colors: Mapping[str, Any]
) -> Iterator[Shape | None]:
    """Shapes of a link's visuals or collisions; None for a shape that cannot be drawn."""
    for element in link.findall(tag):
        geometry = element.find("geometry")
        if geometry is None or not len(geometry):
            continue
        shape, made = geometry[0], {"type": KINDS.mjGEOM_MESH}
        if shape.tag == "mesh":
            path = mesh_file(shape.get("filename", ""), urdf)
            if path is None or path.suffix.lower() not in MESHES:
                yield None
                continue
            made["mesh"] = str(path), _numbers(shape.get("scale", "1 1 1"))
        elif shape.tag == "box":
            half = [0.5 * side for side in _numbers(shape.get("size", ""))]
            made = {"type": KINDS.mjGEOM_BOX, "size": half}
        else:  # a cylinder, a capsule, or a sphere (without length)
            kind = KINDS.mjGEOM_SPHERE if shape.tag == "sphere" else KINDS.mjGEOM_CYLINDER
            size = float(shape.get("radius", "0")), 0.5 * float(shape.get("length", "0")), 0.0
            made = {"type": kind, "size": size}
        origin = element.find("origin")
        place = {} if origin is None else origin.attrib
        made |= {"pos": _numbers(place.get("xyz", "0 0 0")), "quat": np.zeros(4)}
        mujoco.mju_euler2Quat(made["quat"], _numbers(place.get("rpy", "0 0 0")), "XYZ")
        own = _color(element.find("material"), colors) if tag == "visual" else None
        yield {**made, "rgba": own or color}


def _color(material: ET.Element | None, colors: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Color of a material, else of its name; None without a color."""
    if material is None:
        return None
    color = material.find("color")
    if color is not None:
        return _numbers(color.get("rgba", "1 1 1 1"))
    return colors.get(material.get("name", ""))


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split())
