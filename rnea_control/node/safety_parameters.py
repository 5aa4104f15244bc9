"""The controller's own parameters of what keeps the arm safe: missing states, start and end."""

from __future__ import annotations

from rnea_control.ros.parameter_table import Parameter

SAFETY_PARAMETERS = (
    Parameter(
        "joint_state_gap",
        float,
        0.02,
        "after a longer gap in joint_states the motion slows down, and torques are computed from a "
        "predicted state",
        "s",
        above=0.0,
    ),
    Parameter(
        "joint_state_timeout",
        float,
        0.1,
        "after a longer gap the motion ends, and the arm brakes and holds by the model, until they "
        "are back",
        "s",
        above=0.0,
    ),
    Parameter(
        "max_bad_states",
        int,
        10,
        "so many unusable states in a row are ignored (not finite, lacking a joint, a jump, a "
        "stamp that goes back); then it is as if none came",
        at_least=0,
    ),
    Parameter(
        "interpreter_timeout",
        float,
        1.0,
        "a motion ends, and the arm brakes along its path and holds, when the process's Python "
        "interpreter has stood still for longer; infinite for never",
        "s",
        above=0.0,
        infinite=True,
    ),
    Parameter(
        "activation.blend_time",
        float,
        0.5,
        "what the torque in force at the start exceeds the controller's by fades out over this "
        "time, where it is known: from the sentinel, or by `measured_effort_is_trusted`; else the "
        "first torque is the gravity torque",
        "s",
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "activation.max_velocity",
        float,
        0.2,
        "the controller does not start while a joint is faster; infinite to catch an arm that "
        "falls, as in a simulation without brakes",
        "rad/s or m/s",
        above=0.0,
        infinite=True,
    ),
    Parameter(
        "activation.position_tolerance",
        float,
        0.02,
        "the controller does not start while a joint is further beyond a position limit",
        "rad or m",
        at_least=0.0,
    ),
    Parameter(
        "gravity_compensation.damping",
        float,
        0.05,
        "part of the velocity gains that is felt in hand guiding by ~/gravity_compensation",
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "require_sentinel",
        bool,
        False,
        "activate only while rnea_sentinel guards the arm",
    ),
    Parameter(
        "collision_detection.enable",
        bool,
        False,
        "brake and hold, in mode fault, when the momentum observer sees an external torque beyond "
        "a threshold",
    ),
    Parameter(
        "collision_detection.gain",
        float,
        25.0,
        "bandwidth of the momentum observer",
        "1/s",
        above=0.0,
    ),
    Parameter(
        "collision_detection.threshold.<joint>",
        float,
        -1.0,
        "external torque that counts as a collision; more than the joint's friction and what the "
        "model may be off",
        "Nm or N",
        above=0.0,
        special=(-1.0, "a tenth of the effort limit"),
    ),
    Parameter(
        "model_check.bound",
        float,
        0.1,
        "while the arm rests, what holds it may differ from the model's gravity torque by this "
        "part of the effort limits; beyond it diagnostics say how and what may be the cause; 0 for "
        "no check",
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "measured_effort_is_trusted",
        bool,
        False,
        "the effort in joint_states is the torque at the joints in Nm or N; the check of the model "
        "then goes by it, else by the controller's own feedback",
    ),
    Parameter(
        "last_command",
        str,
        "gravity",
        "what is commanded last when the controller stops, and what the hardware then applies for "
        "ever: the gravity torque, or zero for hardware whose brakes engage",
        choices=("gravity", "zero"),
    ),
    Parameter(
        "hold_on_shutdown",
        float,
        0.0,
        "how long the controller goes on holding the arm after SIGINT or SIGTERM, unless nobody "
        "subscribes to the commands any more; a second signal ends it",
        "s",
        at_least=0.0,
        special=(-1.0, "until nobody subscribes to the commands"),
    ),
)
