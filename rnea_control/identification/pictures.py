"""Pictures: measured and predicted torques for the report; of a plan, the shares of the limits and
the expected accuracy. Matplotlib takes a second to import, so that only they do it."""

from __future__ import annotations

import base64
import io
import os
from typing import TYPE_CHECKING, Any

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
MEASURED, BEFORE, AFTER, NOISE = "#a0a0a0", "#d55e00", "#0060a8", "#d9d9d9"
# Bars in one column; with more parameters there are two.
_ROWS = 40
_LONGEST_NAME = 44
_SMALLEST = 1e-4
GOOD_COLOR, POOR_COLOR = "tab:blue", "tab:orange"


def torque_picture(residuals: Residuals, joint: str, unit: str) -> str:
    """Measured and predicted torque of a joint over time, and the errors below: a `data:` address.

    A long recording is drawn by its extremes, so that the picture stays small and no peak is lost.
    `unit` is Nm or N.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415

    j = residuals.joints.index(joint)
    time, noise = residuals.time, float(residuals.noise[j])
    arrays = residuals.measured, residuals.before, residuals.after
    measured, before, after = (values[:, j] for values in arrays)
    figure = Figure(figsize=(8.0, 3.4), dpi=125, layout="constrained")
    torque, error = figure.subplots(2, 1, sharex=True, height_ratios=(1.5, 1.0))
    for values, color, width, label in (
        (measured, MEASURED, 1.8, "measured"),
        (before, BEFORE, 1.0, "by the URDF"),
        (after, AFTER, 1.0, "identified"),
    ):
        torque.plot(*thinned(time, values), color=color, linewidth=width, label=label)
    torque.set_ylabel(f"torque, {unit}" if unit == "Nm" else f"force, {unit}")
    label = "noise, two standard deviations"
    error.axhspan(-2.0 * noise, 2.0 * noise, color=NOISE, linewidth=0.0, label=label)
    error.axhline(0.0, color="black", linewidth=0.6)
    # The larger error lies below, so that it does not hide the other.
    errors = [(measured - before, BEFORE), (measured - after, AFTER)]
    for values, color in sorted(errors, key=lambda line: -np.nansum(line[0] ** 2)):
        error.plot(*thinned(time, values), color=color, linewidth=0.8)
    error.set(ylabel=f"measured less\npredicted, {unit}", xlabel="time, s")
    for axes in (torque, error):
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.margins(x=0.0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.align_ylabels()
    figure.legend(loc="outside upper right", ncols=4, fontsize=9, frameon=False, handlelength=1.4)
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
        low = np.fmin.reduceat(values, starts)
        high = np.fmax.reduceat(values, starts)
        middle = np.minimum(starts + size // 2, len(time) - 1)
        time = np.stack([time[starts], time[middle]], axis=1).ravel()
        values = np.stack([low, high], axis=1).ravel()
    steps = np.diff(time)
    if not len(steps):
        return time, values
    gaps = np.flatnonzero(steps > GAP * np.median(steps)) + 1
    return np.insert(time, gaps, time[gaps]), np.insert(values, gaps, np.nan)


def draw_excitation(path: str | os.PathLike[str], excitation: Excitation) -> None:
    """Draws one period, and the predicted accuracy of each base parameter, to a PNG file, which is
    overwritten."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    columns = 1 if excitation.base.rank <= _ROWS else 2
    width, rows = 4.6 * columns, -(-excitation.base.rank // columns)
    figure = Figure(figsize=(7.0 + width, max(8.0, 1.4 + 0.19 * rows)), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=(7.0, width))
    left, right = parts
    _draw_motion(left.subplots(4, 1, sharex=True), excitation)
    _draw_accuracy(right.subplots(1, columns, sharex=True, squeeze=False)[0], excitation)
    left.suptitle(
        f"{excitation.model.name}: {excitation.series.period:g} s, condition number "
        f"{excitation.condition:.3g}"
    )
    right.supxlabel(
        "standard deviation, relative to the parameter,\n"
        f"or to what makes {100.0 * NEGLIGIBLE:g} % of the torque allowed",
        fontsize=9,
    )
    right.suptitle(f"predicted deviation of the parameters after {excitation.duration:g} s")
    figure.savefig(os.fspath(path), format="png", dpi=110)


def _draw_motion(axes: list[Axes], excitation: Excitation) -> None:
    """Positions within their ranges, and the rest as shares of the limits."""
    limits, time = excitation.limits, np.linspace(0.0, excitation.series.period, POINTS)
    q, v, a = excitation.sample(time)
    tau = inverse_dynamics_batch(excitation.model, q, v, a)
    middle, half = 0.5 * (limits.upper + limits.lower), 0.5 * (limits.upper - limits.lower)
    shares = {
        "position\nin its range": (q - middle) / half,
        "velocity\nof what is allowed": v / limits.velocity,
        "acceleration\nof what is allowed": a / limits.acceleration,
        "torque\nof what is allowed": tau / limits.torque,
    }
    for axis, (label, values) in zip(axes, shares.items(), strict=True):
        for j, name in enumerate(excitation.model.joint_names):
            style = "-" if j < 10 else "--"
            axis.plot(time, values[:, j], color=f"C{j % 10}", ls=style, linewidth=1.3, label=name)
        for bound in (-1.0, 1.0):
            axis.axhline(bound, color="crimson", linestyle=":")
        axis.set(ylabel=label, ylim=(-1.1, 1.1))
        axis.set_yticks([-1.0, 0.0, 1.0], ["-100 %", "0", "100 %"])
        axis.grid(alpha=0.3)
        axis.margins(x=0.0)
    axes[0].set_yticks([-1.0, 0.0, 1.0], ["lower", "middle", "upper"])
    axes[-1].set_xlabel("time, s")
    columns = min(4, len(excitation.model.joint_names))
    axes[0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, fontsize=8)


def _draw_accuracy(axes: list[Axes], excitation: Excitation) -> None:
    """A bar for each parameter, the worst one first."""
    relative = excitation.relative_deviation
    order = np.argsort(-relative, kind="stable")
    finite = relative[np.isfinite(relative)]
    largest = max(float(finite.max(initial=POOR)), POOR) * 1.6
    smallest = max(float(finite.min(initial=POOR)) / 1.6, _SMALLEST)
    for axis, part in zip(axes, np.array_split(order, len(axes)), strict=True):
        values = np.clip(relative[part], smallest, largest)
        names = [shortened(excitation.base.names[i], _LONGEST_NAME) for i in part]
        colors = np.where(relative[part] > POOR, POOR_COLOR, GOOD_COLOR).tolist()
        axis.barh(np.arange(len(part)), values, color=colors, height=0.7, tick_label=names)
        axis.tick_params(axis="y", labelsize=7.5, length=0.0)
        axis.set(xscale="log", xlim=(smallest, largest), ylim=(len(part) - 0.4, -0.6))
        axis.axvline(POOR, color="crimson", linestyle=":")
        axis.xaxis.set_major_formatter(lambda value, _: f"{100.0 * value:g} %")
        axis.xaxis.set_minor_formatter("")
        axis.grid(alpha=0.3, axis="x")
        axis.set_axisbelow(True)


def shortened(name: str, longest: int) -> str:
    """The first terms of a sum, as many as fit into so many characters, at least one."""
    if len(name) <= longest:
        return name
    words = name.split(" ")
    ends = [i for i, word in enumerate(words) if word in ("+", "-")]
    fitting = [end for end in ends if len(" ".join(words[:end])) + len(" ...") <= longest]
    end = max(fitting, default=ends[0] if ends else len(words))
    return f"{' '.join(words[:end])} ..." if end < len(words) else name
