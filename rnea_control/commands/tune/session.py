"""`Session`: a measurement of all joints, the report and the YAML, and the proposal in stages."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.client.connection import Running
from rnea_control.client.controller_link import ControllerLink
from rnea_control.commands.identify.new_folder import new_folder
from rnea_control.commands.move.executable import tell
from rnea_control.commands.terminal import NO_TERMINAL, ProgressBar, is_terminal, refusal_of, say
from rnea_control.commands.tune.live_arm import Interrupted, LiveArm
from rnea_control.commands.tune.observer_bandwidth import with_observer
from rnea_control.exceptions import (
    IdentificationError,
    Refused,
    RneaControlError,
    TrajectoryJointsError,
    listed,
    quoted,
)
from rnea_control.identification.controller_yaml import tuning_yaml
from rnea_control.identification.report import PARAMETERS
from rnea_control.identification.tuning.joint_estimates import noise
from rnea_control.identification.tuning.joint_experiment import Experiment, JointEstimate
from rnea_control.identification.tuning.proposal import Proposal, Values, propose, scaled
from rnea_control.identification.tuning.report import HEADS, Swing, rows_of, tuning_report
from rnea_control.identification.tuning.small_motion import FURTHEST
from rnea_control.parameters.table import OBSERVER

MEASURED = 0  # exit status: measured, and applied if that was requested
FAILED = 1  # exit status: nothing was measured
WENT_BACK = 3  # exit status: measured; the proposal shook the arm or failed, old settings in force
INTERRUPTED = 130  # exit status: a signal ended it, old settings in force
FADED = 1.5  # time after which the torque of the disturbance observer has faded [s]
AT_REST = 1.0  # time of the states at rest [s]
LONGEST = 600.0  # longest time of the measurement [s]
SHARED = 0.85  # part of it that the joints share: the last motion of each may take longer
SHAKING = 2.5  # velocity at rest, over that before, from which a joint shakes
LEAST_SHAKING = 0.01  # the same, at least [rad/s] or [m/s]
WORSE = 1.5  # position errors of a swing over those before from which settings are worse
LEAST_WORSE = 2e-3  # the same, at least [rad] or [m]
FEWER = 0.8  # part of the bandwidth that is tried after a refusal
LEAST_PART = 0.3  # part of the bandwidth below which a refusal is final
REPORT = "report.html"


class Session:
    """One run of rnea_tune."""

    def __init__(self, link: ControllerLink, running: Running, options: argparse.Namespace) -> None:
        self._link, self._running, self._options = link, running, options
        self._bar = ProgressBar()
        self._estimates: list[JointEstimate] = []
        self._at_rest: FloatArray | None = None
        self._applied: Values = {}  # what is in force of the proposal

    def run(self) -> int:
        """Measures, writes and applies; returns the exit status.

        Raises:
            RneaControlError: nothing was measured; the message has the reason. The old settings
                are in force.
        """
        link, options = self._link, self._options
        link.observe(options.wait)
        if not self._running():
            return INTERRUPTED
        names = link.given.model.joint_names
        chosen = options.joints or list(names)
        if unknown := [name for name in chosen if name not in names]:
            raise TrajectoryJointsError(
                f"--joints {quoted(unknown[0])} is not a joint of the controller; its joints are "
                f"{listed(names)}"
            )
        # From the tip to the base: a joint that is measured is held more firmly.
        joints = sorted((names.index(name) for name in chosen), reverse=True)
        tell(
            f"rnea_tune moves {listed([names[j] for j in joints])} one after the other, by less "
            f"than {FURTHEST:g} rad or m, for some {len(joints)} minutes at most. Keep people out "
            "of the reach of the arm, and have a hand on the emergency stop."
        )
        if not options.yes:
            refusal = refusal_of("Move the arm?", self._running) if is_terminal() else NO_TERMINAL
            if refusal:
                say(f"rnea_tune: not moved: {refusal}")
                return INTERRUPTED if not self._running() else FAILED
        try:
            with new_folder(options.output) as folder:
                status = self._with_arm(joints, folder)
        except Interrupted:
            return INTERRUPTED
        tell(f"written: {', '.join(str(each) for each in sorted(options.output.iterdir()))}")
        return status

    def _with_arm(self, joints: list[int], folder: Path) -> int:
        """Measures with the arm. At the end, also after errors, the own motion has ended and the
        old settings are in force."""
        arm = LiveArm(self._link, self._running, self._options.output)
        try:
            status = self._measure(arm, joints, folder)
            arm.settings.copy_to(folder)
            return status
        except BaseException as error:
            self._bar.end()
            is_interrupted = not self._running()  # a call that a signal ends has other words
            if is_interrupted:
                tell("interrupted: stopping the arm")
            tell(arm.stop())
            if is_interrupted and isinstance(error, RneaControlError):
                raise Interrupted from error
            raise
        finally:
            self._bar.end()
            arm.destroy()

    def _measure(self, arm: LiveArm, joints: list[int], folder: Path) -> int:
        given, options = self._link.given, self._options
        model = given.model.copy()
        if given.values["hardware_compensates_gravity"]:
            model.gravity = np.zeros(3)  # commands leave the gravity torque out
        arm.prepare(joints)
        before = arm.swing("before", joints) if options.apply else None
        at_rest = arm.at_rest(AT_REST)
        self._at_rest = noise(at_rest)
        began = time.monotonic()
        experiment = Experiment(
            model,
            arm,
            self._at_rest,
            at_rest.period,
            float(given.values["dead_time"]),
            self._show(began, len(joints)),
        )
        arm.settings.set({OBSERVER: 0.0})
        experiment.brace(joints)
        for k, joint in enumerate(joints):
            now = time.monotonic()
            if now - began > LONGEST * (1.0 - 1.0 / (len(joints) + 1)):
                tell(f"{model.joint_names[joint]} is left out: {LONGEST:g} s are nearly over")
                continue
            try:
                share = (began + SHARED * LONGEST - now) / (len(joints) - k)
                self._estimates.append(experiment.measure(joint, now + share))
            except IdentificationError as error:
                self._bar.end()
                tell(f"{model.joint_names[joint]} is left out: {error}")
        self._bar.end()
        if not self._estimates:
            raise IdentificationError("no joint was measured")
        self._estimates.reverse()
        rise = given.controller.torque_rise(given.model)
        proposal = propose(given.model, at_rest.period, self._estimates, rise)
        proposal = with_observer(proposal, given.model, given.controller, at_rest.period)
        tell(_table(HEADS, rows_of(model, self._estimates, proposal)))
        deviation = 1e3 * proposal.dead_time_deviation
        tell(
            f"dead time: {1e3 * proposal.dead_time:.3g} ms (sd {deviation:.2g}); bandwidth of the "
            f"disturbance observer: {proposal.observer_words}"
        )
        arm.go(arm.held)
        arm.settings.restore()
        swings, words = [] if before is None else [before], "Nothing was applied."
        if before is not None:
            words = self._apply(arm, proposal, swings, joints)
        tell(words)
        yaml = tuning_yaml(proposal, model.name, self._applied)
        (folder / PARAMETERS).write_text(yaml, encoding="utf-8")
        page = tuning_report(model, self._estimates, proposal, swings, words)
        (folder / REPORT).write_text(page, encoding="utf-8")
        return WENT_BACK if options.apply and not self._applied else MEASURED

    def _show(self, began: float, count: int) -> Callable[[str], None]:
        last = [""]

        def show(words: str) -> None:
            name = words.partition(":")[0]
            if name != last[0]:
                last[0] = name
                tell(f"{name} ({len(self._estimates) + 1} of {count})")
            elapsed = time.monotonic() - began
            self._bar.show(len(self._estimates) / count, f"{elapsed:.0f} s, {words}")

        return show

    def _apply(
        self, arm: LiveArm, proposal: Proposal, swings: list[Swing], joints: list[int]
    ) -> str:
        """Sets the proposal in stages, each tried by a swing, which is added to `swings`; in words
        how it ended. After a fault the old settings are in force again."""
        applied: Values = {}
        arm.tighten()
        arm.settings.set({OBSERVER: 0.0})  # the stages but the last one are without it
        arm.watch(FADED)
        reference = arm.swing("without disturbance observer", joints)
        for name, values in proposal.stages():
            tell(f"applying: {name}")
            try:
                applied.update(self._set(arm, values))
                swing = arm.swing("after", joints)
                fault = self._fault(arm, swing, reference)
            except RneaControlError as error:
                if not self._running():
                    raise
                fault = str(error)
            if fault:
                stands = arm.stop()
                arm.settings.restore()
                return f"The old settings are in force again: at {name}, {fault}. Now {stands}."
            swings[1:] = [swing]
        self._applied = applied
        arm.settings.keep(applied)
        old, new = (1e3 * float(np.sqrt(np.mean(each.rms**2))) for each in swings)
        return (
            "The proposal is in force, until the controller ends; copy the YAML into its own file. "
            f"RMS error of the small swing: {old:.3g} before, {new:.3g} mrad or mm after."
        )

    def _set(self, arm: LiveArm, values: Values) -> Values:
        """Sets the values of a stage, with smaller bandwidths if the controller refuses them;
        returns what is set.

        Raises:
            Refused: the controller refuses much smaller ones too.
            NotThere: the controller does not answer.
        """
        part = 1.0
        while True:
            try:
                arm.settings.set(found := scaled(values, part))
                break
            except Refused:
                part *= FEWER
                if part < LEAST_PART or scaled(values, part) == values:
                    raise
        if part < 1.0:
            tell(f"the controller refused that; {part:.2g} of the bandwidth is in force")
        return found

    def _fault(self, arm: LiveArm, swing: Swing, reference: Swing) -> str:
        """Fault of the settings in force, from a swing and one with the old settings; or empty."""
        names = self._link.given.model.joint_names
        shakes = noise(arm.at_rest(AT_REST))
        assert self._at_rest is not None
        allowed = np.maximum(SHAKING * self._at_rest, LEAST_SHAKING)
        for j in np.flatnonzero(shakes > allowed):
            return f"{names[j]} shakes, with {shakes[j]:.2g} rad/s or m/s at rest"
        worse = swing.rms > np.maximum(WORSE * reference.rms, LEAST_WORSE)
        for j in np.flatnonzero(worse):
            return (
                f"the error of {names[j]} has grown from {1e3 * reference.rms[j]:.3g} to "
                f"{1e3 * swing.rms[j]:.3g} mrad or mm"
            )
        return ""


def _table(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    """Lines of text for each joint."""
    lines = []
    for name, *cells in rows:
        found = (f"{head} {cell}" for head, cell in zip(heads[1:], cells, strict=True))
        lines.append(f"{name}: {', '.join(found)}")
    return "\n".join(lines)
