"""The parameters of the sentinel, each declared only here or in `ros/robot_parameters.py`.

`python -m rnea_control.sentinel.parameters` prints `docs/sentinel_parameters.md`.
"""

from __future__ import annotations

from rnea_control.ros.parameter_table import Parameter, markdown
from rnea_control.ros.robot_parameters import (
    COMMAND_PARAMETERS,
    HANDOVER_PARAMETERS,
    LIMIT_PARAMETERS,
    LOCKED_POSITION,
    REAL_TIME_PARAMETERS,
    ROBOT_PARAMETERS,
)

OWN_PARAMETERS = (
    Parameter(
        "stiffness",
        float,
        100.0,
        "position gain of the sentinel's own control, in which the arm brakes and is held",
        "1/s^2",
        at_least=0.0,
    ),
    Parameter(
        "damping",
        float,
        20.0,
        "velocity gain of the sentinel's own control",
        "1/s",
        at_least=0.0,
    ),
    Parameter(
        "velocity_limit_factor",
        float,
        1.5,
        "an arm that moves faster than the URDF's velocity limits times this factor is taken from "
        "the controller",
        at_least=1.0,
    ),
    Parameter(
        "revoke_frozen_commands",
        bool,
        True,
        "take the arm from a controller that repeats a torque for command_timeout while it moves; "
        "false for laws that do so rightly",
    ),
    Parameter(
        "prediction_gap",
        float,
        0.02,
        "after a longer gap in joint_states, a sentinel that commands does so from a state that "
        "the model predicts",
        "s",
        above=0.0,
    ),
)

PARAMETERS = (
    *ROBOT_PARAMETERS,
    *LIMIT_PARAMETERS,
    *COMMAND_PARAMETERS,
    *HANDOVER_PARAMETERS,
    *OWN_PARAMETERS,
    *REAL_TIME_PARAMETERS,
)


if __name__ == "__main__":
    print("# Parameters of `rnea_sentinel`\n")
    print("Printed from the table in code by `python -m rnea_control.sentinel.parameters`.\n")
    print("What the section of `rnea_controller` in the same YAML file says counts too, unless a")
    print("section of `rnea_sentinel` says otherwise.\n")
    print(markdown((*PARAMETERS, LOCKED_POSITION), live=False), end="")
