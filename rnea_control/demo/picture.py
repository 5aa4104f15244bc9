"""Draws two recordings of one trajectory: positions, errors of both laws, torques and limits."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # a file, no window
import matplotlib.pyplot as plt
import numpy as np

from rnea_control.demo.recording import Recording
from rnea_control.model import RobotModel


def draw(path: Path, model: RobotModel, model_based: Recording, baseline: Recording) -> None:
    """Writes the picture.

    Args:
        path: of the PNG file.
        model: the robot, for names and limits.
        model_based: the run under computed torque.
        baseline: the same trajectory under PD alone.
    """
    colors = plt.get_cmap("turbo")(np.linspace(0.05, 0.95, model.nv))
    figure, axes = plt.subplots(2, 2, figsize=(12.0, 7.2), sharex=True, layout="constrained")
    (position, torque), (error_pd, error_model) = axes
    ratio = baseline.total_rms / model_based.total_rms
    figure.suptitle(
        f"{model.name}: the same trajectory under PD and, {ratio:.0f} times closer, under RNEA "
        "computed torque",
        fontsize=14,
    )
    for j, (name, color) in enumerate(zip(model.joint_names, colors, strict=True)):
        position.plot(model_based.time, model_based.measured[:, j], color=color, label=name)
        position.plot(model_based.time, model_based.desired[:, j], "k--", linewidth=0.9)
        if np.isfinite(model.effort_limit[j]):
            share = 100.0 * model_based.torque[:, j] / model.effort_limit[j]
            torque.plot(model_based.time, share, color=color, linewidth=1.2)
        error_pd.plot(baseline.time, 1e3 * baseline.error[:, j], color=color)
        error_model.plot(model_based.time, 1e3 * model_based.error[:, j], color=color)
    position.plot([], [], "k--", linewidth=0.9, label="desired")
    position.set(title="Positions under computed torque", ylabel="rad or m")
    torque.set(title="Torques under computed torque", ylabel="% of the joint's effort limit")
    torque.axhline(100.0, color="crimson", linestyle=":", label="limit")
    torque.axhline(-100.0, color="crimson", linestyle=":")
    torque.set_ylim(-110.0, 110.0)
    torque.legend(loc="upper right", fontsize=8)
    _title_error(error_pd, baseline, "PD")
    _title_error(error_model, model_based, "computed torque")
    for axis in axes.flat:
        axis.grid(alpha=0.3)
        axis.margins(x=0.0)
    for axis in axes[1]:
        axis.set_xlabel("s")
    if model.nv <= 16:
        figure.legend(*position.get_legend_handles_labels(), loc="outside lower center", ncols=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _title_error(axis: plt.Axes, recording: Recording, name: str) -> None:
    axis.set(
        title=f"Tracking error under {name}: RMS {1e3 * recording.total_rms:.3g} mrad",
        ylabel="mrad",
    )
