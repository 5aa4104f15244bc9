"""A picture of an exciting motion: its shares of the limits, and its expected accuracy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.identification.excitation import NEGLIGIBLE, POOR, Excitation
from rnea_control.identification.short_names import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Bars in one column; with more parameters there are two.
_ROWS = 40
_LONGEST_NAME = 44
_SMALLEST = 1e-4
_POINTS = 2000
GOOD_COLOR, POOR_COLOR = "tab:blue", "tab:orange"


def draw_excitation(path: str | os.PathLike[str], excitation: Excitation) -> None:
    """Draws one period, and the predicted accuracy of each base parameter, to a PNG file.

    Args:
        path: of the picture; it is overwritten.
        excitation: what to draw.
    """
    # Matplotlib takes long to import, and only this needs it.
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    columns = 1 if excitation.base.rank <= _ROWS else 2
    rows = -(-excitation.base.rank // columns)
    figure = Figure(figsize=(7.0 + 4.6 * columns, max(8.0, 1.4 + 0.19 * rows)))
    figure.set_layout_engine("constrained")
    FigureCanvasAgg(figure)
    parts: Any = figure.subfigures(1, 2, width_ratios=(7.0, 4.6 * columns))
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
    limits = excitation.limits
    time = np.linspace(0.0, excitation.series.period, _POINTS)
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
        for j, name in enumerate(excitation.joint_names):
            style = "-" if j < 10 else "--"
            axis.plot(time, values[:, j], color=f"C{j % 10}", ls=style, linewidth=1.3, label=name)
        for bound in (-1.0, 1.0):
            axis.axhline(bound, color="crimson", linestyle=":")
        axis.set_ylabel(label)
        axis.set_ylim(-1.1, 1.1)
        axis.set_yticks([-1.0, 0.0, 1.0], ["-100 %", "0", "100 %"])
        axis.grid(alpha=0.3)
        axis.margins(x=0.0)
    axes[0].set_yticks([-1.0, 0.0, 1.0], ["lower", "middle", "upper"])
    axes[-1].set_xlabel("time, s")
    columns = min(4, len(excitation.joint_names))
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
        colors = [POOR_COLOR if relative[i] > POOR else GOOD_COLOR for i in part]
        axis.barh(np.arange(len(part)), values, color=colors, height=0.7)
        axis.set_yticks(np.arange(len(part)), names)
        axis.tick_params(axis="y", labelsize=7.5, length=0.0)
        axis.set_ylim(len(part) - 0.4, -0.6)
        axis.set_xscale("log")
        axis.set_xlim(smallest, largest)
        axis.axvline(POOR, color="crimson", linestyle=":")
        axis.xaxis.set_major_formatter(lambda value, _: f"{100.0 * value:g} %")
        axis.xaxis.set_minor_formatter("")
        axis.grid(alpha=0.3, axis="x")
        axis.set_axisbelow(True)
