"""Films of recorded motions, drawn by MuJoCo if it can draw without a window, else as lines between
the joints; and playback in MuJoCo's viewer."""

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

FRAMES_PER_SECOND = 12.5  # a multiple of the time unit of GIF, 0.01 s
COLORS = 32  # number of colors of a GIF
VIEWER_FRAMES_PER_SECOND = 50.0

BACKENDS = ("egl", "osmesa")  # values of MUJOCO_GL for drawing without a window
# Program that fails where MuJoCo cannot draw with the backend in MUJOCO_GL.
TRIAL = "import mujoco; mujoco.Renderer(mujoco.MjModel.from_xml_string('<mujoco/>'))"

CLOSING = 1.0  # time for the end of the viewer's thread, without which the process may crash [s]


def drawing_backend() -> str:
    """Value of MUJOCO_GL with which MuJoCo can draw without a window; empty if there is none. A
    value in the environment takes precedence. A separate process tries each value, as a driver may
    crash."""
    given = os.environ.get("MUJOCO_GL")
    for backend in [given] if given else BACKENDS:
        trial = [sys.executable, "-c", TRIAL]
        environment = {**os.environ, "MUJOCO_GL": backend}
        if subprocess.run(trial, env=environment, capture_output=True, check=False).returncode == 0:
            return backend
    return ""


def film(path: Path, robot: DemoRobot, recording: Recording) -> str:
    """Writes a film of a recording at real speed, .gif or .mp4; returns how it was drawn."""
    poses = link_poses(robot, recording, FRAMES_PER_SECOND)
    if backend := drawing_backend():
        how = "by MuJoCo"
        os.environ["MUJOCO_GL"] = backend  # read by MuJoCo at its import
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            frames = pool.submit(render, robot.path, robot.model.link_names, poses).result()
    else:
        how = "as lines: MuJoCo needs EGL or OSMesa to draw without a window"
        frames = skeletons(robot.path, robot.model, poses)
    (write_gif if path.suffix.lower() == ".gif" else _write_mp4)(path, frames)
    return how


def link_poses(robot: DemoRobot, recording: Recording, frames_per_second: float) -> FloatArray:
    """Poses X_WL of all links in each frame of a recording, shape (frames, links, 4, 4)."""
    count = max(int(recording.time[-1] * frames_per_second), 1)
    times = np.arange(count) / frames_per_second
    rows = np.clip(np.searchsorted(recording.time, times), 0, len(recording.time) - 1)
    ws = Workspace(robot.model)
    poses = np.zeros((count, len(robot.model.link_names), 4, 4))
    for q, pose in zip(np.ascontiguousarray(recording.measured[rows]), poses, strict=True):
        forward_kinematics(robot.model, ws, q, pose)
    return poses


def write_gif(path: Path, frames: FloatArray) -> None:
    """Writes frames, shape (n, height, width, 3), bytes, as a film."""
    # With a common palette, pixels that do not change take no space in later frames.
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
    """True if windows can be opened."""
    import glfw  # noqa: PLC0415 - the viewer is rarely used

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a missing display is also the return value
        return bool(glfw.init())


def show(robot: DemoRobot, recordings: Sequence[Recording]) -> None:
    """Plays recordings at real speed in a loop until the window is closed."""
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
