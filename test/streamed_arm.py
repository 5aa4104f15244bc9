"""A supervised arm that gets targets of a stream, without ROS."""

from __future__ import annotations

import math

import numpy as np
from supervised_arm import SupervisedArm

from rnea_control.control import stream_intake
from rnea_control.control.stream_intake import StreamIntake, Targets, take_once
from rnea_control.loop import other_inputs

JOYSTICK = (7, 9)
NAN = np.full(2, math.nan)


class StreamedArm(SupervisedArm):
    """An arm with a stream of joint targets at 50 Hz."""

    def __init__(self, **arguments) -> None:
        super().__init__(**arguments)
        self.intake = StreamIntake()

    def send(
        self,
        position: object = None,
        velocity: object = None,
        effort: object = None,
        publisher: tuple[int, int] = JOYSTICK,
        stamp: float = math.nan,
        age: float = math.nan,
        is_jog: bool = False,
    ) -> int:
        values = [
            NAN if each is None else np.asarray(each, float)
            for each in (position, velocity, effort)
        ]
        targets = np.array(values).view(Targets)
        arrays = self.controller.arrays
        kind = other_inputs.JOG if is_jog else other_inputs.TARGET_JOINT
        asked = targets, stream_intake.TAKEN, kind, is_jog, publisher, self.t, stamp, age, True
        result = take_once(self.intake.array, arrays, *asked)
        self.supervisor.follow_up(self.controller.tell())
        return result

    def stream(self, path, duration: float, **message) -> StreamedArm:
        """Sends `path` of the time since now; runs the arm."""
        begin = self.t
        for _ in range(round(duration / 0.02)):
            assert self.send(path(self.t - begin), **message) == stream_intake.TAKEN
            self.run(0.02)
        return self
