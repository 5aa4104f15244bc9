"""Measures the delay until torques act: by the efforts that the hardware reports, by the check at
activation, or once a second by the motion of the arm."""

from __future__ import annotations

import math
from collections import deque

from rnea_control.control import Mode, feasibility
from rnea_control.control.arm_answer import measured_delay
from rnea_control.control.laws import Model
from rnea_control.node.control_loop import ControlLoop

LOOKED_AT = 0.5  # duration of the motion that is compared [s]
REMEMBERED = 12  # number of measured delays that are remembered
FEWEST = 4  # number of measured delays that are needed for a result
SURE = 0.25  # quantile of the delays by motion that is reported; low, as model errors lengthen some


class DelayWatch:
    """Compares the torques that the arm seems to have got with the commanded torques.

    Args:
        loop: control loop that commands the arm.
    """

    def __init__(self, loop: ControlLoop) -> None:
        self._loop = loop
        self._found: deque[float] = deque(maxlen=REMEMBERED)
        self._ages: deque[float] = deque(maxlen=REMEMBERED)  # delays by efforts [s]

    def look(self) -> None:
        """Measures, and passes the delay to the supervisor, which detects gains too high for it."""
        loop, controller = self._loop, self._loop.controller
        settings = controller.settings
        age = loop.torque_age()
        if loop.supervisor.mode not in (Mode.HOLDING, Mode.MOVING):
            self._ages.clear()  # another node's torques may act, which match none of the commands
        elif math.isfinite(age):
            self._ages.append(age)
        if controller.is_moving and settings.control_law.model is not Model.none:
            with loop.arm_loop.lock:
                rows = loop.arm_loop.consistent(lambda: controller.recorded(LOOKED_AT))
            adds_gravity = settings.hardware_compensates_gravity
            delay = measured_delay(controller.model, *rows, adds_gravity)
            if math.isfinite(delay):
                self._found.append(delay)
        loop.supervisor.seen_delay = self.delay

    @property
    def delay(self) -> float:
        """Measured delay [s]; NaN where it is not known."""
        verdict = self._loop.supervisor.verdict
        if len(self._ages) >= FEWEST:
            return min(self._ages)  # a busy machine lengthens some
        if len(self._found) >= FEWEST:
            return sorted(self._found)[int(SURE * len(self._found))]
        return math.nan if verdict is None else verdict.delay

    @property
    def finding(self) -> str:
        """Finding that torques act too late; empty if they do not."""
        loop = self._loop
        period = loop.supervisor.state_period.shortest
        return feasibility.lateness(self.delay, loop.controller.settings.dead_time, period)
