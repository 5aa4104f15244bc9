"""Pictures of measured and predicted torques for the report, as PNG in base64."""

from __future__ import annotations

import base64
import io

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.identification.result import Residuals

# Points of a line: more than a picture has columns.
POINTS = 2000
# A line is broken where samples are missing for this many periods.
GAP = 5.0

_SIZE, _DPI = (8.0, 3.4), 125
MEASURED, BEFORE, AFTER, NOISE = "#a0a0a0", "#d55e00", "#0060a8", "#d9d9d9"


def torque_picture(residuals: Residuals, joint: str, unit: str) -> str:
    """Measured and predicted torque of a joint over time, and the errors below: a `data:` address.

    A long recording is drawn by its extremes, so that the picture stays small and no peak is lost.

    Args:
        residuals: of the recording.
        joint: one of its joints.
        unit: Nm or N.
    """
    # Matplotlib takes a second to import.
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    j = residuals.joints.index(joint)
    measured, before, after = (
        values[:, j] for values in (residuals.measured, residuals.before, residuals.after)
    )
    figure = Figure(figsize=_SIZE, dpi=_DPI, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    torque, error = figure.subplots(2, 1, sharex=True, height_ratios=(1.5, 1.0))
    time = residuals.time
    torque.plot(*thinned(time, measured), color=MEASURED, linewidth=1.8, label="measured")
    torque.plot(*thinned(time, before), color=BEFORE, linewidth=1.0, label="by the URDF")
    torque.plot(*thinned(time, after), color=AFTER, linewidth=1.0, label="identified")
    torque.set_ylabel(f"torque, {unit}" if unit == "Nm" else f"force, {unit}")
    band = 2.0 * float(residuals.noise[j])
    error.axhspan(-band, band, color=NOISE, linewidth=0.0, label="noise, two standard deviations")
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
    canvas.print_png(picture)
    return f"data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()}"


def thinned(time: FloatArray, values: FloatArray, points: int = POINTS) -> tuple[FloatArray, ...]:
    """A line through not many more than `points` points that looks like the whole one: the smallest
    and the largest value of each stretch. Broken by NaN where samples are missing.

    Args:
        time: ascending, shape (samples,).
        values: of the line, shape (samples,).
        points: about how many.
    """
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
