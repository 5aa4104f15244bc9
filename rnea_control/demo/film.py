"""Films of recorded motions, each link placed as recorded: by MuJoCo where it can draw without a
window, else as lines between the joints; and MuJoCo's viewer."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
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
from rnea_control.demo.robots import DemoRobot
from rnea_control.demo.run import Recording
from rnea_control.demo.scene import Scene, render
from rnea_control.demo.skeleton import skeletons
from rnea_control.dynamics import Workspace, forward_kinematics

FRAMES_PER_SECOND = 12.5  # GIF counts in hundredths of a second
COLORS = 32
VIEWER_FRAMES_PER_SECOND = 50.0

# What MuJoCo may draw with where there is no window, and a program that tries it.
BACKENDS = ("egl", "osmesa")
TRIAL = "import mujoco; mujoco.Renderer(mujoco.MjModel.from_xml_string('<mujoco/>'))"

# The viewer's thread ends by itself; a process that ends before it may crash, [s].
CLOSING = 1.0


def drawing_backend() -> str:
    """What MuJoCo can draw with here without a window, for MUJOCO_GL, which may name one already;
    empty if there is nothing. Each is tried in a process of its own, as a driver may crash it."""
    given = os.environ.get("MUJOCO_GL")
    for backend in [given] if given else BACKENDS:
        trial = [sys.executable, "-c", TRIAL]
        environment = {**os.environ, "MUJOCO_GL": backend}
        if subprocess.run(trial, env=environment, capture_output=True, check=False).returncode == 0:
            return backend
    return ""


def film(path: Path, robot: DemoRobot, recording: Recording) -> str:
    """Writes a film of a recording, .gif or .mp4, in real time; returns how it was drawn."""
    poses = link_poses(robot, recording, FRAMES_PER_SECOND)
    if backend := drawing_backend():
        how = "by MuJoCo"
        os.environ["MUJOCO_GL"] = backend  # MuJoCo reads it when it is imported
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            frames = pool.submit(render, robot.path, robot.model.link_names, poses).result()
    else:
        how = "as lines: MuJoCo needs EGL or OSMesa to draw without a window"
        frames = skeletons(robot.path, robot.model, poses)
    (_write_gif if path.suffix.lower() == ".gif" else _write_mp4)(path, frames)
    return how


def link_poses(robot: DemoRobot, recording: Recording, frames_per_second: float) -> FloatArray:
    """X_WL of all links in each frame of a recording, shape (frames, number of links, 4, 4)."""
    count = max(int(recording.time[-1] * frames_per_second), 1)
    times = np.arange(count) / frames_per_second
    rows = np.clip(np.searchsorted(recording.time, times), 0, len(recording.time) - 1)
    ws = Workspace(robot.model)
    poses = np.zeros((count, len(robot.model.link_names), 4, 4))
    for q, pose in zip(np.ascontiguousarray(recording.measured[rows]), poses, strict=True):
        forward_kinematics(robot.model, ws, q, pose)
    return poses


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

    motions = [link_poses(robot, each, VIEWER_FRAMES_PER_SECOND) for each in recordings]
    scene = Scene(robot.path, robot.model.link_names, np.concatenate(motions))
    scene.place(motions[0][0])
    with launch_passive(scene.model, scene.data, show_left_ui=False, show_right_ui=False) as viewer:
        for name in ("lookat", "distance", "azimuth", "elevation"):
            setattr(viewer.cam, name, getattr(scene.camera, name))
        for recording, pose in itertools.cycle(
            (recording, pose)
            for recording, poses in zip(recordings, motions, strict=True)
            for pose in poses
        ):
            if not viewer.is_running():
                break
            viewer.set_texts((None, mujoco.mjtGridPos.mjGRID_TOPLEFT, recording.case.title, ""))
            with viewer.lock():
                scene.place(pose)
            viewer.sync()
            time.sleep(1.0 / VIEWER_FRAMES_PER_SECOND)
    time.sleep(CLOSING)
