"""Pictures: measured and predicted torques for the report; of a plan, the shares of the limits and
the expected accuracy. Matplotlib takes a second to import, so that only they do it."""

from __future__ import annotations

import base64
import io
import os
import re
from typing import TYPE_CHECKING

import numpy as np

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.identification.excitation import NEGLIGIBLE, POOR, Excitation
from rnea_control.identification.verdict import Residuals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points of a line: more than a picture has columns.
POINTS = 2000
# A line is broken where samples are missing for this many periods.
GAP = 5.0
# Bars end here, relative to the parameter.
SMALLEST, LARGEST = 1e-4, 10.0
_LONGEST_NAME = 44


def torque_picture(residuals: Residuals, j: int, unit: str) -> str:
    """Measured and predicted torque of joint j over time, and the errors below: a `data:` address.

    A long recording is drawn by its extremes, so that the picture stays small and no peak is lost.
    `unit` is Nm or N.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8.0, 3.4), dpi=125, layout="constrained")
    torque, error = figure.subplots(2, 1, sharex=True)
    noise, measured = 2.0 * residuals.noise[j], residuals.measured[:, j]
    torque.plot(*thinned(residuals.time, measured), color="silver", label="measured")
    label = "noise, two standard deviations"
    error.axhspan(-noise, noise, color="lightgray", label=label)
    models = (residuals.before, "C1", "by the URDF"), (residuals.after, "C0", "identified")
    for predicted, color, label in models:
        values = predicted[:, j]
        torque.plot(*thinned(residuals.time, values), color=color, label=label)
        error.plot(*thinned(residuals.time, measured - values), color=color, linewidth=0.8)
    torque.set_ylabel(f"torque, {unit}" if unit == "Nm" else f"force, {unit}")
    error.set(ylabel=f"measured less\npredicted, {unit}", xlabel="time, s")
    figure.legend(loc="outside upper right", ncols=4)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return f"data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()}"


def thinned(time: FloatArray, values: FloatArray, points: int = POINTS) -> tuple[FloatArray, ...]:
    """A line through not many more than `points` points that looks like the whole one, shape
    (samples,), over ascending times: the smallest and the largest value of each stretch. Broken by
    NaN where samples are missing."""
    size = -(-2 * len(time) // points)
    if size > 2:
        starts = np.arange(0, len(time), size)
        middle = np.minimum(starts + size // 2, len(time) - 1)
        extremes = np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)
        time = np.stack([time[starts], time[middle]], axis=1).ravel()
        values = np.stack(extremes, axis=1).ravel()
    steps = np.diff(time, prepend=time[:1])
    gaps = np.flatnonzero(steps > GAP * np.median(steps))
    return np.insert(time, gaps, time[gaps]), np.insert(values, gaps, np.nan)


def draw_excitation(path: str | os.PathLike[str], excitation: Excitation) -> None:
    """Draws one period, and the predicted accuracy of each base parameter, to a PNG file, which is
    overwritten."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    limits, time = excitation.limits, np.linspace(0.0, excitation.duration, POINTS)
    q, v, a = excitation.sample(time)
    tau = inverse_dynamics_batch(excitation.model, q, v, a)
    figure = Figure(figsize=(14.0, max(8.0, 0.17 * excitation.base.rank)), layout="constrained")
    kinds = ("position", "velocity", "acceleration", "torque")
    axes = figure.subplot_mosaic([[kind, "accuracy"] for kind in kinds])
    for kind, shares in zip(kinds, limits.shares(q, v, a, tau), strict=True):
        axis = axes[kind]
        for j, name in enumerate(excitation.model.joint_names):
            axis.plot(time, 100.0 * shares[:, j], "-" if j < 10 else "--", label=name)
        for bound in (-100.0, 100.0):
            axis.axhline(bound, color="crimson", linestyle=":")
        axis.set_ylabel(f"{kind}, %\nof what is allowed")
    axes["position"].set(
        title=f"{excitation.model.name}: {excitation.duration:g} s, condition number "
        f"{excitation.condition:.3g}",
        ylabel="position, %\nof half the range",
    )
    axes["torque"].set_xlabel("time, s")
    figure.legend(*axes["position"].get_legend_handles_labels(), loc="outside lower left", ncols=4)
    _draw_accuracy(axes["accuracy"], excitation)
    figure.savefig(os.fspath(path), format="png", dpi=110)


def _draw_accuracy(axis: Axes, excitation: Excitation) -> None:
    """A bar for each parameter, the worst one first."""
    relative = excitation.relative_deviation
    order = np.argsort(relative, kind="stable")
    shares = np.clip(relative[order], SMALLEST, LARGEST)
    axis.barh(
        range(len(order)),
        100.0 * shares,
        color=np.where(shares > POOR, "C1", "C0").tolist(),
        tick_label=[shortened(excitation.base.names[k], _LONGEST_NAME) for k in order],
    )
    axis.set(
        xscale="log",
        ylim=(-0.6, len(order) - 0.4),
        title=f"predicted deviation of the parameters after {excitation.duration:g} s",
        xlabel="standard deviation, % of the parameter,\n"
        f"or of what makes {100.0 * NEGLIGIBLE:g} % of the torque allowed",
    )
    axis.axvline(100.0 * POOR, color="crimson", linestyle=":")
    axis.tick_params(axis="y", labelsize="small")


def shortened(name: str, longest: int) -> str:
    """The first terms of a sum, as many as fit into so many characters, at least one."""
    ends = [found.start() for found in re.finditer(r" [+-] ", name)]
    if len(name) <= longest or not ends:
        return name
    fitting = [end for end in ends if end + len(" ...") <= longest]
    return f"{name[: max(fitting, default=ends[0])]} ..."
