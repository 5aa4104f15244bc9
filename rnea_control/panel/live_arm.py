"""`LiveSource`: moments of a running controller, by its client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState

from rnea_control.array_types import FloatArray
from rnea_control.client.arm import Arm, ModeAndReason
from rnea_control.control.controller_state import TERMS
from rnea_control.exceptions import NotThere
from rnea_control.model import RobotModel
from rnea_control.panel.moment import Moment

try:
    from control_msgs.msg import JointTrajectoryControllerState
except ImportError:
    JointTrajectoryControllerState = None

NANOSECONDS = 1e-9
LONGEST_SILENCE = 3.5  # time without a report, which comes each second, of a controller [s]
STALE = 0.5  # difference of stamps above which a message tells nothing of a moment [s]
GONE = "no controller"  # mode in place of the last one of a controller that is silent


class LiveSource:
    """Moments of a running controller. A topic that does not come leaves NaN.

    Args:
        arm: the controller and its arm.

    Attributes:
        arm: the controller and its arm.
        model: model of the arm.
        description: URDF of the arm.
        joint_names: joints, in the order of all arrays.
    """

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self.model: RobotModel = arm.model
        self.description, self.joint_names = arm.description, arm.joint_names
        self._unknown = np.full(len(self.joint_names), np.nan)

    @property
    def is_silent(self) -> bool:
        """True if the controller has sent no report for longer than it may; also before the first
        one."""
        return self.arm.diagnostics.age > LONGEST_SILENCE

    def moment(self) -> Moment | None:
        """The newest moment; None while there is no state."""
        arm = self.arm
        try:
            state = arm.state
        except NotThere:
            return None
        mode, report = arm.mode, arm.diagnostics
        if report.age > LONGEST_SILENCE and np.isfinite(report.age):
            mode = ModeAndReason(
                GONE,
                f"it has sent no report for {report.age:.0f} s; see its log. Before, it was "
                f"{mode.name}",
            )
        efforts = self._efforts("~/external_torques", state.stamp, self._in_order)
        return Moment(
            time=state.stamp,
            age=state.age,
            positions=state.positions,
            velocities=state.velocities,
            efforts=state.efforts,
            desired=self._desired(state.stamp),
            torque_terms=self._efforts("~/torque_terms", state.stamp, self._terms),
            external_torques=efforts,
            mode=mode,
            report=report,
        )

    def _newest(self, kind: type, topic: str, stamp: float) -> Any:
        """Newest message of a topic; None without one, or if it is of another time than `stamp`
        [s]."""
        try:
            message = self.arm.newest(kind, topic, 0.0)
        except NotThere:
            return None
        at = message.header.stamp.sec + NANOSECONDS * message.header.stamp.nanosec
        return message if abs(stamp - at) <= STALE else None

    def _desired(self, stamp: float) -> FloatArray:
        """Desired positions, shape (nv,), [rad] or [m]."""
        if JointTrajectoryControllerState is None:
            return self._unknown
        message = self._newest(JointTrajectoryControllerState, "~/controller_state", stamp)
        if message is None:
            return self._unknown
        return self._in_order(message.joint_names, message.reference.positions)

    def _efforts(
        self, topic: str, stamp: float, arranged: Callable[[Any, Any], FloatArray]
    ) -> FloatArray:
        """Efforts of a topic of JointState, as `arranged` makes them of names and values."""
        message = self._newest(JointState, topic, stamp)
        return arranged((), ()) if message is None else arranged(message.name, message.effort)

    def _in_order(self, names: Any, values: Any) -> FloatArray:
        """Values in the order of the joints, shape (nv,); NaN for those that are missing."""
        known = dict(zip(names, values, strict=False))
        return np.array([known.get(joint, np.nan) for joint in self.joint_names])

    def _terms(self, names: Any, values: Any) -> FloatArray:
        """Torque terms, shape (len(TERMS), nv), [Nm] or [N]."""
        known = dict(zip(names, values, strict=False))
        return np.array(
            [[known.get(f"{joint}/{term}", np.nan) for joint in self.joint_names] for term in TERMS]
        )
