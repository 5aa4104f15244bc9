r"""The table of the control laws: a law is one row, and everybody else reads the row.

With the errors e = q_d - q and de = v_d - v, and u = Kp e + Kd de + integral of Ki e. Kernels index
the columns `MODEL`, `FEEDBACK` and `FRICTION` by the number of the law.
"""

from __future__ import annotations

from enum import IntEnum

from rnea_control.array_types import FloatArray
from rnea_control.control.layout import LAW
from rnea_control.kernels.inlining import inlined


class Model(IntEnum):
    """The state at which the model's torque is computed."""

    none = 0
    gravity = 1  # at the measured position, at rest
    measured = 2  # at the measured position and velocity, with the desired acceleration
    desired = 3  # at the desired position, velocity and acceleration


class Feedback(IntEnum):
    """The kind of feedback."""

    damping = 0  # -Kd v alone, a torque: no position is held, and a hand guides the arm
    torque = 1  # u
    acceleration = 2  # u, added to the model's acceleration


class Friction(IntEnum):
    """The velocity at which the friction is computed, if it is compensated."""

    none = 0
    desired = 1  # as the measured one would feed back its noise
    measured = 2


class ControlLaw(IntEnum):
    """The control laws by their names in the YAML.

    Attributes:
        model, feedback, friction: the parts of the law.
        equation: the law, but for friction and the effort of the waypoints.
        use: what it is for.
    """

    computed_torque = (
        *(Model.measured, Feedback.acceleration, Friction.desired),
        "RNEA(q, v, a_d + u)",
        "feedback through the mass matrix: the same gains fit any arm",
    )
    feedforward_pd = (
        *(Model.desired, Feedback.torque, Friction.desired),
        "RNEA(q_d, v_d, a_d) + u",
        "torques of the desired trajectory plus PD: the model sees no noise",
    )
    gravity_compensation = (
        *(Model.gravity, Feedback.damping, Friction.measured),
        "g(q) - Kd v",
        "guiding by hand; takes no trajectories",
    )
    pd = (
        *(Model.none, Feedback.torque, Friction.none),
        "u",
        "no model, as joint_trajectory_controller",
    )
    pd_gravity = (
        *(Model.gravity, Feedback.torque, Friction.desired),
        "g(q) + u",
        "PD with gravity compensation: asks no more of the model than its masses",
    )

    model: Model
    feedback: Feedback
    friction: Friction
    equation: str
    use: str

    def __new__(
        cls, model: Model, feedback: Feedback, friction: Friction, equation: str, use: str
    ) -> ControlLaw:
        law = int.__new__(cls, len(cls.__members__))
        law._value_ = len(cls.__members__)
        law.model, law.feedback, law.friction = model, feedback, friction
        law.equation, law.use = equation, use
        return law

    @property
    def holds_position(self) -> bool:
        """Whether it follows trajectories and holds positions; else a hand guides the arm."""
        return self.feedback is not Feedback.damping

    @property
    def feeds_back_acceleration(self) -> bool:
        """Whether gains are those of accelerations, not of torques."""
        return self.feedback is Feedback.acceleration


MODEL = tuple(int(law.model) for law in ControlLaw)
FEEDBACK = tuple(int(law.feedback) for law in ControlLaw)
FRICTION = tuple(int(law.friction) for law in ControlLaw)
NO_MODEL, GRAVITY, MEASURED, DESIRED = (int(model) for model in Model)
DAMPING, AS_TORQUE, AS_ACCELERATION = (int(feedback) for feedback in Feedback)
FRICTION_AT_DESIRED, FRICTION_AT_MEASURED = int(Friction.desired), int(Friction.measured)


@inlined
def is_hand_law(settings: FloatArray) -> bool:
    """Whether the law of these settings lets a hand guide the arm."""
    return FEEDBACK[int(settings[LAW, 0])] == DAMPING


def markdown() -> str:
    """The table of the laws, for the documentation."""
    rows = [["`control_law`", "torque", "what for"], ["---"] * 3]
    rows += [[f"`{law.name}`", f"`{law.equation}`", law.use] for law in ControlLaw]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
