"""The report of an identification: one HTML file that holds its pictures and needs no network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rnea_control.exceptions import IdentificationError
from rnea_control.identification.report_pictures import torque_picture
from rnea_control.identification.report_tables import (
    actuator_table,
    link_table,
    number,
    parameter_table,
    score_table,
    text,
    torque_unit,
)
from rnea_control.identification.result import Certainty, Identification, Residuals
from rnea_control.identification.verdict import judged, scores

# More pictures than this are left out, as of many recordings: a file of some megabytes.
MOST_PICTURES = 48

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


def write_report(
    path: str | os.PathLike[str],
    identification: Identification,
    residuals: Sequence[Residuals],
    words: str,
    urdf: str = "",
    parameters: str = "",
) -> None:
    """Writes the report.

    Args:
        path: of the HTML file.
        identification: its results.
        residuals: of all recordings; those that were held out come first.
        words: the verdict, as of `verdict`.
        urdf, parameters: the files that were written with it, for how to use them.

    Raises:
        IdentificationError: the file cannot be written.
    """
    page = report(identification, residuals, words, urdf, parameters)
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise IdentificationError(
            f"the report {os.fspath(path)!r} cannot be written: {error.strerror or error}"
        ) from error


def report(
    identification: Identification,
    residuals: Sequence[Residuals],
    words: str,
    urdf: str = "",
    parameters: str = "",
) -> str:
    """The HTML of the report; arguments as for `write_report`."""
    title = f"Identified parameters of {identification.model.name}"
    held_out = any(found.held_out for found in residuals)
    kind = "verdict" if held_out else "verdict warning"
    body = [
        f"<h1>{text(title)}</h1>",
        f'<p class="{kind}">{text(words)}</p>',
        _facts(identification),
        _residuals(identification, residuals, held_out),
        _parameters(identification),
        _notes(identification),
        _usage(identification, urdf, parameters),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _facts(identification: Identification) -> str:
    counts = {
        certainty: sum(estimate.certainty is certainty for estimate in identification.estimates)
        for certainty in Certainty
    }
    of_all = f"of {len(identification.estimates)}"
    low, high = (int(f(identification.samples)) for f in (min, max))
    facts = {
        "motion used": f"{identification.seconds:.1f} s",
        "torques per joint": f"{low}" if low == high else f"{low} to {high}",
        "filter": f"{number(identification.cutoff)} Hz",
        "delay of the efforts": f"{number(1e3 * identification.delay, 3)} ms",
        "condition": number(identification.condition, 3),
        "base parameters identified": f"{counts[Certainty.identified]} {of_all}",
        "uncertain": f"{counts[Certainty.uncertain]} {of_all}",
        "not identified": f"{counts[Certainty.unidentified]} {of_all}",
    }
    entries = "".join(
        f"<div><dt>{text(key)}</dt><dd>{text(value)}</dd></div>" for key, value in facts.items()
    )
    return f"<dl>{entries}</dl>"


def _residuals(
    identification: Identification, residuals: Sequence[Residuals], held_out: bool
) -> str:
    model, basis = identification.model, judged(residuals)
    parts = ["<h2>Measured and predicted torques</h2>"]
    if held_out:
        parts.append(
            "<p>First by what was <strong>held out</strong>: recordings that the parameters were "
            "not fitted to.</p>"
        )
    elif residuals:
        parts.append(
            '<p class="verdict warning">No recording was held out: all figures and pictures are of '
            "the data that the parameters were fitted to. How well they predict another motion is "
            "not known.</p>"
        )
    else:
        return parts[0] + "<p>There is no recording to compare with.</p>"
    ordered = [*basis, *(found for found in residuals if not any(found is b for b in basis))]
    pictures = 0
    for found in ordered:
        role = "held out" if found.held_out else "fitted to"
        parts.append(f"<h3>{text(found.source)}: {role}</h3>")
        of_recording = [score for score in scores(model, [found]) if score.joint in found.joints]
        parts.append(score_table(model, of_recording))
        for score in of_recording:
            if not score.is_known:
                continue
            pictures += 1
            if pictures <= MOST_PICTURES:
                unit = torque_unit(model, score.joint)
                parts.append(_figure(found, score.joint, unit))
    parts.append(
        "<p>The noise is the scatter of the measured torque about its own smooth course. Where no "
        "prediction is drawn, the joint is at rest, and its friction may be anything.</p>"
    )
    if pictures > MOST_PICTURES:
        parts.append(f"<p>{pictures - MOST_PICTURES} more pictures are left out.</p>")
    return "\n".join(parts)


def _figure(residuals: Residuals, joint: str, unit: str) -> str:
    words = f"{joint}: torque as measured, by the URDF and identified, and the errors of both"
    return (
        f"<figure><figcaption>{text(joint)}</figcaption>"
        f'<img alt="{text(words)}" src="{torque_picture(residuals, joint, unit)}"></figure>'
    )


def _parameters(identification: Identification) -> str:
    return "\n".join(
        [
            "<h2>Friction and rotors</h2>",
            actuator_table(identification),
            "<h2>Links</h2>",
            "<p>The masses and centers of real bodies that agree with the base parameters below "
            "and are nearest to the URDF's. A single one of them is not a measurement: torques "
            "determine only combinations.</p>",
            link_table(identification),
            "<h2>Base parameters</h2>",
            parameter_table(identification),
        ]
    )


def _notes(identification: Identification) -> str:
    if not identification.notes:
        return ""
    items = "".join(f"<li>{text(note)}</li>" for note in identification.notes)
    return f"<h2>Notes</h2>\n<ul>{items}</ul>"


def _usage(identification: Identification, urdf: str, parameters: str) -> str:
    """How to use the files that were written."""
    items = []
    if urdf:
        items.append(
            f"<code>{text(urdf)}</code> is the robot's URDF with these inertias and nothing else "
            "changed. Give it to robot_state_publisher in place of the old one: controller and "
            "sentinel read it from the topic <code>robot_description</code>."
        )
    if parameters:
        items.append(
            f"<code>{text(parameters)}</code> has friction, offsets and rotor inertias. Copy them "
            "into the controller's parameters, or start the nodes with <code>--params-file "
            f"{text(parameters)}</code> after their own file. The two files go together: rotor "
            "inertias and links were identified at the same time."
        )
    items += [
        "Begin with <code>control_law: gravity_compensation</code>: the arm must hold where it is "
        "left. Then move slowly, with <code>friction_compensation: false</code>.",
        "Then set <code>friction_compensation: true</code>. If a joint creeps or hums, its "
        "friction is overestimated: lower <code>friction.&lt;joint&gt;.coulomb</code>.",
        "<code>rnea_identify check</code> compares any later recording with the model that the "
        "controller uses.",
    ]
    listed = "".join(f"<li>{item}</li>" for item in items)
    return f"<h2>How to use it</h2>\n<ol>{listed}</ol>"
