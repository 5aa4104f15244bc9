"""Results of the demo: a table, a summary and a picture. Errors and torques are in mrad and Nm for
rotating joints, in mm and N for sliding joints; no figure mixes them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter
from rich.box import SIMPLE_HEAD
from rich.table import Table

from rnea_control.control import ControlLaw
from rnea_control.demo.cases import OTHER_ARM, SHOWN, Case
from rnea_control.demo.controller import BANDWIDTH
from rnea_control.demo.robots import DemoRobot
from rnea_control.demo.run import Recording
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import Units, units

LEGEND_COLUMNS = 8
LONGEST_NAME = 24  # characters in the legend; the end of a name distinguishes joints
# Kinds of joints by the unit of their positions; errors are in thousandths of this unit.
KINDS = {"rad": "turning", "m": "sliding"}
STYLES = {"rad": "-", "m": "-."}
NOTES = {"rad": "", "m": ", dash-dotted"}
SMALLEST_BAR = 1e-4  # bar of an error of zero on a logarithmic scale [mrad] or [mm]
PD, CT = ControlLaw.pd_gravity, ControlLaw.computed_torque
COLORS = {
    Case(PD, exact=True): "darkgray",
    Case(CT, exact=True): "tab:blue",
    Case(PD, exact=False): "dimgray",
    Case(CT, exact=False): "tab:orange",
}
COLUMNS = {PD: "PD+g", CT: "CT"}


def by_units(model: RobotModel) -> dict[Units, list[int]]:
    """Joints grouped by units, rotating joints first."""
    found: dict[Units, list[int]] = {}
    for j in range(model.nv):
        found.setdefault(units(model, j), []).append(j)
    return dict(sorted(found.items(), reverse=True))


def difference() -> str:
    """Difference between the arm and its URDF in the runs with a wrong model."""
    heavier = 100.0 * (OTHER_ARM["mass_scale"] - 1.0)
    rotor = OTHER_ARM["joint_armature"]
    return (
        f"wrong model: the arm is {heavier:.0f} % heavier than its URDF, with rotors of {rotor:g} "
        "kg m² that the controller does not know"
    )


def shown(recordings: Sequence[Recording]) -> Recording:
    """Recording whose positions, torques and film are shown."""
    return next(each for each in recordings if each.case == SHOWN)


def table(robot: DemoRobot, recordings: Sequence[Recording]) -> Table:
    """Table of each joint's errors in all cases, and its largest torque in the run shown."""
    title = f"{robot.name}: RMS tracking errors, and largest torque under {SHOWN.title}"
    result = Table(title=title, box=SIMPLE_HEAD)
    result.add_column("\njoint", overflow="fold", min_width=12)
    for recording in recordings:
        case = recording.case
        result.add_column(f"{COLUMNS[case.law]}\n{case.model_name.split()[0]}", justify="right")
    result.add_column("\ntorque", justify="right")
    result.add_column("\nlimit", justify="right")
    result.add_column("\nunits", no_wrap=True)
    for unit, joints in by_units(robot.model).items():
        for j in joints:
            rms = [_digits(1e3 * each.rms(j)) for each in recordings]
            torque, limit = (
                np.abs(shown(recordings).torque[:, j]).max(),
                robot.model.effort_limit[j],
            )
            known = f"{limit:g}" if math.isfinite(limit) else "none"
            name = robot.model.joint_names[j]
            result.add_row(name, *rms, f"{torque:.1f}", known, f"m{unit.position}, {unit.effort}")
    return result


def summary(model: RobotModel, recordings: Sequence[Recording]) -> list[str]:
    """Summary with a line for each case and each kind of joint."""
    every = by_units(model)
    lines = []
    for unit, joints in every.items():
        plural = "" if len(joints) == 1 else "s"
        kind = f"{len(joints)} {KINDS[unit.position]} joint{plural}"
        which = "all joints" if len(every) == 1 else kind
        for recording in recordings:
            error = _digits(1e3 * recording.rms(joints))
            lines.append(f"RMS over {which}, {recording.case.title}: {error} m{unit.position}")
    return lines


def _digits(value: float) -> str:
    """Number with three significant digits, and at most four decimals."""
    decimals = 2 - math.floor(math.log10(value)) if value > 0.0 else 0
    return f"{value:.{min(max(decimals, 0), 4)}f}"


def draw(
    path: Path, model: RobotModel, recordings: Sequence[Recording], disturbed: bool = False
) -> None:
    """Draws the runs to a file, without figures if a run was disturbed."""
    found, exact = by_units(model), shown(recordings)
    size = (16.0, 8.0 + 0.2 * -(-(model.nv + 2) // LEGEND_COLUMNS))
    figure = Figure(figsize=size, layout="constrained")
    panels = [f"error {i}" for i in range(len(recordings))]
    placed = figure.subplot_mosaic([["position", "torque", "bars", "bars"], panels])
    errors = [placed[name] for name in panels]
    title = f"Simulated {model.name}: one trajectory, two control laws, the same gains"
    if disturbed:
        figure.suptitle(f"{model.name}: disturbed, no comparison", fontsize=14, color="crimson")
    else:
        figure.suptitle(f"{title} (bandwidth {BANDWIDTH:g} rad/s)\n{difference()}", fontsize=13)
    colors = colormaps["turbo"](np.linspace(0.05, 0.95, model.nv))
    lines = _draw_positions(placed["position"], model, exact, colors, found)
    _draw_torques(placed["torque"], model, exact, colors)
    if disturbed:
        placed["bars"].set_axis_off()
    else:
        _draw_bars(placed["bars"], model, recordings)
    _draw_errors(errors, recordings, colors, found, disturbed)
    for axes in (placed["position"], placed["torque"], *errors):
        axes.grid(alpha=0.3)
        axes.margins(x=0.0)
        axes.set_xlabel("time [s]")
    figure.legend(
        handles=lines,
        loc="outside lower center",
        ncols=LEGEND_COLUMNS if model.nv < 32 else LEGEND_COLUMNS - 2,
        fontsize=9 if model.nv < 16 else 6,
    )
    figure.savefig(path, dpi=100)


def _draw_positions(
    axes: Axes,
    model: RobotModel,
    exact: Recording,
    colors: np.ndarray,
    found: dict[Units, list[int]],
) -> list[Line2D]:
    """Draws measured and desired positions; returns the lines of the legend."""
    axes.set_title(f"Positions: {exact.case.title}")
    legend = []
    for unit, scale in _scales(axes, found):
        for j in found[unit]:
            name = model.joint_names[j]
            short = name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"
            style, measured = STYLES[unit.position], exact.measured[:, j]
            legend += scale.plot(exact.time, measured, style, color=colors[j], label=short)
            desired = scale.plot(exact.time, exact.desired[:, j], "k--", linewidth=0.9)
    desired[0].set_label("desired")
    return [*legend, *desired]


def _draw_torques(axes: Axes, model: RobotModel, exact: Recording, colors: np.ndarray) -> None:
    axes.set_title(f"Torques: {exact.case.title}")
    axes.set(ylabel="% of the joint's effort limit")
    for j in np.flatnonzero(np.isfinite(model.effort_limit)):
        share = 100.0 * exact.torque[:, j] / model.effort_limit[j]
        axes.plot(exact.time, share, color=colors[j], linewidth=1.2)
    for limit in (-100.0, 100.0):
        line = axes.axhline(limit, color="crimson", linestyle=":")
    axes.legend([line], ["effort limit"], fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 0.08))
    axes.set_ylim(-110.0, 110.0)


def _draw_bars(axes: Axes, model: RobotModel, recordings: Sequence[Recording]) -> None:
    """Draws the RMS error of each joint in each case, on a logarithmic scale."""
    width = 0.8 / len(recordings)
    places = np.arange(model.nv)
    for i, recording in enumerate(recordings):
        rms = [max(1e3 * recording.rms(j), SMALLEST_BAR) for j in range(model.nv)]
        where = places + width * (i - 0.5 * (len(recordings) - 1))
        case = recording.case
        axes.bar(where, rms, width, color=COLORS[case], label=case.title)
    several = len(by_units(model)) > 1
    unit = "mrad, of sliding joints mm" if several else f"m{units(model, 0).position}"
    axes.set(title="RMS tracking error of each joint", ylabel=f"{unit}, logarithmic", yscale="log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    names = [name[-LONGEST_NAME:] for name in model.joint_names]
    axes.set_xticks(places, names, rotation=90 if model.nv > 8 else 30, ha="right", fontsize=8)
    axes.grid(alpha=0.3, axis="y")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** 0.25)  # room for the legend
    axes.legend(fontsize=9, loc="upper left", ncols=2)


def _draw_errors(
    panels: Sequence[Axes],
    recordings: Sequence[Recording],
    colors: np.ndarray,
    found: dict[Units, list[int]],
    disturbed: bool,
) -> None:
    """Draws a panel for each case; panels of the same arm have the same scale, of which the labels
    tell where it differs."""
    for axes, recording in zip(panels, recordings, strict=True):
        rms = []
        for unit, scale in _scales(axes, found, "error, m"):
            joints = found[unit]
            for j in joints:
                error = 1e3 * recording.error[:, j]
                scale.plot(recording.time, error, STYLES[unit.position], color=colors[j])
            alike = [each for each in recordings if each.case.exact == recording.case.exact]
            most = max(float(np.abs(1e3 * each.error[:, joints]).max()) for each in alike)
            scale.set_ylim(-1.1 * (most or 1.0), 1.1 * (most or 1.0))
            largest = float(np.abs(1e3 * recording.error[:, joints]).max())
            rms.append(
                f"RMS {_digits(1e3 * recording.rms(joints))}, "
                f"at most {_digits(largest)} m{unit.position}"
            )
        figures = "" if disturbed else f": {', '.join(rms)}"
        title = f"{recording.case.law_name},\n{recording.case.model_name}{figures}"
        axes.set_title(title, fontsize=10)


def _scales(axis: Axes, found: Collection[Units], prefix: str = "") -> Iterator[tuple[Units, Axes]]:
    """Axes for each unit of positions: the first scale on the left, the second on the right."""
    for scale, unit in zip((axis, axis.twinx()) if len(found) > 1 else (axis,), found, strict=True):
        kind = f" ({KINDS[unit.position]} joints{NOTES[unit.position]})" if len(found) > 1 else ""
        scale.set_ylabel(f"{prefix}{unit.position}{kind}")
        yield unit, scale
