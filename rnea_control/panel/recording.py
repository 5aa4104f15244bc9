"""`RecordedSource`: moments of a recording, played back."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from viser import GuiApi, GuiEvent, GuiSliderHandle

from rnea_control.array_types import FloatArray
from rnea_control.client.arm import ModeAndReason, Report
from rnea_control.control.controller_state import TERMS
from rnea_control.dynamics import Workspace, friction, gravity, rnea
from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.recording import RESTART, Recording
from rnea_control.identification.recording_files import read_recording
from rnea_control.model import RobotModel
from rnea_control.panel.hypertext import block, lines, put
from rnea_control.panel.moment import Moment
from rnea_control.panel.recorded_desired import RecordedDesired
from rnea_control.parameters.settings import quietly

MODE = "recording"
BETWEEN = 1.0  # time between two parts of a recording whose stamps start again [s]
AROUND = 0.05  # half of the time in which a motion is fitted [s]
LEAST = 4  # number of states on each side in which a motion is fitted, at least
MOST = 200  # the same, at most
DEGREE = 3  # degree of the polynomial of the fit
STALE = 0.1  # time from recorded torque terms within which they are shown [s]
SPEEDS = {"0.1 x": 0.1, "0.5 x": 0.5, "1 x": 1.0, "2 x": 2.0, "5 x": 5.0}
MOVED = 0.25  # period at which the slider follows [s]
DRAGGED = 1.0  # time after a browser has moved the slider in which it does not follow [s]
STEP = 0.01  # step of the slider [s]
REMEDY = (
    "record the topic /robot_description too, or give the URDF by --urdf, which must be that of "
    "this arm"
)


class RecordedSource:
    """Moments of a recording.

    Torque terms that were not recorded are those of the model for the recorded motion: gravity,
    Coriolis, inertia and friction. Their difference from the measured effort is the external
    torque; feedback and disturbance are not known then.

    Args:
        path: recording of rosbag2 (MCAP, SQLite, or its folder), or file that ends in .npz.
        description: URDF of the arm; by default the recorded one.
        joints: joints of the arm; by default those of the URDF that were recorded.
        topic: topic of the joint states; by default the one with these joints.

    Attributes:
        model: model of the arm.
        description: URDF of the arm.
        joint_names: joints, in the order of all arrays.
        notes: what is missing or left out, in words.
        duration: time of the last state, from the first one on [s].
        position: time that is shown, from the first state on [s].
        plays: True while it plays.
        speed: time of the recording over real time.

    Raises:
        RecordingError: the path is not a recording of this arm, or has no URDF.
        RobotModelError: the URDF does not describe a robot with these joints.
    """

    def __init__(
        self,
        path: str | Path,
        description: str = "",
        joints: Sequence[str] | None = None,
        topic: str | None = None,
    ) -> None:
        path = Path(path)
        found = read_recording(path, joints, topic)
        self.description = description or found.robot_description
        if not self.description:
            raise RecordingError(f"{path}: no robot_description was recorded; {REMEDY}")
        self.model = _model(self.description, joints, found)
        self.joint_names = self.model.joint_names
        if found.joints != self.joint_names:
            found = read_recording(path, self.joint_names, topic)
        times, self._q, self._effort = _in_order(found, self.model)
        self._time = times - times[0]
        start = found.start + times[0]
        self._terms_time, self._terms = _recorded_terms(path, found, start)
        self._desired = RecordedDesired(path, found, start)
        self._workspace = Workspace(self.model)
        self._name = path.name
        self.notes = tuple(filter(None, (*found.notes, self._desired.remark)))
        self.duration = float(self._time[-1])
        self.position, self.plays, self.speed = 0.0, True, 1.0
        self._lock = threading.Lock()  # the page's thread, and browsers' callbacks
        self._seen = time.monotonic()
        self._slider: GuiSliderHandle[float] | None = None
        self._slider_due = 0.0

    def moment(self) -> Moment:
        """The moment that is to be shown now."""
        with self._lock:
            self._go_on()
            at = self.position
        self._update_controls()
        return self.at(at)

    def at(self, seconds: float) -> Moment:
        """The moment at a time, from the first state on [s]."""
        q, v, a = self._motion(seconds)
        nearest = _nearest(self._time, seconds)
        effort, terms = self._effort[nearest], self._model_terms(q, v, a)
        external = terms[:4].sum(axis=0) - effort
        k = _nearest(self._terms_time, seconds)
        if k >= 0 and abs(self._terms_time[k] - seconds) <= STALE:
            terms = self._terms[k]
        doing = "is played" if self.plays else "is paused"
        reason = f"{self._name} {doing} at {seconds:.2f} s of {self.duration:.2f} s"
        return Moment(
            time=seconds,
            age=0.0,
            positions=q,
            velocities=v,
            efforts=effort,
            desired=self._desired.at(seconds),
            torque_terms=terms,
            external_torques=external,
            mode=ModeAndReason(MODE, reason),
            report=Report(),
        )

    def seek(self, seconds: float) -> None:
        """Continues at another time, from the first state on [s]."""
        with self._lock:
            self.position = min(max(seconds, 0.0), self.duration)

    def controls(self, gui: GuiApi) -> None:
        """Adds buttons and slider of the playback to a page."""
        put(gui.add_html(""), block(lines(self._name, *self.notes)))
        play = gui.add_button("Pause")
        speed = gui.add_dropdown("speed", tuple(SPEEDS), initial_value="1 x")
        last = max(self.duration, STEP)
        slider = gui.add_slider("time [s]", 0.0, last, STEP, 0.0)

        @play.on_click
        def _(_: object) -> None:
            with self._lock:
                self._go_on()
                if not self.plays and self.position >= self.duration:
                    self.position = 0.0
                self.plays = not self.plays

        @speed.on_update
        def _(_: object) -> None:
            with self._lock:
                self._go_on()
                self.speed = SPEEDS[speed.value]

        @slider.on_update
        def _(event: GuiEvent[GuiSliderHandle[float]]) -> None:
            if event.client is not None:  # a browser, not the playback
                self._slider_due = time.monotonic() + DRAGGED
                self.seek(slider.value)

        self._play, self._slider = play, slider

    def _go_on(self) -> None:
        """Advances the time that is shown; pauses at the end."""
        now = time.monotonic()
        passed, self._seen = now - self._seen, now
        if self.plays:
            self.position = min(self.position + self.speed * passed, self.duration)
            self.plays = self.position < self.duration

    def _update_controls(self) -> None:
        """Has button and slider follow."""
        if self._slider is None:
            return
        label = "Pause" if self.plays else "Play"
        if self._play.label != label:
            self._play.label = label
        if (now := time.monotonic()) >= self._slider_due:
            self._slider_due = now + MOVED
            self._slider.value = round(self.position / STEP) * STEP

    def _motion(self, seconds: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Position, velocity and acceleration, by a polynomial through the states around a time."""
        times, middle = self._time, _nearest(self._time, seconds)
        first, last = np.searchsorted(times, (seconds - AROUND, seconds + AROUND))
        first = min(max(first, middle - MOST), middle - LEAST)
        last = max(min(last, middle + MOST), middle + LEAST)
        rows = slice(max(first, 0), min(last + 1, len(times)))
        passed = times[rows] - seconds
        degree = min(DEGREE, len(passed) - 1)
        scale = max(float(np.abs(passed).max()), STEP)
        powers = np.vander(passed / scale, degree + 1, increasing=True)
        found = np.zeros((DEGREE + 1, self.model.nv))
        found[: degree + 1] = np.linalg.lstsq(powers, self._q[rows], rcond=None)[0]
        return found[0], found[1] / scale, 2.0 * found[2] / scale**2

    def _model_terms(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Terms of the model, shape (len(TERMS), nv), [Nm] or [N]; NaN for the others."""
        model, workspace, nv = self.model, self._workspace, self.model.nv
        terms = np.full((len(TERMS), nv), math.nan)
        q, v, a = (np.ascontiguousarray(each) for each in (q, v, a))
        of_gravity = gravity(model, workspace, q, np.zeros(nv))
        nonlinear = rnea(model, workspace, q, v, np.zeros(nv), np.zeros(nv))
        moving = rnea(model, workspace, q, v, a, np.zeros(nv))
        slipping = friction(model, workspace, v, np.zeros(nv))
        terms[:4] = of_gravity, nonlinear - of_gravity, moving - nonlinear, slipping
        return terms


def _model(description: str, joints: Sequence[str] | None, found: Recording) -> RobotModel:
    """Model of the recorded joints; the others are locked."""
    if joints is None:
        whole = quietly(RobotModel.from_urdf_string, description)
        joints = [joint for joint in whole.joint_names if joint in found.joints]
        # Torque terms have more efforts than the states, and other names.
        joints = joints or list(whole.joint_names)
    model = quietly(RobotModel.from_urdf_string, description, list(joints))
    if model.nq != model.nv or model.nv != len(model.joint_names):
        raise RecordingError(
            f"{found.source}: {listed(model.joint_names)}: a joint of several degrees of freedom "
            "cannot be shown: joint_states have one position for each joint"
        )
    return model


def _in_order(found: Recording, model: RobotModel) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Times [s], positions and efforts, in the order of time. Stamps that start again continue a
    second later."""
    known = np.isfinite(found.time) & np.isfinite(found.q).all(axis=1)
    times, q, effort = found.time[known], found.q[known], found.effort[known]
    if not len(times):
        raise RecordingError(
            f"{found.source}: no state has a position of each joint: {listed(found.joints)}. Name "
            "the topic of the joint states by --topic"
        )
    steps = np.diff(times, prepend=times[:1])
    times = times + np.cumsum(np.where(steps < -RESTART, BETWEEN - steps, 0.0))
    rising = times > np.append(-math.inf, np.maximum.accumulate(times)[:-1])
    times, q, effort = times[rising], q[rising], effort[rising]
    turning = [kind == "continuous" for kind in model.joint_types]
    return times, np.where(turning, np.unwrap(q, axis=0), q), effort


def _recorded_terms(path: Path, states: Recording, start: float) -> tuple[FloatArray, FloatArray]:
    """Times of recorded torque terms, from `start` on [s], and the terms, shape (n, len(TERMS),
    nv), [Nm] or [N]; empty without any, or if stamps start again.

    Args:
        path: the recording.
        states: its joint states.
        start: stamp of the first state that is used [s].
    """
    joints = states.joints
    names = [f"{joint}/{term}" for joint in joints for term in TERMS]
    nothing = np.zeros(0), np.zeros((0, len(TERMS), len(joints)))
    if (np.diff(states.time) < -RESTART).any():
        return nothing
    try:
        found = read_recording(path, names)
    except RecordingError:
        return nothing
    terms = found.effort.reshape(-1, len(joints), len(TERMS)).transpose(0, 2, 1)
    times = found.time + found.start - start
    order = np.argsort(times, kind="stable")
    return times[order], terms[order]


def _nearest(times: FloatArray, seconds: float) -> int:
    """Row whose time is nearest; -1 without rows."""
    after = int(np.searchsorted(times, seconds))
    if after == 0 or after == len(times):
        return min(after, len(times) - 1)
    return after - int(seconds - times[after - 1] < times[after] - seconds)
