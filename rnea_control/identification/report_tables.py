"""The tables of the report, in HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

from rnea_control.array_types import FloatArray
from rnea_control.identification.result import Certainty, Identification
from rnea_control.identification.verdict import SAME, JointScore, factor
from rnea_control.model import RobotModel
from rnea_control.model.rigid_body import link_inertia_of

NONE = "\N{EN DASH}"
# Smaller numbers are 0, in SI units.
ROUNDING = 1e-12
_BEFORE_AFTER = ("URDF", "identified")
_SIZES = ("smaller", "larger")
_CLASSES = {
    Certainty.identified: "good",
    Certainty.uncertain: "fair",
    Certainty.unidentified: "poor",
}


def torque_unit(model: RobotModel, joint: str) -> str:
    """Nm, or N of a joint that slides."""
    sliding = model.joint_types[model.joint_names.index(joint)] == "prismatic"
    return "N" if sliding else "Nm"


def score_table(model: RobotModel, scores: Iterable[JointScore]) -> str:
    """Errors of each joint before and after, with the noise and the effort limit."""
    heads = (
        "joint", "unit", "URDF", "identified", "the error is", "noise", "identified / noise",
        "identified / effort limit",
    )  # fmt: skip
    rows = []
    for score in scores:
        limited = 0.0 < score.limit < math.inf
        share = 100.0 * score.after / score.limit if limited else math.nan
        row = [
            text(score.joint),
            torque_unit(model, score.joint),
            number(score.before, 3),
            f"<strong>{number(score.after, 3)}</strong>",
            _pill(_gain(score), _gain_class(score)) if score.is_known else "did not move",
            number(score.noise, 3),
            number(score.after / score.noise if score.noise > 0.0 else math.nan, 2),
            f"{number(share, 2)} %" if math.isfinite(share) else NONE,
        ]
        rows.append(row)
    return table(heads, rows, "RMS of measured less predicted torque")


def parameter_table(identification: Identification) -> str:
    """The base parameters."""
    rows = [
        [
            text(estimate.name),
            text(estimate.unit.replace("^2", "²")),
            number(estimate.prior),
            f"<strong>{number(estimate.value)}</strong>",
            number(estimate.deviation, 2),
            _pill(estimate.certainty.value, _CLASSES[estimate.certainty]),
        ]
        for estimate in identification.estimates
    ]
    heads = ("base parameter", "unit", "URDF", "identified", "standard deviation", "certainty")
    return table(heads, rows, "Base parameters: what the torques depend on", kind="sums")


def actuator_table(identification: Identification) -> str:
    """Friction, offset and rotor inertia of each joint, before and after."""
    found, model = identification, identification.model
    rows = []
    for name, part in model.v_slices.items():
        for k in range(part.start, part.stop):
            pairs: tuple[tuple[FloatArray, FloatArray], ...] = (
                (model.damping, found.damping),
                (model.friction, found.friction),
                (model.torque_offset, found.torque_offset),
                (model.armature, found.armature),
            )
            cells = [cell for before, after in pairs for cell in _pair(before[k], after[k])]
            rows.append([text(name), *cells])
    groups = (
        "viscous friction, Nm s/rad or N s/m",
        "Coulomb friction, Nm or N",
        "offset, Nm or N",
        "rotor inertia, kg m² or kg",
    )
    words = "Actuators; URDF stands for URDF and configuration"
    return table(("joint", *4 * _BEFORE_AFTER), rows, words, [(name, 2) for name in groups])


def link_table(identification: Identification) -> str:
    """Mass and center of mass of each link, before and after."""
    rows = []
    for name, matrix in identification.inertias.items():
        after = link_inertia_of(name, matrix)
        own = identification.model.link_inertias.get(name)
        before = None if own is None else link_inertia_of(name, own)
        if after.mass == 0.0 and (before is None or before.mass == 0.0):
            continue  # a frame, such as that of a tool
        masses = _pair(math.nan if before is None else before.mass, after.mass)
        centers = [
            NONE if before is None else _vector(before.center_of_mass),
            f"<strong>{_vector(after.center_of_mass)}</strong>",
        ]
        rows.append([text(name), *masses, *centers])
    groups = [("mass, kg", 2), ("center of mass, m", 2)]
    return table(("link", *2 * _BEFORE_AFTER), rows, "Links, each in its own frame", groups)


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str,
    groups: Iterable[tuple[str, int]] = (),
    kind: str = "",
) -> str:
    """A table.

    Args:
        heads: of the columns, text.
        rows: of cells that are HTML already.
        caption: text.
        groups: heads above those of the second column and of those that follow, and how many
            columns each is for.
        kind: class of the table, for its style.
    """
    upper = "".join(
        f'<th scope="colgroup" colspan="{count}">{text(name)}</th>' for name, count in groups
    )
    head = f"<tr><td></td>{upper}</tr>" if upper else ""
    head += "<tr>" + "".join(f'<th scope="col">{text(cell)}</th>' for cell in heads) + "</tr>"
    body = "\n".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return (
        f'<div class="wide"><table class="{kind}"><caption>{text(caption)}</caption>\n'
        f"<thead>{head}</thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def number(value: float, digits: int = 4) -> str:
    """A number for people; a dash if there is none."""
    if not math.isfinite(value):
        return NONE
    value = 0.0 if abs(value) < ROUNDING else value
    return f"{value:.{digits}g}".replace("-", "\N{MINUS SIGN}")


def text(words: str) -> str:
    """Text as HTML."""
    return html.escape(words)


def _pair(before: float, after: float) -> list[str]:
    return [number(float(before)), f"<strong>{number(float(after))}</strong>"]


def _vector(values: FloatArray) -> str:
    return ", ".join(number(0.0 + round(float(value), 5)) for value in values)


def _gain(score: JointScore) -> str:
    if abs(score.gain - 1.0) <= SAME:
        return "the same"
    larger = score.gain < 1.0
    return f"{factor(1.0 / score.gain if larger else score.gain)} times {_SIZES[larger]}"


def _gain_class(score: JointScore) -> str:
    return "poor" if score.is_worse else "good" if score.is_at_noise else "fair"


def _pill(words: str, kind: str) -> str:
    return f'<span class="pill {kind}">{text(words)}</span>'
