"""Efforts whose size is not that of the robot's torques."""

from __future__ import annotations

import numpy as np

from rnea_control.identification.hypotheses.hypothesis import Doubt, Recorded
from rnea_control.plausibility.causes import Cause, Contribution, effort_words, told

# Measured gravity torque over the URDF's torque. Outside this range the efforts are in doubt: no
# URDF's masses are that wrong.
LEAST_GRAVITY = 0.4
MOST_GRAVITY = 2.5
BEYOND = 1.1  # effort beyond the limit, over the limit
OFTEN = 0.01  # fraction of efforts beyond the limit that is reported


class Strength(Doubt):
    """At the joint with the largest gravity torque, a torque that is far from the URDF's."""

    cause = Cause(
        "strength",
        "in slow motion the effort of {joints} is {what} times the gravity torque of the URDF",
        "Are the efforts in Nm and N, at the joint and not at the motor? Is this the robot of the "
        "URDF, and is its load in the parameter payload?",
    )

    def doubt(self, recorded: Recorded) -> Contribution:
        joint, ratio, deviation = recorded.gravity_ratio
        far = ratio + 3.0 * deviation < LEAST_GRAVITY or ratio - 3.0 * deviation > MOST_GRAVITY
        which = (np.arange(recorded.model.nv) == joint) & far
        return told(self.cause, recorded.model, which, what=f"{ratio:.2g}")


class Limit(Doubt):
    """Efforts beyond the limits of the URDF."""

    cause = Cause(
        "limit",
        "efforts beyond the URDF's limits: {rows}",
        "Are they in Nm and N, and is <limit effort> right?",
    )

    def doubt(self, recorded: Recorded) -> Contribution:
        model = recorded.model
        limit = np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)
        sizes = np.abs(recorded.motion.effort)
        often = (sizes > BEYOND * limit + 4.0 * recorded.noise).mean(axis=0) > OFTEN
        largest = np.quantile(sizes, 1.0 - OFTEN, axis=0)

        def text(j: int) -> str:
            return f"up to {effort_words(model, j, largest)}, limit {limit[j]:.3g}"

        return told(self.cause, model, often, text)


HYPOTHESES = (Strength(), Limit())
