"""A robot's shapes in MuJoCo, which only draws them: each link is placed by the recorded motion.

No ROS, and nothing of ours but shapes: it also runs in processes that are started to draw.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.demo.shapes import Shape

WIDTH, HEIGHT = 640, 480
WHITE = [1.0, 1.0, 1.0, 1.0]

_GEOMS = {
    "mesh": mujoco.mjtGeom.mjGEOM_MESH,
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "bar": mujoco.mjtGeom.mjGEOM_CAPSULE,
}


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
    spec.visual.global_.offwidth, spec.visual.global_.offheight = WIDTH, HEIGHT
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
    meshes: dict[tuple[str, tuple[float, ...]], str] = {}
    for shape in shapes:
        place: dict[str, object] = {"pos": shape.translation, "size": _size(shape)}
        if shape.kind == "bar":
            place = {"fromto": [0.0, 0.0, 0.0, *shape.translation], "size": [*shape.size, 0.0, 0.0]}
        else:
            quaternion = np.zeros(4)
            mujoco.mju_mat2Quat(quaternion, shape.rotation.ravel())
            place["quat"] = quaternion
        if shape.kind == "mesh":
            key = (shape.file, shape.size)
            if key not in meshes:
                meshes[key] = f"mesh{len(meshes)}"
                spec.add_mesh(
                    name=meshes[key],
                    file=shape.file,
                    scale=list(shape.size),
                    inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
                )
            place["meshname"] = meshes[key]
        bodies[shape.link].add_geom(
            type=_GEOMS[shape.kind], rgba=list(shape.color), contype=0, conaffinity=0, **place
        )
    return spec


def _size(shape: Shape) -> list[float]:
    if shape.kind == "mesh":
        return [0.0, 0.0, 0.0]
    return [*shape.size, 0.0, 0.0][:3]
