"""The report of an identification: one HTML page that holds its pictures and needs no network."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

from rnea_control.array_types import FloatArray
from rnea_control.identification.identify import Certainty, Identification
from rnea_control.identification.pictures import torque_picture
from rnea_control.identification.verdict import SAME, JointScore, Residuals, factor, scores
from rnea_control.model import RobotModel
from rnea_control.model.rigid_body import link_inertia_of
from rnea_control.model.robot_model import units

# More pictures than this are left out, as of many recordings: a file of some megabytes.
MOST_PICTURES = 48
NONE = "\N{EN DASH}"
# Smaller numbers are 0, in SI units.
ROUNDING = 1e-12
_BEFORE_AFTER = ("URDF", "identified")
# Fields of model and identification, by what they are.
_ACTUATORS = {
    "viscous friction, Nm s/rad or N s/m": "damping",
    "Coulomb friction, Nm or N": "friction",
    "offset, Nm or N": "torque_offset",
    "rotor inertia, kg m² or kg": "armature",
}
_CLASSES = {
    Certainty.identified: "good",
    Certainty.uncertain: "fair",
    Certainty.unidentified: "poor",
}
_FIRST_STEPS = (
    "Begin with <code>control_law: gravity_compensation</code>: the arm must hold where it is "
    "left. Then move slowly, with <code>friction_compensation: false</code>.",
    "Then set <code>friction_compensation: true</code>. If a joint creeps or hums, its friction is "
    "overestimated: lower <code>friction.&lt;joint&gt;.coulomb</code>.",
    "<code>rnea_identify check</code> compares any later recording with the model that the "
    "controller uses.",
)
_HELD_OUT = (
    "<p>First by what was <strong>held out</strong>: recordings that the parameters were not "
    "fitted to.</p>"
)
_NONE_HELD_OUT = (
    '<p class="verdict warning">No recording was held out: all figures and pictures are of the '
    "data that the parameters were fitted to. How well they predict another motion is not "
    "known.</p>"
)
_ABOUT_NOISE = (
    "<p>The noise is the scatter of the measured torque about its own smooth course. Where no "
    "prediction is drawn, the joint is at rest, and its friction may be anything.</p>"
)

_STYLE = """
body { max-width: 62rem; margin: 2rem auto; padding: 0 1.2rem; background: #fff; color: #1c1c1c;
  font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .8rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; padding-bottom: .2rem;
  border-bottom: 1px solid #ccc; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p, li { max-width: 48rem; }
.verdict { margin: 0 0 1.2rem; padding: .8rem 1rem; background: #eef4fa;
  border-left: 5px solid #0060a8; }
.warning { background: #fdf3e3; border-color: #d55e00; }
dl { display: grid; grid-template-columns: repeat(4, 1fr); gap: .6rem 1.2rem; margin: 0; }
dt { color: #666; font-size: .82rem; }
dd { margin: 0; }
dd, td { font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
caption { text-align: left; color: #555; padding: .2rem 0; }
th, td { padding: .22rem .6rem; text-align: right; }
thead th { vertical-align: bottom; border-bottom: 2px solid #999; }
th[scope=colgroup] { border-bottom: 1px solid #bbb; }
th[scope=row], thead th:first-child { text-align: left; font-weight: 400; }
th[scope=row], td { white-space: nowrap; }
.sums th[scope=row] { white-space: normal; overflow-wrap: anywhere; }
tbody tr { break-inside: avoid; }
tbody tr:nth-child(even) { background: #f5f6f7; }
.pill { display: inline-block; border-radius: .7em; padding: 0 .6em; }
.good { background: #d5eedb; }
.fair { background: #fdeccb; }
.poor { background: #f8d7d3; }
figure { margin: 1rem 0; break-inside: avoid; }
figure img { width: 100%; height: auto; }
figcaption { font-weight: 600; }
code { font-family: ui-monospace, Consolas, monospace; font-size: .9em; }
@page { margin: 1.6cm; }
@media print {
  body { margin: 0; max-width: none; font-size: 10.5pt; }
  h2, h3 { break-after: avoid; }
  .wide { overflow: visible; }
  table { font-size: 8.5pt; }
  th, td { padding: .15rem .35rem; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""


def report(
    identification: Identification,
    residuals: Sequence[Residuals],
    words: str,
    urdf: str = "",
    parameters: str = "",
) -> str:
    """The HTML of the report, with the verdict in words, and the names of the files that are
    written with it."""
    title = text(f"Identified parameters of {identification.model.name}")
    kind = "verdict" if any(found.held_out for found in residuals) else "verdict warning"
    body = [
        f"<h1>{title}</h1>",
        f'<p class="{kind}">{text(words)}</p>',
        _facts(identification),
        "<h2>Measured and predicted torques</h2>",
        *_residuals(identification.model, residuals),
        "<h2>Friction and rotors</h2>",
        _actuator_table(identification),
        "<h2>Links</h2>",
        "<p>The masses and centers of real bodies that agree with the base parameters below and "
        "are nearest to the URDF's. A single one of them is not a measurement: torques determine "
        "only combinations.</p>",
        _link_table(identification),
        "<h2>Base parameters</h2>",
        _parameter_table(identification),
        *_list("Notes", "ul", map(text, identification.notes)),
        *_list("How to use it", "ol", _usage(text(urdf), text(parameters))),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
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
    }
    names = ("base parameters identified", "uncertain", "not identified")
    for name, certainty in zip(names, _CLASSES, strict=True):
        facts[name] = f"{found.count(certainty)} of {len(found)}"
    entries = (f"<div><dt>{key}</dt><dd>{value}</dd></div>" for key, value in facts.items())
    return f"<dl>{''.join(entries)}</dl>"


def _residuals(model: RobotModel, residuals: Sequence[Residuals]) -> list[str]:
    """A table and pictures for each recording."""
    if not residuals:
        return ["<p>There is no recording to compare with.</p>"]
    parts = [_HELD_OUT if any(found.held_out for found in residuals) else _NONE_HELD_OUT]
    pictures = 0
    for found in sorted(residuals, key=lambda each: not each.held_out):
        role = "held out" if found.held_out else "fitted to"
        parts.append(f"<h3>{text(found.source)}: {role}</h3>")
        of_recording = [score for score in scores(model, [found]) if score.joint in found.joints]
        parts.append(_score_table(model, of_recording))
        for joint in (score.joint for score in of_recording if score.is_known):
            pictures += 1
            if pictures <= MOST_PICTURES:
                words = f"{joint}: torque measured, by the URDF and identified, and errors of both"
                source = torque_picture(found, joint, _torque_unit(model, joint))
                image = f'<img alt="{text(words)}" src="{source}">'
                parts.append(f"<figure><figcaption>{text(joint)}</figcaption>{image}</figure>")
    parts.append(_ABOUT_NOISE)
    if pictures > MOST_PICTURES:
        parts.append(f"<p>{pictures - MOST_PICTURES} more pictures are left out.</p>")
    return parts


def _score_table(model: RobotModel, of_recording: Iterable[JointScore]) -> str:
    """Errors of each joint before and after, with the noise and the effort limit."""
    heads = (
        "joint", "unit", "URDF", "identified", "the error is", "noise", "identified / noise",
        "identified / effort limit",
    )  # fmt: skip
    rows = []
    for score in of_recording:
        gain, of_limit = score.gain, NONE
        change = "did not move"
        if score.is_known:
            words = "the same"
            if abs(gain - 1.0) > SAME:
                size = "smaller" if gain > 1.0 else "larger"
                words = f"{factor(max(gain, 1.0 / gain))} times {size}"
            kind = "poor" if score.is_worse else "good" if score.is_at_noise else "fair"
            change = _pill(words, kind)
            if 0.0 < score.limit < math.inf:
                of_limit = f"{number(100.0 * score.after / score.limit, 2)} %"
        of_noise = number(score.after / score.noise if score.noise > 0.0 else math.nan, 2)
        errors = number(score.before, 3), _strong(number(score.after, 3))
        names = text(score.joint), _torque_unit(model, score.joint)
        rows.append([*names, *errors, change, number(score.noise, 3), of_noise, of_limit])
    return _table(heads, rows, "RMS of measured less predicted torque")


def _parameter_table(identification: Identification) -> str:
    rows = [
        [
            text(estimate.name),
            text(estimate.unit.replace("^2", "²")),
            number(estimate.prior),
            _strong(number(estimate.value)),
            number(estimate.deviation, 2),
            _pill(estimate.certainty.value, _CLASSES[estimate.certainty]),
        ]
        for estimate in identification.estimates
    ]
    heads = ("base parameter", "unit", "URDF", "identified", "standard deviation", "certainty")
    return _table(heads, rows, "Base parameters: what the torques depend on", kind="sums")


def _actuator_table(identification: Identification) -> str:
    """Friction, offset and rotor inertia of each joint, before and after."""
    model, rows = identification.model, []
    for j, name in enumerate(model.joint_names):
        row = [text(name)]
        for field in _ACTUATORS.values():
            before, after = (number(getattr(each, field)[j]) for each in (model, identification))
            row += [before, _strong(after)]
        rows.append(row)
    words = "Actuators; URDF stands for URDF and configuration"
    return _table(("joint", *4 * _BEFORE_AFTER), rows, words, _ACTUATORS)


def _link_table(identification: Identification) -> str:
    """Mass and center of mass of each link, before and after."""
    rows = []
    for name, matrix in identification.inertias.items():
        own = identification.model.link_inertias.get(name)
        after = link_inertia_of(name, matrix)
        before = None if own is None else link_inertia_of(name, own)
        if after.mass == 0.0 and (before is None or before.mass == 0.0):
            continue  # a frame, such as that of a tool
        mass, center = NONE, NONE
        if before is not None:
            mass, center = number(before.mass), _vector(before.center_of_mass)
        new = _strong(number(after.mass)), _strong(_vector(after.center_of_mass))
        rows.append([text(name), mass, new[0], center, new[1]])
    groups = ("mass, kg", "center of mass, m")
    return _table(("link", *2 * _BEFORE_AFTER), rows, "Links, each in its own frame", groups)


def _usage(urdf: str, parameters: str) -> Iterable[str]:
    """How to use the files that were written."""
    if urdf:
        yield (
            f"<code>{urdf}</code> is the robot's URDF with these inertias and nothing else "
            "changed. Give it to robot_state_publisher in place of the old one: controller and "
            "sentinel read it from the topic <code>robot_description</code>."
        )
    if parameters:
        yield (
            f"<code>{parameters}</code> has friction, offsets and rotor inertias. Copy them into "
            "the controller's parameters, or start the nodes with <code>--params-file "
            f"{parameters}</code> after their own file. The two files go together: rotor inertias "
            "and links were identified at the same time."
        )
    yield from _FIRST_STEPS


def _list(title: str, kind: str, items: Iterable[str]) -> list[str]:
    entries = "".join(f"<li>{item}</li>" for item in items)
    return [f"<h2>{title}</h2>\n<{kind}>{entries}</{kind}>"] if entries else []


def _table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str,
    groups: Iterable[str] = (),
    kind: str = "",
) -> str:
    """A table of a style; groups are heads of two columns each, from the second column on."""
    upper = "".join(f'<th scope="colgroup" colspan="2">{name}</th>' for name in groups)
    head = f"<tr><td></td>{upper}</tr>" if upper else ""
    head += "<tr>" + "".join(f'<th scope="col">{cell}</th>' for cell in heads) + "</tr>"
    body = "\n".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return (
        f'<div class="wide"><table class="{kind}"><caption>{caption}</caption>\n'
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


def _vector(values: FloatArray) -> str:
    return ", ".join(number(0.0 + round(float(value), 5)) for value in values)


def _strong(words: str) -> str:
    return f"<strong>{words}</strong>"


def _pill(words: str, kind: str) -> str:
    return f'<span class="pill {kind}">{words}</span>'


def _torque_unit(model: RobotModel, joint: str) -> str:
    return units(model, model.joint_names.index(joint)).effort
