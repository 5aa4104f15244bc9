"""The report of an identification: one HTML page that holds its pictures and needs no network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from rnea_control.array_types import FloatArray
from rnea_control.identification.identify import Certainty, Identification
from rnea_control.identification.pictures import torque_picture
from rnea_control.identification.verdict import Judgement, Residuals, scores
from rnea_control.model import RobotModel
from rnea_control.model.rigid_body import link_inertia_of
from rnea_control.model.robot_model import units

# More pictures than this are left out, as of many recordings: a file of some megabytes.
MOST_PICTURES = 48
NONE = "\N{EN DASH}"
# Smaller numbers are 0, in SI units.
ROUNDING = 1e-12
# The colors of cells, by what they say.
_COLORS = {
    **dict.fromkeys((Certainty.identified.value, Judgement.at_noise.value), "#d5eedb"),
    **dict.fromkeys((Certainty.uncertain.value, Judgement.above_noise.value), "#fdeccb"),
    **dict.fromkeys((Certainty.unidentified.value, Judgement.worse.value), "#f8d7d3"),
}
_STYLE = """
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 15px/1.5 sans-serif; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 90%; }
th, td { padding: .2em .6em; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; }
tr, figure { break-inside: avoid; }
figure { margin: 1rem 0; }
img { width: 100%; }
"""


def report(
    identification: Identification,
    residuals: Sequence[Residuals],
    words: str,
    urdf: str,
    parameters: str,
) -> str:
    """The HTML of the report, with the verdict in words, and the names of the files that are
    written with it."""
    title = escape(f"Identified parameters of {identification.model.name}")
    parts = [
        f"<h1>{title}</h1>",
        f"<p><strong>{escape(words)}</strong></p>",
        _facts(identification),
        "<h2>Measured and predicted torques</h2>",
        "<p>RMS of measured less predicted torque. The noise is the scatter of the measured torque "
        "about its own smooth course. Where no prediction is drawn, the joint is at rest, and its "
        "friction may be anything.</p>",
        *_torques(identification.model, residuals),
        "<h2>Friction and rotors</h2>",
        _actuator_table(identification),
        "<h2>Links</h2>",
        "<p>The masses and centers of real bodies that agree with the base parameters below and "
        "are nearest to the URDF's. A single one of them is not a measurement: torques determine "
        "only combinations.</p>",
        _link_table(identification),
        "<h2>Base parameters: what the torques depend on</h2>",
        _parameter_table(identification),
        "<h2>Notes</h2>",
        f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in identification.notes)}</ul>",
        "<h2>How to use it</h2>",
        f"<p>{escape(urdf)} is the URDF with new inertias: give it to robot_state_publisher. "
        f"{escape(parameters)} has friction, offsets and rotor inertias: copy them into the "
        "controller's parameters. The two go together: they were identified at the same time.</p>",
        "<p>Begin with <code>control_law: gravity_compensation</code>: the arm must hold where it "
        "is left. Then move slowly, with <code>friction_compensation: false</code>, and then with "
        "<code>friction_compensation: true</code>. If a joint creeps or hums, its friction is "
        "overestimated: lower <code>friction.&lt;joint&gt;.coulomb</code>.</p>",
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{chr(10).join(parts)}\n</body></html>\n"
    )


def _facts(identification: Identification) -> str:
    found = [estimate.certainty for estimate in identification.estimates]
    low, high = min(identification.samples), max(identification.samples)
    facts = {
        "motion used": f"{identification.seconds:.1f} s",
        "torques per joint": f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}",
        "filter": f"{number(identification.cutoff)} Hz",
        "delay of the efforts": f"{number(1e3 * identification.delay, 3)} ms",
        "condition": number(identification.condition, 3),
        "base parameters": str(len(found)),
        **{certainty.value: str(found.count(certainty)) for certainty in Certainty},
    }
    return _table(facts, [[*facts.values()]])


def _torques(model: RobotModel, residuals: Sequence[Residuals]) -> Iterable[str]:
    """A table and pictures for each recording."""
    heads = ("joint", "URDF", "identified", "", "noise", "times the noise", "% of the limit")
    left = MOST_PICTURES
    for found in residuals:
        yield f"<h3>{escape(found.source)}: {'held out' if found.held_out else 'fitted to'}</h3>"
        of_recording = scores(model, [found])
        names = [f"{score.joint}, {units(model, j).effort}" for j, score in enumerate(of_recording)]
        rows = [
            [
                name,
                number(score.before, 3),
                number(score.after, 3),
                score.judgement.value,
                number(score.noise, 3),
                number(score.after / score.noise if score.noise > 0.0 else math.nan, 2),
                number(100.0 * score.after / score.limit, 2),
            ]
            for name, score in zip(names, of_recording, strict=True)
        ]
        yield _table(heads, rows)
        moved = [j for j, score in enumerate(of_recording) if score.is_known]
        for j in moved[:left]:
            source = torque_picture(found, j, units(model, j).effort)
            words = f"{names[j]}: measured, by the URDF and identified, and the errors of both"
            image = f'<img alt="{escape(words)}" src="{source}">'
            yield f"<figure><figcaption>{escape(names[j])}</figcaption>{image}</figure>"
        if len(moved) > left:
            yield f"<p>{len(moved) - left} more pictures are left out.</p>"
        left = max(left - len(moved), 0)


def _actuator_table(identification: Identification) -> str:
    """Friction, offset and rotor inertia of each joint."""
    columns = {
        "viscous friction, Nm s/rad or N s/m": "damping",
        "Coulomb friction, Nm or N": "friction",
        "offset, Nm or N": "torque_offset",
        "rotor inertia, kg m² or kg": "armature",
    }
    rows = []
    for j, name in enumerate(identification.model.joint_names):
        both = (identification.model, identification)
        pairs = [[number(getattr(each, field)[j]) for each in both] for field in columns.values()]
        rows.append([name, *(" → ".join(pair) for pair in pairs)])
    return _table(("URDF and configuration → identified", *columns), rows)


def _link_table(identification: Identification) -> str:
    """Mass and center of mass of each link."""
    rows = []
    for name, matrix in identification.inertias.items():
        after = link_inertia_of(name, matrix)
        before = link_inertia_of(name, identification.model.link_inertias[name])
        if before.mass or after.mass:  # else it is a frame, such as that of a tool
            mass = f"{number(before.mass)} → {number(after.mass)}"
            center = f"{_vector(before.center_of_mass)} → {_vector(after.center_of_mass)}"
            rows.append([name, mass, center])
    return _table(("URDF → identified", "mass, kg", "center of mass in the link's frame, m"), rows)


def _parameter_table(identification: Identification) -> str:
    heads = ("base parameter", "unit", "URDF", "identified", "standard deviation", "certainty")
    rows = [
        [
            estimate.name,
            estimate.unit.replace("^2", "²"),
            number(estimate.prior),
            number(estimate.value),
            number(estimate.deviation, 2),
            estimate.certainty.value,
        ]
        for estimate in identification.estimates
    ]
    return _table(heads, rows)


def _table(heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A row of HTML for each row of text; cells that judge have a color."""
    lines = ["".join(f"<th>{escape(head)}</th>" for head in heads)]
    for row in rows:
        colors = (f' style="background:{_COLORS[cell]}"' if cell in _COLORS else "" for cell in row)
        cells = zip(colors, map(escape, row), strict=True)
        lines.append("".join(f"<td{color}>{cell}</td>" for color, cell in cells))
    return f"<table>\n{''.join(f'<tr>{line}</tr>{chr(10)}' for line in lines)}</table>"


def number(value: float, digits: int = 4) -> str:
    """A number for people; a dash if there is none."""
    if not math.isfinite(value):
        return NONE
    value = 0.0 if abs(value) < ROUNDING else value
    return f"{value:.{digits}g}".replace("-", "\N{MINUS SIGN}")


def _vector(values: FloatArray) -> str:
    return ", ".join(number(0.0 + round(float(value), 5)) for value in values)
