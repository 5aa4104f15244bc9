"""Recorded motions in MuJoCo, which only draws them, each link placed as recorded: a film, where it
can draw without a window, else of lines; and its viewer.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import mujoco
import numpy as np
from PIL import Image

from rnea_control.array_types import FloatArray
from rnea_control.demo.picture import bones, link_poses, skeleton_frames
from rnea_control.demo.recording import Recording
from rnea_control.demo.robots import DemoRobot
from rnea_control.demo.shapes import Shape, shapes

SIZE = (400, 300)
FRAMES_PER_SECOND = 12.5  # GIF counts in hundredths of a second
COLORS = 32
VIEWER_FRAMES_PER_SECOND = 50.0

# What MuJoCo may draw with where there is no window; each is tried in a process of its own, as a
# driver may crash it, and for no longer than this, [s].
BACKENDS = ("egl", "osmesa")
LONGEST_DRAWING = 300.0

# The viewer's thread ends by itself; a process that ends before it may crash, [s].
CLOSING = 1.0

WIDTH, HEIGHT = 640, 480
WHITE = [1.0, 1.0, 1.0, 1.0]

_GEOMS = {
    "mesh": mujoco.mjtGeom.mjGEOM_MESH,
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "bar": mujoco.mjtGeom.mjGEOM_CAPSULE,
}


def film(path: Path, robot: DemoRobot, recording: Recording) -> str:
    """Writes a film of a recording, in real time.

    Args:
        path: of the film, .gif or .mp4.
        robot: that was recorded.
        recording: its motion.

    Returns:
        what it was drawn with.
    """
    poses = _poses(robot, recording, FRAMES_PER_SECOND)
    frames, objections = drawn_by_mujoco(shapes(robot.path), robot.model.link_names, poses)
    how = "MuJoCo"
    if frames is None:
        frames = skeleton_frames(poses, bones(robot.path, robot.model), SIZE)
        how = f"matplotlib, as MuJoCo cannot draw without a window here ({'; '.join(objections)})"
    (_write_gif if path.suffix.lower() == ".gif" else _write_mp4)(path, frames)
    return how


def _poses(robot: DemoRobot, recording: Recording, frames_per_second: float) -> FloatArray:
    """Of all links in each frame, shape (frames, number of links, 4, 4)."""
    count = max(int(recording.time[-1] * frames_per_second), 1)
    times = np.arange(count) / frames_per_second
    rows = np.clip(np.searchsorted(recording.time, times), 0, len(recording.time) - 1)
    return link_poses(robot.model, recording.measured[rows])


def drawn_by_mujoco(
    shapes: Sequence[Shape],
    links: Sequence[str],
    poses: FloatArray,
    backends: Sequence[str] = BACKENDS,
) -> tuple[FloatArray | None, list[str]]:
    """Pictures of a motion, shape (n, height, width, 3), bytes; None where no backend works. With
    them what was wrong with the backends that do not, a sentence each.

    Args:
        shapes, links, poses: as for `Scene`.
        backends: values of MUJOCO_GL to try; one that is set already is the only one.
    """
    set_already, objections = os.environ.get("MUJOCO_GL"), []
    for backend in [set_already] if set_already else backends:
        os.environ["MUJOCO_GL"] = backend  # the new process reads it
        try:
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                frames = pool.submit(render, shapes, links, poses).result(LONGEST_DRAWING)
                return frames, objections
        except Exception as error:  # whatever the driver does: there is another way
            objections.append(f"{backend}: {error!r}")
        finally:
            if set_already is None:
                del os.environ["MUJOCO_GL"]
    return None, objections


def render(shapes: Sequence[Shape], links: Sequence[str], poses: FloatArray) -> FloatArray:
    """What `drawn_by_mujoco` runs in a process of its own."""
    scene = Scene(shapes, links, poses)
    width, height = SIZE
    frames = np.zeros((len(poses), height, width, 3), dtype=np.uint8)
    with mujoco.Renderer(scene.model, height, width) as renderer:
        for pose, frame in zip(poses, frames, strict=True):
            scene.place(pose)
            renderer.update_scene(scene.data, scene.camera)
            frame[:] = renderer.render()
    return frames


def _write_gif(path: Path, frames: FloatArray) -> None:
    # One palette for all frames: what does not move then is the same in all, and costs nothing.
    sample = np.concatenate(frames[:: max(len(frames) // 8, 1)])
    palette = Image.fromarray(sample).quantize(COLORS)
    images = [Image.fromarray(frame).quantize(palette=palette, dither=0) for frame in frames]
    images[0].save(
        path,
        save_all=True,
        append_images=images[1:],
        duration=round(1000.0 / FRAMES_PER_SECOND),
        loop=0,
        optimize=True,
    )


def _write_mp4(path: Path, frames: FloatArray) -> None:
    _, height, width, _ = frames.shape
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"]
    given += ["-r", str(FRAMES_PER_SECOND), "-i", "-"]
    command = ["ffmpeg", "-y", "-loglevel", "error", *given, "-pix_fmt", "yuv420p", str(path)]
    subprocess.run(command, input=frames.tobytes(), check=True)


def has_display() -> bool:
    """Whether windows can be opened here."""
    import glfw  # noqa: PLC0415 - the viewer is rarely used

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of what it returns
        return bool(glfw.init())


def show(robot: DemoRobot, recordings: Sequence[Recording]) -> None:
    """Plays recordings in real time, again and again, until the window is closed."""
    motions = [
        (recording.law, _poses(robot, recording, VIEWER_FRAMES_PER_SECOND))
        for recording in recordings
    ]
    every = np.concatenate([poses for _, poses in motions])
    scene = Scene(shapes(robot.path), robot.model.link_names, every)
    scene.place(every[0])
    _play(scene, motions)
    time.sleep(CLOSING)


def _play(scene: Scene, motions: Sequence[tuple[str, FloatArray]]) -> None:
    from mujoco.viewer import launch_passive  # noqa: PLC0415 - the viewer is rarely used

    with launch_passive(scene.model, scene.data, show_left_ui=False, show_right_ui=False) as viewer:
        for name in ("lookat", "distance", "azimuth", "elevation"):
            setattr(viewer.cam, name, getattr(scene.camera, name))
        for law, poses in itertools.cycle(motions):
            viewer.set_texts((None, mujoco.mjtGridPos.mjGRID_TOPLEFT, law, ""))
            for pose in poses:
                if not viewer.is_running():
                    return
                with viewer.lock():
                    scene.place(pose)
                viewer.sync()
                time.sleep(1.0 / VIEWER_FRAMES_PER_SECOND)


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
