"""Report of an identification: an HTML page with embedded pictures that needs no network."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.identification.identify import Certainty, Identification
from rnea_control.identification.verdict import JointScore, Judgement, Residuals, scores, summary
from rnea_control.model import RobotModel
from rnea_control.model.rigid_body import link_inertia_of

# Files that are written with the report.
URDF = "robot.urdf"
PARAMETERS = "rnea_controller.yaml"
POINTS = 2000  # number of points of a line; more than a picture has columns
GAP = 5.0  # time without samples at which a line is broken, in mean distances of samples
MOST_PICTURES = 48  # number of pictures: a file of some megabytes
NONE = "\N{EN DASH}"
ROUNDING = 1e-12  # smaller numbers are printed as 0, in SI units
# Colors of cells, by their text.
_COLORS = {
    **dict.fromkeys((Certainty.identified.value, Judgement.at_noise.value), "#d5eedb"),
    **dict.fromkeys((Certainty.uncertain.value, Judgement.above_noise.value), "#fdeccb"),
    **dict.fromkeys((Certainty.unidentified.value, Judgement.worse.value), "#f8d7d3"),
}
_STYLE = """
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 15px/1.5 sans-serif; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 90%; }
table { display: block; overflow-x: auto; }
th, td { padding: .2em .6em; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; }
tr, figure { break-inside: avoid; }
figure { margin: 1rem 0; }
img { width: 100%; }
"""


def report(found: Identification, residuals: Sequence[Residuals], words: str) -> str:
    """HTML of the report; `words` is the verdict."""
    title = escape(f"Identified parameters of {found.model.name}")
    parts = [
        f"<h1>{title}</h1>",
        f"<p><strong>{escape(words)}</strong></p>",
        f"<p>{escape(summary(found))}</p>",
        "<h2>Measured and predicted torques</h2>",
        "<p>RMS of measured less predicted torque. The noise is the scatter of the measured torque "
        "about its own smooth course. Where no prediction is drawn, the joint is at rest, and its "
        "friction may be anything.</p>",
        *_torques(found.model, residuals),
        "<h2>Friction and rotors</h2>",
        _actuator_table(found),
        "<h2>Links</h2>",
        "<p>The masses and centers of real bodies that agree with the base parameters below and "
        "are nearest to the URDF's. A single one of them is not a measurement: torques determine "
        "only combinations.</p>",
        _link_table(found),
        "<h2>Base parameters: the combinations on which the torques depend</h2>",
        _parameter_table(found),
        "<h2>Notes</h2>",
        f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in found.notes)}</ul>",
        "<h2>How to use it</h2>",
        f"<p>{URDF} is the URDF with new inertias: give it to robot_state_publisher. "
        f"{PARAMETERS} has friction, offsets and rotor inertias: copy them into the "
        "controller's parameters. The two go together: they were identified at the same time.</p>",
        "<p>Begin with <code>control_law: gravity_compensation</code>: the arm must hold where it "
        "is left. Then move slowly, with <code>friction_compensation: false</code>, and then with "
        "<code>friction_compensation: true</code>. If a joint creeps or hums, its friction is "
        "overestimated: lower <code>friction.&lt;joint&gt;.coulomb</code>.</p>",
    ]
    return page(title, parts)


def page(title: str, parts: Sequence[str]) -> str:
    """An HTML page; the title is escaped."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{chr(10).join(parts)}\n</body></html>\n"
    )


def _torques(model: RobotModel, residuals: Sequence[Residuals]) -> Iterable[str]:
    """A table and pictures for each recording."""
    heads = ("joint", "URDF", "identified", "", "noise", "times the noise", "% of the limit")
    pictures = 0
    for found in residuals:
        yield f"<h3>{escape(found.source)}: {'held out' if found.held_out else 'fitted to'}</h3>"
        of_joints = scores(model, [found])
        yield table(heads, map(_score_row, of_joints))
        for j, score in enumerate(of_joints):
            pictures += score.is_known
            if score.is_known and pictures <= MOST_PICTURES:
                name = escape(f"{score.joint}, {score.unit}")
                words = f"{name}: measured, by the URDF and identified, and the errors of both"
                yield (
                    f"<figure><figcaption>{name}</figcaption>"
                    f'<img alt="{words}" src="{torque_picture(found, j, score.unit)}"></figure>'
                )
    if pictures > MOST_PICTURES:
        yield f"<p>{pictures - MOST_PICTURES} more pictures are left out.</p>"


def _score_row(score: JointScore) -> list[str]:
    times = score.after / score.noise if score.noise > 0.0 else math.nan
    shares = number(score.noise, 3), number(times, 3), number(100.0 * score.after / score.limit, 3)
    errors = number(score.before, 3), number(score.after, 3), score.judgement.value
    return [f"{score.joint}, {score.unit}", *errors, *shares]


def _actuator_table(found: Identification) -> str:
    """Friction, offset and rotor inertia of each joint."""
    columns = {
        "viscous friction, Nm s/rad or N s/m": "damping",
        "Coulomb friction, Nm or N": "friction",
        "offset, Nm or N": "torque_offset",
        "rotor inertia, kg m² or kg": "armature",
    }
    pairs = [(getattr(found.model, name), getattr(found, name)) for name in columns.values()]
    rows = [
        [name, *(f"{number(before[j])} → {number(after[j])}" for before, after in pairs)]
        for j, name in enumerate(found.model.joint_names)
    ]
    return table(("URDF and configuration → identified", *columns), rows)


def _link_table(found: Identification) -> str:
    """Mass and center of mass of each link."""
    rows = []
    for name, matrix in found.inertias.items():
        before = link_inertia_of(name, found.model.link_inertias[name])
        after = link_inertia_of(name, matrix)
        if before.mass or after.mass:  # else a frame, such as a tool's
            mass = f"{number(before.mass)} → {number(after.mass)}"
            ends = (np.round(each.center_of_mass, 5).tolist() for each in (before, after))
            rows.append([name, mass, " → ".join(", ".join(map(number, end)) for end in ends)])
    return table(("URDF → identified", "mass, kg", "center of mass in the link's frame, m"), rows)


def _parameter_table(found: Identification) -> str:
    heads = ("base parameter", "unit", "URDF", "identified", "standard deviation", "certainty")
    rows = []
    for each in found.estimates:
        numbers = number(each.prior), number(each.value), number(each.deviation, 2)
        rows.append([each.name, each.unit.replace("^2", "²"), *numbers, each.certainty.value])
    return table(heads, rows)


def table(heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """HTML table with a row for each row of text; cells with a judgement have a color."""
    lines = ["".join(f"<th>{escape(head)}</th>" for head in heads)]
    for row in rows:
        colors = (f' style="background:{_COLORS[cell]}"' if cell in _COLORS else "" for cell in row)
        cells = zip(colors, map(escape, row), strict=True)
        lines.append("".join(f"<td{color}>{cell}</td>" for color, cell in cells))
    return f"<table>\n{''.join(f'<tr>{line}</tr>{chr(10)}' for line in lines)}</table>"


def number(value: float, digits: int = 4) -> str:
    """Number as text; a dash for NaN."""
    if not math.isfinite(value):
        return NONE
    value = 0.0 if abs(value) < ROUNDING else value
    return f"{value:.{digits}g}".replace("-", "\N{MINUS SIGN}")


def torque_picture(residuals: Residuals, j: int, unit: str) -> str:
    """Picture of measured and predicted torque of joint j over time, with the errors below, as a
    `data:` URL.

    A long recording is drawn by its extremes, so that the picture stays small and no peak is lost.
    `unit` is Nm or N.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8.0, 3.4), dpi=125, layout="constrained")
    torque, error = figure.subplots(2, 1, sharex=True)
    noise, measured = 2.0 * residuals.noise[j], residuals.measured[:, j]
    torque.plot(*thinned(residuals.time, measured), color="silver", label="measured")
    error.axhspan(-noise, noise, color="lightgray", label="noise, two standard deviations")
    models = (residuals.before, "C1", "by the URDF"), (residuals.after, "C0", "identified")
    for predicted, color, label in models:
        values = predicted[:, j]
        torque.plot(*thinned(residuals.time, values), color=color, label=label)
        error.plot(*thinned(residuals.time, measured - values), color=color, linewidth=0.8)
    torque.set_ylabel(f"torque, {unit}" if unit == "Nm" else f"force, {unit}")
    error.set(ylabel=f"measured less\npredicted, {unit}", xlabel="time, s")
    figure.legend(loc="outside upper right", ncols=4)
    return embedded(figure)


def embedded(figure: Any) -> str:
    """A figure of Matplotlib as a `data:` URL."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return f"data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()}"


def thinned(time: FloatArray, values: FloatArray) -> tuple[FloatArray, ...]:
    """Reduces a line over ascending times, shape (samples,), to little more than `POINTS` points
    with the same appearance: the smallest and the largest value of each stretch. NaN breaks the
    line where samples are missing."""
    size = -(-2 * len(time) // POINTS)
    if size > 2:
        starts = np.arange(0, len(time), size)
        extremes = np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)
        time, values = np.repeat(time[starts], 2), np.stack(extremes, axis=1).ravel()
    steps = np.diff(time, prepend=time[:1])
    gaps = np.flatnonzero(steps > GAP * np.mean(steps))
    return np.insert(time, gaps, time[gaps]), np.insert(values, gaps, np.nan)
