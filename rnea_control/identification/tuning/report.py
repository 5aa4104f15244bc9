"""Report of rnea_tune: an HTML page with embedded pictures that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.identification.report import embedded, number, page, table
from rnea_control.identification.tuning.joint_experiment import JointEstimate
from rnea_control.identification.tuning.proposal import Proposal
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units


@dataclass(frozen=True)
class Swing:
    """A small swing of all joints."""

    label: str  # settings in force
    time: FloatArray  # shape (n,), [s]
    error: FloatArray  # desired minus measured positions, shape (n, nv), [rad] or [m]

    @property
    def rms(self) -> FloatArray:
        """RMS error of each joint, shape (nv,), [rad] or [m]."""
        return np.asarray(np.sqrt(np.mean(self.error**2, axis=0)))


HEADS = (
    *("joint", "inertia", "of the model", "proposed armature", "Coulomb friction", "damping"),
    *("breakaway, forward", "backward", "dead time, ms", "velocity noise", "w, rad/s", "bound"),
    *("torque noise", "collision threshold"),
)


def rows_of(
    model: RobotModel, estimates: Sequence[JointEstimate], proposal: Proposal
) -> list[list[str]]:
    """A row of text for each joint, under `HEADS`."""
    rows = []
    for each in estimates:
        name, inertia, friction = model.joint_names[each.joint], each.inertia, each.friction
        joint = proposal.joints[name]
        rows.append(
            [
                f"{name}, {units(model, each.joint).effort}",
                _measured(inertia.inertia, inertia.inertia_deviation),
                number(each.model_inertia, 3),
                number(joint.armature, 3),
                _measured(friction.coulomb, friction.coulomb_deviation),
                _measured(friction.damping, friction.damping_deviation),
                *(number(way, 3) for way in friction.breakaway),
                _measured(1e3 * inertia.dead_time, 1e3 * inertia.dead_time_deviation),
                number(each.noise, 2),
                number(joint.bandwidth, 3),
                joint.bound,
                number(joint.torque_noise, 2),
                number(joint.contact, 3),
            ]
        )
    return rows


def tuning_report(
    model: RobotModel,
    estimates: Sequence[JointEstimate],
    proposal: Proposal,
    swings: Sequence[Swing],
    words: str,
) -> str:
    """HTML of the report.

    Args:
        model: model of the controller.
        estimates: estimates of the joints.
        proposal: made from them.
        swings: the same swing before and after; empty if nothing was applied.
        words: how the tuning ended.
    """
    title = escape(f"Tuning of {model.name}")
    parts = [
        f"<h1>{title}</h1>",
        f"<p><strong>{escape(words)}</strong></p>",
        f"<p>Dead time of the arm: {1e3 * proposal.dead_time:.3g} ms, standard deviation "
        f"{1e3 * proposal.dead_time_deviation:.2g} ms. Proposed for streams: "
        f"{proposal.stream_bandwidth:.3g} rad/s; for the disturbance observer: "
        f"{proposal.observer_words}.</p>",
        "<h2>Joints</h2>",
        "<p>In SI units, with one standard deviation. The inertia is that of the joint with its "
        "rotor, at this position of the arm.</p>",
        table(HEADS, rows_of(model, estimates, proposal)),
    ]
    if swings:
        parts.append("<h2>The same small swing with both settings</h2>")
        parts += [_figure("Position errors of the swing", _swing_picture(model, swings))]
        heads = ("joint", *(f"RMS error, {each.label}, mrad or mm" for each in swings))
        rms = [1e3 * each.rms for each in swings]
        joints = enumerate(model.joint_names)
        parts.append(table(heads, [[n, *(number(x[j], 3) for x in rms)] for j, n in joints]))
    parts += ["<h2>Torque over acceleration at the lines of the multi-sine</h2>"]
    parts += ["<p>A joint that is a rigid inertia has the same at all frequencies.</p>"]
    for each in estimates:
        parts.append(_figure(escape(model.joint_names[each.joint]), _line_picture(each)))
    return page(title, parts)


def _measured(value: float, deviation: float) -> str:
    return f"{number(value, 3)} \N{PLUS-MINUS SIGN} {number(deviation, 2)}"


def _figure(words: str, source: str) -> str:
    caption = f"<figcaption>{words}</figcaption>"
    return f'<figure>{caption}<img alt="{words}" src="{source}"></figure>'


def _line_picture(each: JointEstimate) -> str:
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8.0, 2.4), dpi=110, layout="constrained")
    axes, found = figure.subplots(), each.inertia
    hertz = found.frequencies / (2.0 * np.pi)
    axes.axhspan(
        found.inertia - 2.0 * found.inertia_deviation,
        found.inertia + 2.0 * found.inertia_deviation,
        color="lightblue",
        label="fit, two standard deviations",
    )
    axes.axhline(each.model_inertia, color="C1", label="model without a rotor")
    axes.plot(hertz, found.response.real, "o", color="C0", label="measured")
    largest = max(found.inertia, float(found.response.real.max()))
    axes.set(xlabel="frequency, Hz", ylabel="inertia", ylim=(0.0, 1.2 * largest))
    axes.legend(loc="lower left", ncols=3)
    return embedded(figure)


def _swing_picture(model: RobotModel, swings: Sequence[Swing]) -> str:
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8.0, 1.2 * model.nv + 0.6), dpi=100, layout="constrained")
    rows = figure.subplots(model.nv, 1, sharex=True, squeeze=False)[:, 0]
    for j, axes in enumerate(rows):
        for k, swing in enumerate(swings):
            axes.plot(swing.time, 1e3 * swing.error[:, j], color=f"C{1 - k}", label=swing.label)
        axes.set_ylabel(f"{model.joint_names[j]}\nmrad or mm", fontsize=7)
    rows[-1].set_xlabel("time, s")
    figure.legend(*rows[0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
    return embedded(figure)
