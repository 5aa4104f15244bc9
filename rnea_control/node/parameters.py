"""The parameters of the controller node, each declared only here.

`python -m rnea_control.node.parameters` prints `docs/parameters.md`.
"""

from __future__ import annotations

from rnea_control.control import ControlLaw, laws
from rnea_control.control.settings import LONGEST_DEAD_TIME
from rnea_control.node.safety_parameters import SAFETY_PARAMETERS
from rnea_control.node.trajectory_parameters import TRAJECTORY_PARAMETERS
from rnea_control.ros.parameter_table import Parameter, markdown
from rnea_control.ros.robot_parameters import (
    COMMAND_PARAMETERS,
    HANDOVER_PARAMETERS,
    LIMIT_PARAMETERS,
    LOCKED_POSITION,
    REAL_TIME_PARAMETERS,
    ROBOT_PARAMETERS,
)

# Where tracking was closest on a controller_manager at 1 kHz: one state, [s].
DEAD_TIME = 0.001
# For rotors of arms up to some hundred kilograms, [kg m^2] or [kg].
LARGEST_FEEDBACK_INERTIA = 10.0

PARAMETERS = (
    *ROBOT_PARAMETERS,
    *LIMIT_PARAMETERS,
    Parameter(
        "control_law",
        str,
        "computed_torque",
        "the law that computes torques from errors, see below; the units of the gains depend on it",
        choices=tuple(law.name for law in ControlLaw),
    ),
    Parameter(
        "gains.<joint>.p",
        float,
        None,
        "position gain",
        laws.gain_unit("1/s^2", "Nm/rad"),
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "gains.<joint>.d",
        float,
        None,
        "velocity gain",
        laws.gain_unit("1/s", "Nm s/rad"),
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "gains.<joint>.i",
        float,
        0.0,
        "integral gain",
        laws.gain_unit("1/s^3", "Nm/(rad s)"),
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "gains.<joint>.i_clamp_max",
        float,
        10.0,
        "upper bound of the integral term",
        laws.gain_unit("rad/s^2", "Nm"),
        at_least=0.0,
        live=True,
        infinite=True,
    ),
    Parameter(
        "gains.<joint>.i_clamp_min",
        float,
        -10.0,
        "lower bound of the integral term",
        laws.gain_unit("rad/s^2", "Nm"),
        at_most=0.0,
        live=True,
        infinite=True,
    ),
    Parameter(
        "feedback_inertia.<joint>",
        float,
        0.0,
        "least inertia by which computed_torque turns the feedback of this joint into a torque, "
        "for joints whose rotor inertia is not known; 0 for the model's. More than the joint has "
        "makes it that much stiffer than its gains say",
        "kg m^2 or kg",
        at_least=0.0,
        at_most=LARGEST_FEEDBACK_INERTIA,
        live=True,
    ),
    Parameter(
        "dead_time",
        float,
        DEAD_TIME,
        "how long after its measurement a torque acts: the torque is computed for the state and "
        "the desired motion of then. The default was measured with ros2_control at 1 kHz",
        "s",
        at_least=0.0,
        at_most=LONGEST_DEAD_TIME,
        live=True,
    ),
    *COMMAND_PARAMETERS,
    Parameter(
        "controller_manager",
        str,
        "controller_manager",
        "name of the controller_manager that says whether the effort controller is active; "
        '"" not to ask it',
    ),
    Parameter(
        "activate_effort_controller",
        bool,
        False,
        "have controller_manager activate the effort controller once the gravity torque is "
        "commanded",
    ),
    *SAFETY_PARAMETERS,
    *HANDOVER_PARAMETERS,
    *TRAJECTORY_PARAMETERS,
    *REAL_TIME_PARAMETERS,
    *(
        Parameter(
            f"diagnostics.{name}.{level}",
            float,
            value,
            f"/diagnostics says {level.upper()} when {meaning} exceeds this in the last second",
            unit,
            above=0.0,
            live=True,
        )
        for name, meaning, unit, values in (
            ("tick_duration", "the 99 % quantile of the tick duration", "s", (0.0005, 0.005)),
            ("state_age", "the 99 % quantile of the state age", "s", (0.005, 0.05)),
            ("period_jitter", "the 99 % quantile of the period jitter", "s", (0.005, 0.05)),
            ("missed_states", "the fraction of states missed", "", (0.01, 0.1)),
            ("late_states", "the fraction of late states", "", (0.05, 0.5)),
        )
        for level, value in zip(("warn", "error"), values, strict=True)
    ),
    Parameter(
        "autostart", bool, True, "configure and activate at start, without a lifecycle manager"
    ),
)

if __name__ == "__main__":
    print("# Parameters of `rnea_controller`\n")
    print("Printed from the table in code by `python -m rnea_control.node.parameters`.\n")
    print(markdown((*PARAMETERS, LOCKED_POSITION)))
    print("## Control laws\n")
    print("u = Kp e + Kd de + integral of Ki e, with the gains p, d and i. Added are the friction,")
    print("with `friction_compensation`, and the effort of a trajectory's points.\n")
    print(laws.markdown(), end="")
