"""What matplotlib draws: two recordings of one trajectory, with errors of both laws, torques and
limits; and robots as lines between their joints, for films where MuJoCo cannot draw, and for the
picture of all robots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rnea_control.array_types import FloatArray
from rnea_control.demo.recording import Recording
from rnea_control.demo.report import Kind, comparison, kinds
from rnea_control.dynamics import Workspace, forward_kinematics
from rnea_control.model import RobotModel
from rnea_control.model.robot_description import description_from_urdf

LEGEND_COLUMNS = 8
LONGEST_NAME = 24  # the end of a name tells joints apart
STYLES = {"turning": "-", "sliding": "-."}
NOTES = {"turning": "", "sliding": ", dash-dotted"}

# Onto the picture's right and up, from in front, the left and above.
_A, _E = np.radians(40.0), np.radians(20.0)
PROJECTION = np.array(
    [
        [-np.sin(_A), np.cos(_A), 0.0],
        [-np.sin(_E) * np.cos(_A), -np.sin(_E) * np.sin(_A), np.cos(_E)],
    ]
)
ROBOTS_IN_A_ROW = 8


def draw(
    path: Path,
    model: RobotModel,
    model_based: Recording,
    baseline: Recording,
    disturbed: bool = False,
) -> None:
    """Writes the picture.

    Args:
        path: of the picture.
        model: the robot, for names and limits.
        model_based: the run under computed torque.
        baseline: the same trajectory under PD alone.
        disturbed: whether the runs are no comparison: the picture then gives no figures.
    """
    rows = -(-(model.nv + 1) // LEGEND_COLUMNS)
    size = (12.0, 7.0 + 0.2 * rows)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    (position, torque), (error_pd, error_model) = axes
    if disturbed:
        figure.suptitle(f"{model.name}: disturbed, no comparison", fontsize=14, color="crimson")
    else:
        results = "; ".join(comparison(kind, model_based, baseline) for kind in kinds(model))
        title = f"{model.name}: the same trajectory under PD and under RNEA computed torque"
        figure.suptitle(f"{title}\n{results}", fontsize=14)
    colors = colormaps["turbo"](np.linspace(0.05, 0.95, model.nv))
    for kind, scale in _scales(position, model, [kind.position for kind in kinds(model)]):
        for j in kind.joints:
            scale.plot(
                model_based.time, model_based.measured[:, j], STYLES[kind.name], color=colors[j]
            )
            scale.plot(model_based.time, model_based.desired[:, j], "k--", linewidth=0.9)
    for axis, recording in ((error_pd, baseline), (error_model, model_based)):
        for kind, scale in _scales(axis, model, [kind.error for kind in kinds(model)]):
            for j in kind.joints:
                error = 1e3 * recording.error[:, j]
                scale.plot(recording.time, error, STYLES[kind.name], color=colors[j])
    for j, color in enumerate(colors):
        if np.isfinite(model.effort_limit[j]):
            share = 100.0 * model_based.torque[:, j] / model.effort_limit[j]
            torque.plot(model_based.time, share, color=color, linewidth=1.2)
    position.set(title="Positions under computed torque")
    torque.set(title="Torques under computed torque", ylabel="% of the joint's effort limit")
    torque.axhline(100.0, color="crimson", linestyle=":", label="limit")
    torque.axhline(-100.0, color="crimson", linestyle=":")
    torque.set_ylim(-110.0, 110.0)
    torque.legend(loc="upper right", fontsize=8)
    _title_error(error_pd, model, baseline, "PD", disturbed)
    _title_error(error_model, model, model_based, "computed torque", disturbed)
    for axis in axes.flat:
        axis.grid(alpha=0.3)
        axis.margins(x=0.0)
    for axis in axes[1]:
        axis.set_xlabel("s")
    handles = [
        Line2D([], [], color=color, label=_short(name))
        for name, color in zip(model.joint_names, colors, strict=True)
    ]
    handles.append(Line2D([], [], color="k", linestyle="--", linewidth=0.9, label="desired"))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=LEGEND_COLUMNS if model.nv < 32 else LEGEND_COLUMNS - 2,
        fontsize=9 if model.nv < 16 else 6,
    )
    figure.savefig(path, dpi=110)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"


def _scales(axis: Axes, model: RobotModel, units: list[str]) -> Iterator[tuple[Kind, Axes]]:
    """The kinds of joints with the scale of each: the first one's on the left, the second one's on
    the right."""
    found = kinds(model)
    for place, (kind, unit) in enumerate(zip(found, units, strict=True)):
        scale = axis if place == 0 else axis.twinx()
        scale.set_ylabel(
            unit if len(found) == 1 else f"{unit} ({kind.name} joints{NOTES[kind.name]})"
        )
        yield kind, scale


def _title_error(
    axis: Axes, model: RobotModel, recording: Recording, name: str, disturbed: bool
) -> None:
    title = f"Tracking error under {name}"
    if not disturbed:
        rms = [
            f"{1e3 * recording.total_rms(kind.joints):.3g} {kind.error}" for kind in kinds(model)
        ]
        title += f": RMS {', '.join(rms)}"
    axis.set(title=title)


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
    lines = _draw_lines(axes, points[0], pairs)
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
    rows = -(-len(robots) // ROBOTS_IN_A_ROW)
    figure = Figure(figsize=(1.8 * ROBOTS_IN_A_ROW, 2.0 * rows), layout="constrained")
    grid = figure.subplots(rows, ROBOTS_IN_A_ROW, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, (name, poses, pairs) in zip(grid.flat, robots, strict=False):
        points = poses[:, :3, 3] @ PROJECTION.T
        _draw_lines(axes, points, pairs)
        _frame(axes, points)
        axes.set_box_aspect(1.0)
        axes.set_title(name.replace("/", "/\n"), fontsize=7)
    figure.savefig(path, dpi=90)


def _draw_lines(axes: Axes, points: FloatArray, pairs: Sequence[tuple[int, int]]) -> LineCollection:
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
