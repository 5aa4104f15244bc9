"""What a robot looks like, for MuJoCo to draw: the shapes of its URDF, or bars between its joints,
on a floor.

MuJoCo loads STL and OBJ meshes, but no DAE. A link whose <visual> has another is drawn by its
<collision>, and where that has one too, or there is neither, by bars to its child links.
"""

from __future__ import annotations

import contextlib
import itertools
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory

from rnea_control.array_types import FloatArray
from rnea_control.model.rigid_body import rotation_from_rpy
from rnea_control.model.robot_description import description_from_urdf
from rnea_control.model.urdf_text import parse_xml

# Width and height of what is drawn without a window, [pixels].
SIZE = (400, 300)
MESHES = (".stl", ".obj")

# Red, green, blue, opacity.
Color = tuple[float, ...]

# Of links without a color of their own, alternately; and of bars.
LIGHT, DARK = (0.9, 0.9, 0.92, 1.0), (0.35, 0.38, 0.42, 1.0)
BAR = (0.95, 0.55, 0.15, 1.0)
BAR_RADIUS = 0.012
WHITE = [1.0, 1.0, 1.0, 1.0]


@dataclass(frozen=True)
class Shape:
    """A shape fixed to a link.

    Attributes:
        link: its name.
        kind: "mesh", "box", "cylinder" or "sphere"; "capsule" for a bar.
        size: half sides of a box; radius and half length of a cylinder, of which a sphere and a bar
            have the radius; scale of a mesh; [m].
        rotation, translation: of the shape in the link's frame; a bar leads from its origin to
            `translation`.
        color: of all of it.
        file: of a mesh.
    """

    link: str
    kind: str
    size: tuple[float, ...]
    rotation: FloatArray
    translation: FloatArray
    color: Color
    file: str = ""


class Scene:
    """The shapes of a robot on a floor.

    Args:
        shapes: what is drawn; meshes that MuJoCo does not load are left out.
        links: names of the links, in the order of the poses.
        poses: the motion that the camera has to see, shape (n, number of links, 4, 4).

    Attributes:
        model, data: of MuJoCo.
        camera: that sees the whole motion.
    """

    def __init__(self, shapes: Sequence[Shape], links: Sequence[str], poses: FloatArray) -> None:
        positions = poses[:, :, :3, 3]
        low, high = positions.min(axis=(0, 1)), positions.max(axis=(0, 1))
        extent = max(float(np.linalg.norm(high - low)), 0.1)
        floor = min(0.0, float(low[2]) - 0.05)
        self.model = _compiled([s for s in shapes if s.link in links], links, extent, floor)
        self.data = mujoco.MjData(self.model)
        self._bodies = [self.model.body(f"link {link}").mocapid[0] for link in links]
        self.camera = mujoco.MjvCamera()
        self.camera.lookat[:] = 0.5 * (low + high)
        self.camera.distance = 1.5 * extent
        self.camera.azimuth, self.camera.elevation = 140.0, -18.0

    def place(self, poses: FloatArray) -> None:
        """Places the links, shape (number of links, 4, 4)."""
        for body, pose in zip(self._bodies, poses, strict=True):
            self.data.mocap_pos[body] = pose[:3, 3]
            mujoco.mju_mat2Quat(self.data.mocap_quat[body], pose[:3, :3].ravel())
        mujoco.mj_forward(self.model, self.data)


def render(shapes: Sequence[Shape], links: Sequence[str], poses: FloatArray) -> FloatArray:
    """Pictures of a motion, shape (n, height, width, 3), bytes; arguments as of `Scene`."""
    scene = Scene(shapes, links, poses)
    frames = []
    with mujoco.Renderer(scene.model, SIZE[1], SIZE[0]) as renderer:
        for pose in poses:
            scene.place(pose)
            renderer.update_scene(scene.data, scene.camera)
            frames.append(renderer.render())
    return np.array(frames)


def _compiled(
    shapes: list[Shape], links: Sequence[str], extent: float, floor: float
) -> mujoco.MjModel:
    """The model, without the meshes that MuJoCo refuses."""
    try:
        return _spec(shapes, links, extent, floor).compile()
    except ValueError:
        usable = [shape for shape in shapes if shape.kind != "mesh" or _loads(shape)]
        return _spec(usable, links, extent, floor).compile()


def _loads(shape: Shape) -> bool:
    try:
        _spec([shape], [shape.link], 1.0, 0.0).compile()
    except ValueError:
        return False
    return True


def _spec(shapes: list[Shape], links: Sequence[str], extent: float, floor: float) -> mujoco.MjSpec:
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
    # As bright as the sky, so that it is seen by the shadows alone.
    half = 20.0 * extent
    spec.add_material(name="floor", rgba=WHITE, emission=0.2)
    world.add_geom(
        name="floor",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[half, half, 0.1],
        pos=[0.0, 0.0, floor],
        material="floor",
    )
    world.add_light(
        pos=[0.0, 0.0, floor + 6.0 * extent],
        dir=[0.15, -0.2, -1.0],
        diffuse=[0.6, 0.6, 0.6],
        specular=[0.1, 0.1, 0.1],
        cutoff=90.0,
        exponent=0.0,
    )
    # A link may be called "world", as MuJoCo's own body is.
    bodies = {link: world.add_body(name=f"link {link}", mocap=True) for link in links}
    shell = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    meshes = {(s.file, s.size): f"mesh{i}" for i, s in enumerate(shapes) if s.kind == "mesh"}
    for (file, scale), name in meshes.items():
        spec.add_mesh(name=name, file=file, scale=list(scale), inertia=shell)
    for shape in shapes:
        geom = bodies[shape.link].add_geom(rgba=list(shape.color), contype=0, conaffinity=0)
        geom.type = getattr(mujoco.mjtGeom, f"mjGEOM_{shape.kind.upper()}")
        if shape.kind == "mesh":
            geom.meshname = meshes[shape.file, shape.size]
        else:
            geom.size[: len(shape.size)] = shape.size
        if shape.kind == "capsule":
            geom.fromto = [0.0, 0.0, 0.0, *shape.translation]
        else:
            geom.pos = shape.translation
            mujoco.mju_mat2Quat(geom.quat, shape.rotation.ravel())
    return spec


def shapes(urdf: Path) -> list[Shape]:
    """The shapes of all links of a URDF file that `RobotModel` loads."""
    xml = urdf.read_bytes()
    root = parse_xml(xml)
    named = [each for each in root.iter("material") if each.get("name")]
    colors = {each.get("name", ""): color for each in named if (color := _color(each, {}))}
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
    link: ET.Element, tag: str, urdf: Path, color: Color, colors: Mapping[str, Color]
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
        else:  # a cylinder, a capsule, or a sphere, which has no length
            size = (float(shape.get("radius", "0")), 0.5 * float(shape.get("length", "0")))
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
            bar = Shape(joint.parent, "capsule", (BAR_RADIUS,), np.eye(3), joint.translation, BAR)
            own.append(bar)
    return bars


def _color(material: ET.Element | None, colors: Mapping[str, Color]) -> Color | None:
    """Its own, else that of its name."""
    if material is None:
        return None
    color = material.find("color")
    if color is not None:
        return _numbers(color.get("rgba", "1 1 1 1"))
    return colors.get(material.get("name", ""))


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split())
