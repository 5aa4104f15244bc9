"""Drawing of robots as lines between their joints: films without MuJoCo, and pictures of many."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.demo.scene import SIZE
from rnea_control.dynamics import Workspace, forward_kinematics
from rnea_control.model import RobotModel
from rnea_control.model.robot_description import description_from_urdf

_A = np.radians(40.0)  # azimuth of the camera [rad]
_E = np.radians(20.0)  # elevation of the camera [rad]
# Projection of a point onto the right and upward directions of the picture.
PROJECTION = np.array(
    [
        [-np.sin(_A), np.cos(_A), 0.0],
        [-np.sin(_E) * np.cos(_A), -np.sin(_E) * np.sin(_A), np.cos(_E)],
    ]
)
ROBOTS_IN_A_ROW = 8


def skeletons(urdf: Path, model: RobotModel, poses: FloatArray) -> FloatArray:
    """Frames of a motion, shape (frames, height, width, 3), bytes, from the poses X_WL of all
    links, shape (frames, number of links, 4, 4)."""
    figure = Figure(figsize=(SIZE[0] / 100.0, SIZE[1] / 100.0), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    points = poses[:, :, :3, 3] @ PROJECTION.T
    joints = _draw(axes, urdf, model, points, SIZE[0] / SIZE[1])
    lines, dots = axes.collections
    frames = []
    for now in points:
        lines.set_segments(now[joints])
        dots.set_offsets(now)
        canvas.draw()
        frames.append(np.asarray(canvas.buffer_rgba())[:, :, :3].copy())
    return np.array(frames)


def draw_robots(picture: Path, robots: Mapping[str, tuple[Path, RobotModel]]) -> None:
    """Draws robots side by side at their neutral positions.

    Args:
        picture: file for the picture.
        robots: URDF file and model by name.
    """
    rows = -(-len(robots) // ROBOTS_IN_A_ROW)
    figure = Figure(figsize=(1.8 * ROBOTS_IN_A_ROW, 2.0 * rows), layout="constrained")
    grid = figure.subplots(rows, ROBOTS_IN_A_ROW, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, (name, (urdf, model)) in zip(grid.flat, robots.items(), strict=False):
        poses = np.zeros((len(model.link_names), 4, 4))
        forward_kinematics(model, Workspace(model), model.neutral(), poses)
        _draw(axes, urdf, model, poses[None, :, :3, 3] @ PROJECTION.T, 1.0)
        axes.set_box_aspect(1.0)
        axes.set_title(name.replace("/", "/\n"), fontsize=7)
    figure.savefig(picture, dpi=90)


def _draw(axes: Axes, urdf: Path, model: RobotModel, points: FloatArray, shape: float) -> IntArray:
    """Draws a robot at the first of `points`, in axes that show all points undistorted.

    Args:
        axes: axes to draw in.
        urdf: URDF file of the robot.
        model: model of the robot.
        points: projected origins of the links, shape (frames, number of links, 2).
        shape: ratio of width to height of the axes.

    Returns:
        Indices of parent and child link of each joint, shape (joints, 2).
    """
    index = model.link_names.index
    described = description_from_urdf(urdf.read_bytes(), str(urdf)).joints
    joints = np.array([(index(each.parent), index(each.child)) for each in described])
    colors = colormaps["turbo"](np.linspace(0.1, 0.9, len(joints)))
    axes.add_collection(LineCollection(points[0][joints], colors=colors, linewidths=2.5))
    axes.scatter(*points[0].T, s=6, color="black", zorder=3)
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    half = 0.55 * max(high[0] - low[0], shape * (high[1] - low[1]), 0.1)
    x, y = 0.5 * (low + high)
    axes.set(xlim=(x - half, x + half), ylim=(y - half / shape, y + half / shape))
    axes.set_axis_off()
    return joints
