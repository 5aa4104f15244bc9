"""Films of recorded motions, each link placed as recorded: by MuJoCo, where it can draw without a
window, else as lines between the joints; MuJoCo's viewer; and a picture of many robots, as lines.
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
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from PIL import Image

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.demo.robots import DemoRobot, Entry
from rnea_control.demo.run import Recording
from rnea_control.demo.scene import SIZE, Scene, render
from rnea_control.dynamics import Workspace, forward_kinematics
from rnea_control.model import RobotModel
from rnea_control.model.robot_description import description_from_urdf

FRAMES_PER_SECOND = 12.5  # GIF counts in hundredths of a second
COLORS = 32
VIEWER_FRAMES_PER_SECOND = 50.0

# What MuJoCo may draw with where there is no window; each is tried in a process of its own, as a
# driver may crash it, and for no longer than this, [s].
BACKENDS = ("egl", "osmesa")
LONGEST_DRAWING = 300.0

# The viewer's thread ends by itself; a process that ends before it may crash, [s].
CLOSING = 1.0

# Onto the picture's right and up, from in front, the left and above.
_A, _E = np.radians(40.0), np.radians(20.0)
PROJECTION = np.array(
    [
        [-np.sin(_A), np.cos(_A), 0.0],
        [-np.sin(_E) * np.cos(_A), -np.sin(_E) * np.sin(_A), np.cos(_E)],
    ]
)
ROBOTS_IN_A_ROW = 8


def film(path: Path, robot: DemoRobot, recording: Recording) -> str:
    """Writes a film of a recording, .gif or .mp4, in real time; returns what it was drawn with."""
    poses = _poses(robot, recording, FRAMES_PER_SECOND)
    frames, objections = drawn_by_mujoco(robot.path, robot.model.link_names, poses)
    how = "MuJoCo"
    if frames is None:
        frames = skeleton_frames(robot.path, robot.model, poses)
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
    urdf: Path, links: Sequence[str], poses: FloatArray, backends: Sequence[str] = BACKENDS
) -> tuple[FloatArray | None, list[str]]:
    """Pictures of a motion, shape (n, height, width, 3), bytes; None where no backend works. With
    them what was wrong with the backends that do not, a sentence each.

    Arguments as of `Scene`; `backends` are values of MUJOCO_GL to try, of which one that is set
    already is the only one.
    """
    set_already, objections = os.environ.get("MUJOCO_GL"), []
    for backend in [set_already] if set_already else backends:
        os.environ["MUJOCO_GL"] = backend  # the new process reads it
        try:
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                frames = pool.submit(render, urdf, links, poses).result(LONGEST_DRAWING)
                return frames, objections
        except Exception as error:  # whatever the driver does: there is another way
            objections.append(f"{backend}: {error!r}")
        finally:
            if set_already is None:
                del os.environ["MUJOCO_GL"]
    return None, objections


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
    given = f"-f rawvideo -pix_fmt rgb24 -s {width}x{height} -r {FRAMES_PER_SECOND} -i -"
    command = f"ffmpeg -y -loglevel error {given} -pix_fmt yuv420p".split()
    subprocess.run([*command, str(path)], input=frames.tobytes(), check=True)


def has_display() -> bool:
    """Whether windows can be opened here."""
    import glfw  # noqa: PLC0415 - the viewer is rarely used

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of what it returns
        return bool(glfw.init())


def show(robot: DemoRobot, recordings: Sequence[Recording]) -> None:
    """Plays recordings in real time, again and again, until the window is closed."""
    from mujoco.viewer import launch_passive  # noqa: PLC0415 - the viewer is rarely used

    laws = [recording.law for recording in recordings]
    motions = [_poses(robot, recording, VIEWER_FRAMES_PER_SECOND) for recording in recordings]
    every = np.concatenate(motions)
    scene = Scene(robot.path, robot.model.link_names, every)
    scene.place(every[0])
    with launch_passive(scene.model, scene.data, show_left_ui=False, show_right_ui=False) as viewer:
        for name in ("lookat", "distance", "azimuth", "elevation"):
            setattr(viewer.cam, name, getattr(scene.camera, name))
        for law, pose in itertools.cycle(
            (law, pose) for law, poses in zip(laws, motions, strict=True) for pose in poses
        ):
            if not viewer.is_running():
                break
            viewer.set_texts((None, mujoco.mjtGridPos.mjGRID_TOPLEFT, law, ""))
            with viewer.lock():
                scene.place(pose)
            viewer.sync()
            time.sleep(1.0 / VIEWER_FRAMES_PER_SECOND)
    time.sleep(CLOSING)


def link_poses(model: RobotModel, positions: FloatArray) -> FloatArray:
    """X_WL of all links at positions, shape (n, nq); shape (n, number of links, 4, 4)."""
    ws = Workspace(model)
    poses = np.zeros((len(positions), len(model.link_names), 4, 4))
    for q, pose in zip(np.ascontiguousarray(positions), poses, strict=True):
        forward_kinematics(model, ws, q, pose)
    return poses


def skeleton_frames(urdf: Path, model: RobotModel, poses: FloatArray) -> FloatArray:
    """Pictures of a motion, shape (n, height, width, 3), bytes, from the poses of all links, shape
    (n, number of links, 4, 4)."""
    figure = Figure(figsize=(SIZE[0] / 100.0, SIZE[1] / 100.0), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    points = poses[:, :, :3, 3] @ PROJECTION.T
    pairs = _draw_bones(axes, urdf, model, points, SIZE[0] / SIZE[1])
    lines, dots = axes.collections
    frames = []
    for now in points:
        lines.set_segments(now[pairs])
        dots.set_offsets(now)
        canvas.draw()
        frames.append(np.asarray(canvas.buffer_rgba())[:, :, :3].copy())
    return np.array(frames)


def draw_robots(path: Path, robots: Sequence[Entry]) -> None:
    """Draws robots side by side, those that have a joint."""
    moving = [(each, each.model) for each in robots if each.model and each.model.nv]
    rows = -(-len(moving) // ROBOTS_IN_A_ROW)
    figure = Figure(figsize=(1.8 * ROBOTS_IN_A_ROW, 2.0 * rows), layout="constrained")
    grid = figure.subplots(rows, ROBOTS_IN_A_ROW, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, (robot, model) in zip(grid.flat, moving, strict=False):
        points = link_poses(model, model.neutral()[None])[:, :, :3, 3] @ PROJECTION.T
        _draw_bones(axes, robot.path, model, points)
        axes.set_box_aspect(1.0)
        axes.set_title(robot.name.replace("/", "/\n"), fontsize=7)
    figure.savefig(path, dpi=90)


def _draw_bones(
    axes: Axes, urdf: Path, model: RobotModel, points: FloatArray, shape: float = 1.0
) -> IntArray:
    """Draws the joints between links at the first of `points`, shape (n, number of links, 2), in
    axes that show all of them undistorted, `shape` times as wide as high; returns the pairs of
    links, shape (joints, 2)."""
    joints = description_from_urdf(urdf.read_bytes(), str(urdf)).joints
    index = model.link_names.index
    pairs = np.array([(index(joint.parent), index(joint.child)) for joint in joints])
    colors = colormaps["turbo"](np.linspace(0.1, 0.9, len(pairs)))
    axes.add_collection(LineCollection(points[0][pairs], colors=colors, linewidths=2.5))
    axes.scatter(*points[0].T, s=6, color="black", zorder=3)
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    width, height = high - low
    half = 0.55 * max(width, height * shape, 0.1)
    x, y = 0.5 * (low + high)
    axes.set(xlim=(x - half, x + half), ylim=(y - half / shape, y + half / shape))
    axes.set_axis_off()
    return pairs
