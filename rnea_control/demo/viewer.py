"""Shows recorded runs in MuJoCo's viewer, one after the other, until its window is closed."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Sequence

import glfw
import mujoco
import mujoco.viewer
import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.demo.recording import Recording
from rnea_control.demo.robots import DemoRobot
from rnea_control.demo.scene import Scene
from rnea_control.demo.shapes import shapes
from rnea_control.demo.skeleton import link_poses

FRAMES_PER_SECOND = 50.0

# The window's thread ends by itself; a process that ends before it may crash, [s].
CLOSING = 1.0


def has_display() -> bool:
    """Whether windows can be opened here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of what it returns
        return bool(glfw.init())


def show(robot: DemoRobot, recordings: Sequence[Recording]) -> None:
    """Plays recordings in real time, again and again, until the window is closed."""
    motions = []
    for recording in recordings:
        times = np.arange(0.0, recording.time[-1], 1.0 / FRAMES_PER_SECOND)
        rows = np.clip(np.searchsorted(recording.time, times), 0, len(recording.time) - 1)
        motions.append((recording.law, link_poses(robot.model, recording.measured[rows])))
    every = np.concatenate([poses for _, poses in motions])
    scene = Scene(shapes(robot.path), robot.model.link_names, every)
    scene.place(every[0])
    _play(scene, motions)
    time.sleep(CLOSING)


def _play(scene: Scene, motions: Sequence[tuple[str, FloatArray]]) -> None:
    with mujoco.viewer.launch_passive(
        scene.model, scene.data, show_left_ui=False, show_right_ui=False
    ) as viewer:
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
                time.sleep(1.0 / FRAMES_PER_SECOND)
