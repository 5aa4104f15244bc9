"""Films docs/pushed.gif: a simulated Panda that is held by Cartesian impedance, and pushed.

python benchmark/pushed_arm.py docs/pushed.gif
"""

from __future__ import annotations

import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from rnea_control.array_types import FloatArray
from rnea_control.control import ControlLaw, Controller, ControllerSettings, Gains
from rnea_control.demo.film import FRAMES_PER_SECOND, drawing_backend, write_gif
from rnea_control.demo.robots import find_urdf
from rnea_control.demo.scene import render
from rnea_control.dynamics import Workspace, aba, forward_kinematics, jacobian
from rnea_control.model import RobotModel

PERIOD = 0.0005  # period of the control loop and the integration [s]
TIP = "panda_hand_tcp"
READY = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
# Pushes: duration [s], force on the tip [N].
PUSHES = (
    (0.6, (0.0, 0.0, 0.0)),
    (1.6, (0.0, 50.0, 0.0)),
    (1.2, (0.0, 0.0, 0.0)),
    (1.6, (0.0, 0.0, -50.0)),
    (1.2, (0.0, 0.0, 0.0)),
)


def main(path: Path) -> None:
    """Runs the arm, and writes the film."""
    _, urdf = find_urdf("panda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RobotModel.from_urdf_file(urdf, joints=[f"panda_joint{i}" for i in range(1, 8)])
    poses, captions = pushed(model)
    os.environ["MUJOCO_GL"] = drawing_backend()  # read by MuJoCo at its import
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        frames = pool.submit(render, urdf, model.link_names, poses).result()
    write_gif(path, np.array([written(*each) for each in zip(frames, captions, strict=True)]))


def pushed(model: RobotModel) -> tuple[FloatArray, list[str]]:
    """Poses of the links in each frame, shape (n, links, 4, 4), and captions."""
    settings = ControllerSettings(
        Gains.uniform(7, 400.0, 40.0), ControlLaw.cartesian_impedance, tip=TIP
    )
    controller, ws = Controller(model, settings), Workspace(model)
    q, v, a, tau = READY.copy(), np.zeros(7), np.zeros(7), np.zeros(7)
    J, place = np.zeros((6, 7)), model.link_names.index(TIP)
    controller.hold(0.0, q)
    start, poses, captions, t = None, [], [], 0.0
    for duration, force in PUSHES:
        for _ in range(round(duration / PERIOD)):
            t += PERIOD
            controller.step(t, q, v, tau)
            jacobian(model, ws, q, TIP, J)
            aba(model, ws, q, v, tau + J[:3].T @ np.array(force), a)
            v = v + PERIOD * a
            q = q + PERIOD * v
            if t * FRAMES_PER_SECOND < len(poses):
                continue
            X = np.zeros((len(model.link_names), 4, 4))
            forward_kinematics(model, ws, q, X)
            start = X[place, :3, 3].copy() if start is None else start
            moved = 1e3 * np.linalg.norm(X[place, :3, 3] - start)
            poses.append(X)
            captions.append(f"push {np.linalg.norm(force):.0f} N, tip moved {moved:.0f} mm")
    return np.array(poses), captions


def written(frame: FloatArray, caption: str) -> FloatArray:
    """The frame with a caption."""
    image = Image.fromarray(frame)
    ImageDraw.Draw(image).text((8, 8), caption, fill=(0, 0, 0), font_size=18)
    return np.asarray(image)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pushed.gif"))
