"""What the demo says of two runs: a table, a summary and a picture. Joints that turn are told in
mrad and Nm, those that slide in mm and N, and no figure mixes them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.table import Table

from rnea_control.demo.robots import DemoRobot
from rnea_control.demo.run import Recording
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import Units, units

LEGEND_COLUMNS = 8
LONGEST_NAME = 24  # the end of a name tells joints apart
# Of joints by the unit of their positions; their errors are told in thousandths of it.
KINDS = {"rad": "turning", "m": "sliding"}
STYLES = {"rad": "-", "m": "-."}
NOTES = {"rad": "", "m": ", dash-dotted"}


def by_units(model: RobotModel) -> dict[Units, list[int]]:
    """The joints of the same units, those that turn first."""
    found: dict[Units, list[int]] = {}
    for j in range(model.nv):
        found.setdefault(units(model, j), []).append(j)
    return dict(sorted(found.items(), reverse=True))


def table(robot: DemoRobot, model_based: Recording, baseline: Recording) -> Table:
    """Errors and torques of each joint."""
    result = Table(title=f"{robot.name}: tracking errors and torques", box=SIMPLE_HEAD)
    result.add_column("\njoint", overflow="fold", min_width=12)
    for heading in ("RMS\nPD", "RMS\nRNEA", "largest\nPD", "largest\nRNEA", "torque\nRNEA"):
        result.add_column(heading, justify="right")
    result.add_column("\nlimit", justify="right")
    result.add_column("\nunits", no_wrap=True)
    both = (baseline, 3), (model_based, 4)
    for unit, joints in by_units(robot.model).items():
        for j in joints:
            rms = [f"{1e3 * each.rms(j):.{digits}f}" for each, digits in both]
            most = [f"{1e3 * np.abs(each.error[:, j]).max():.{digits}f}" for each, digits in both]
            torque, limit = np.abs(model_based.torque[:, j]).max(), robot.model.effort_limit[j]
            known = f"{limit:g}" if math.isfinite(limit) else "none"
            figures = (*rms, *most, f"{torque:.1f}", known)
            name = robot.model.joint_names[j]
            result.add_row(name, *figures, f"m{unit.position}, {unit.effort}")
    return result


def summary(model: RobotModel, model_based: Recording, baseline: Recording) -> list[str]:
    """A line for the joints of the same units."""
    lines, every = [], by_units(model)
    for unit, joints in every.items():
        which = "all joints"
        if len(every) > 1:
            plural = "" if len(joints) == 1 else "s"
            which = f"{len(joints)} {KINDS[unit.position]} joint{plural}"
        figures = ", ".join(
            f"{recording.law} {1e3 * recording.rms(joints):.4g} m{unit.position}"
            for recording in (baseline, model_based)
        )
        lines.append(f"RMS over {which}: {figures}: {ratio(joints, model_based, baseline)}")
    return lines


def ratio(joints: list[int], model_based: Recording, baseline: Recording) -> str:
    """Which of two runs follows closer, and how many times."""
    errors = {"RNEA": model_based.rms(joints), "PD": baseline.rms(joints)}
    closer, other = sorted(errors, key=errors.__getitem__)
    factor = "infinitely many" if errors[other] > 0.0 else "1"
    if errors[closer] > 0.0:
        times = errors[other] / errors[closer]
        factor = f"{times:.0f}" if times >= 10.0 else f"{times:.2g}"
    return f"{closer} is {factor} times closer"


def draw(
    path: Path, model: RobotModel, model_based: Recording, baseline: Recording, disturbed: bool
) -> None:
    """Writes the picture of the run under computed torque, and of the same trajectory under PD
    alone; `disturbed` ones are no comparison: the picture then gives no figures."""
    found = by_units(model)
    size = (12.0, 7.0 + 0.2 * -(-(model.nv + 2) // LEGEND_COLUMNS))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    (position, torque), (error_pd, error_model) = axes
    if disturbed:
        figure.suptitle(f"{model.name}: disturbed, no comparison", fontsize=14, color="crimson")
    else:
        results = [
            f"{KINDS[unit.position]} joints: {ratio(joints, model_based, baseline)}"
            for unit, joints in found.items()
        ]
        title = f"{model.name}: the same trajectory under PD and under RNEA computed torque"
        figure.suptitle(f"{title}\n{'; '.join(results)}", fontsize=14)
    colors = colormaps["turbo"](np.linspace(0.05, 0.95, model.nv))
    position.set(title="Positions under computed torque")
    for unit, scale in _scales(position, found):
        for j in found[unit]:
            style = STYLES[unit.position]
            name = model.joint_names[j]
            short = name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"
            measured = model_based.measured[:, j]
            scale.plot(model_based.time, measured, style, color=colors[j], label=short)
            scale.plot(model_based.time, model_based.desired[:, j], "k--", linewidth=0.9)
    scale.lines[-1].set_label("desired")
    torque.set(title="Torques under computed torque", ylabel="% of the joint's effort limit")
    for j in np.flatnonzero(np.isfinite(model.effort_limit)):
        share = 100.0 * model_based.torque[:, j] / model.effort_limit[j]
        torque.plot(model_based.time, share, color=colors[j], linewidth=1.2)
    torque.axhline(100.0, color="crimson", linestyle=":", label="effort limit")
    torque.axhline(-100.0, color="crimson", linestyle=":")
    torque.set_ylim(-110.0, 110.0)
    both = (error_pd, baseline, "PD"), (error_model, model_based, "computed torque")
    for axis, recording, law in both:
        rms = []
        for unit, scale in _scales(axis, found, "m"):
            for j in found[unit]:
                error = 1e3 * recording.error[:, j]
                scale.plot(recording.time, error, STYLES[unit.position], color=colors[j])
            if not disturbed:
                rms.append(f"{1e3 * recording.rms(found[unit]):.3g} m{unit.position}")
        figures = f": RMS {', '.join(rms)}" if rms else ""
        axis.set(title=f"Tracking error under {law}{figures}", xlabel="s")
    for axis in axes.flat:
        axis.grid(alpha=0.3)
        axis.margins(x=0.0)
    figure.legend(
        loc="outside lower center",
        ncols=LEGEND_COLUMNS if model.nv < 32 else LEGEND_COLUMNS - 2,
        fontsize=9 if model.nv < 16 else 6,
    )
    figure.savefig(path, dpi=110)


def _scales(axis: Axes, found: Collection[Units], prefix: str = "") -> Iterator[tuple[Units, Axes]]:
    """A scale for each unit of positions: the first one's on the left, the other's on the right."""
    for scale, unit in zip((axis, axis.twinx()) if len(found) > 1 else (axis,), found, strict=True):
        kind = f" ({KINDS[unit.position]} joints{NOTES[unit.position]})" if len(found) > 1 else ""
        scale.set_ylabel(f"{prefix}{unit.position}{kind}")
        yield unit, scale
