"""Draws two recordings of one trajectory: positions, errors of both laws, torques and limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rnea_control.demo.recording import Recording
from rnea_control.demo.report import Kind, comparison, kinds
from rnea_control.model import RobotModel

LEGEND_COLUMNS = 8
LONGEST_NAME = 24  # the end of a name tells joints apart
STYLES = {"turning": "-", "sliding": "-."}
NOTES = {"turning": "", "sliding": ", dash-dotted"}


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
