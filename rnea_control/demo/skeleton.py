"""Robots as lines between their joints, drawn by matplotlib: for films where MuJoCo cannot draw,
and for the picture of all robots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import Workspace, forward_kinematics
from rnea_control.model import RobotModel
from rnea_control.model.robot_description import description_from_urdf

# Onto the picture's right and up, from in front, the left and above.
_A, _E = np.radians(40.0), np.radians(20.0)
PROJECTION = np.array(
    [
        [-np.sin(_A), np.cos(_A), 0.0],
        [-np.sin(_E) * np.cos(_A), -np.sin(_E) * np.sin(_A), np.cos(_E)],
    ]
)
COLUMNS = 8


def link_poses(model: RobotModel, positions: FloatArray) -> FloatArray:
    """X_WL of all links at positions, shape (n, nq); shape (n, number of links, 4, 4)."""
    ws = Workspace(model)
    poses = np.zeros((len(positions), len(model.link_names), 4, 4))
    for q, pose in zip(np.ascontiguousarray(positions), poses, strict=True):
        forward_kinematics(model, ws, q, pose)
    return poses


def bones(urdf: Path, model: RobotModel) -> list[tuple[int, int]]:
    """Pairs of links that a joint connects, as their indices in `model.link_names`."""
    joints = description_from_urdf(urdf.read_bytes(), str(urdf)).joints
    index = {link: i for i, link in enumerate(model.link_names)}
    return [(index[joint.parent], index[joint.child]) for joint in joints]


def skeleton_frames(
    poses: FloatArray, pairs: Sequence[tuple[int, int]], size: tuple[int, int]
) -> FloatArray:
    """Pictures of a motion.

    Args:
        poses: of the links, shape (n, number of links, 4, 4).
        pairs: of links, as from `bones`.
        size: width and height, [pixels].

    Returns:
        shape (n, height, width, 3), bytes.
    """
    points = poses[:, :, :3, 3] @ PROJECTION.T
    figure = Figure(figsize=(size[0] / 100.0, size[1] / 100.0), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    lines = _draw(axes, points[0], pairs)
    _frame(axes, points.reshape(-1, 2), size[0] / size[1])
    frames = []
    for now in points:
        lines.set_segments([now[list(pair)] for pair in pairs])
        lines.axes.collections[1].set_offsets(now)
        canvas.draw()
        frames.append(np.asarray(canvas.buffer_rgba())[:, :, :3].copy())
    return np.array(frames)


def draw_robots(
    path: Path, robots: Sequence[tuple[str, FloatArray, Sequence[tuple[int, int]]]]
) -> None:
    """Draws robots side by side.

    Args:
        path: of the picture.
        robots: their names, link poses of shape (number of links, 4, 4), and bones.
    """
    rows = -(-len(robots) // COLUMNS)
    figure = Figure(figsize=(1.8 * COLUMNS, 2.0 * rows), layout="constrained")
    grid = figure.subplots(rows, COLUMNS, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, (name, poses, pairs) in zip(grid.flat, robots, strict=False):
        points = poses[:, :3, 3] @ PROJECTION.T
        _draw(axes, points, pairs)
        _frame(axes, points)
        axes.set_box_aspect(1.0)
        axes.set_title(name.replace("/", "/\n"), fontsize=7)
    figure.savefig(path, dpi=90)


def _draw(axes: Axes, points: FloatArray, pairs: Sequence[tuple[int, int]]) -> LineCollection:
    segments = [points[list(pair)] for pair in pairs]
    colors = colormaps["turbo"](np.linspace(0.1, 0.9, max(len(pairs), 1)))
    lines = axes.add_collection(LineCollection(segments, colors=colors, linewidths=2.5))
    axes.scatter(*points.T, s=6, color="black", zorder=3)
    return lines


def _frame(axes: Axes, points: FloatArray, shape: float = 1.0) -> None:
    """Shows all points, undistorted in axes that are `shape` times as wide as high."""
    low, high = points.min(axis=0), points.max(axis=0)
    width, height = high - low
    half = 0.55 * max(width, height * shape, 0.1)
    x, y = 0.5 * (low + high)
    axes.set(xlim=(x - half, x + half), ylim=(y - half / shape, y + half / shape))
    axes.set_axis_off()
