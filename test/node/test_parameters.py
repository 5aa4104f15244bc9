"""What parameters are refused, and what the others decide, without a node."""

from __future__ import annotations

import math
import re
from operator import attrgetter

import numpy as np
import pytest
from robots import two_link_arm

from rnea_control.control import (
    ControlLaw,
    ControllerSettings,
    ExcessiveEffort,
    SupervisionSettings,
    layout,
)
from rnea_control.exceptions import RneaControlError
from rnea_control.node.parameters import PARAMETERS, in_force
from rnea_control.parameters.parameter import GivenParameters, expand
from rnea_control.parameters.settings import load_model
from rnea_control.parameters.table import LOCKED_POSITION, TICK_ROWS
from rnea_control.ros.node_parameters import handover_times

GOOD = {
    "joints": ["shoulder", "elbow"],
    "robot_description": two_link_arm(),
    **{f"gains.{joint}.{gain}": 10.0 for joint in ("shoulder", "elbow") for gain in ("p", "d")},
}


def decided(changes: dict) -> dict[str, object]:
    """What the parameters `GOOD` with changes decide; None takes one away."""
    values = {name: value for name, value in (GOOD | changes).items() if value is not None}
    joints = GivenParameters(values, expand(PARAMETERS, ()))["joints"]
    locked = {name: LOCKED_POSITION for name in values if name.startswith("locked_positions.")}
    given = GivenParameters(values, expand(PARAMETERS, joints) | locked)
    names = [name.partition(".")[2] for name in locked]
    found = in_force(given, load_model(given, joints, names, ""))
    SupervisionSettings.of(found.values)
    handover_times(given, simulated=False)
    return {
        "": found,
        "trajectories": found.controller.trajectories,
        "tolerances": found.controller.trajectories.tolerances,
    }


REFUSED = [
    ({"joints": [""]}, "'joints' is .*list of non-empty strings"),
    ({"joints": ["elbow", "elbow"]}, "twice"),
    (
        {"joints": ["shoulder", "wrist"], "gains.wrist.p": 1.0, "gains.wrist.d": 1.0},
        "no joint 'wrist', which `joints` names; it has shoulder, elbow",
    ),
    ({"gains.elbow.p": None}, "'gains.elbow.p' is not set"),
    ({"gains.elbow.d": "stiff"}, "'gains.elbow.d' is 'stiff'; it must be"),
    ({"gains.elbow.d": math.nan}, "'gains.elbow.d' is nan"),
    ({"effort_limit_scale": 1.5}, "'effort_limit_scale' is 1.5; .* at most 1"),
    ({"effort_limit_scale": 0.0}, "'effort_limit_scale' is 0.0; .* above 0"),
    ({"gravity": [0.0, 1.0]}, "'gravity' .* double array of length 3"),
    ({"payload.link": "tray"}, "payload's link is 'tray'; .* has base"),
    ({"friction.elbow.coulomb": -0.5}, ".* at least 0, or -1.0 for the `friction` of the URDF"),
    ({"robot_description": "hello"}, "robot_description: this is not well-formed"),
    ({"robot_description": ""}, "there is no robot description yet"),
    ({"locked_positions.finger": 0.1}, "`locked_positions` names 'finger'"),
    ({"joint_state_gap": 0.2, "joint_state_timeout": 0.1}, "must be at most joint_state_timeout"),
    ({"command_lease": 0.2, "command_timeout": 0.1}, "must be shorter than command_timeout"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_refused_parameter_is_named(changes: dict, words: str) -> None:
    with pytest.raises(RneaControlError) as refused:
        decided(changes)
    assert re.search(words, str(refused.value)), refused.value


NONE = math.inf
BRAKING = {"constraints.elbow.max_deceleration_on_cancel": 2.5}
BRAKES = {**BRAKING, "constraints.decelerate_on_cancel": True}
FREQUENCY = {"positions_upsampling.policy_frequency": 50.0}
COLLISIONS = {"collision_detection.enable": True, "collision_detection.threshold.elbow": 4.0}
# Where a setting is, parameters, and what they make of it; without parameters the default.
MEANING = [
    ("tolerances", "path_position", {}, NONE),
    ("tolerances", "path_position", {"constraints.elbow.trajectory": 0.1}, [NONE, 0.1]),
    ("tolerances", "path_velocity", {}, NONE),
    ("tolerances", "goal_position", {"constraints.elbow.goal": 0.1}, [NONE, 0.1]),
    ("tolerances", "goal_velocity", {}, 0.01),
    ("tolerances", "goal_velocity", {"constraints.stopped_velocity_tolerance": 0.0}, NONE),
    ("tolerances", "goal_time", {}, NONE),
    ("tolerances", "goal_time", {"cmd_timeout": 2.0}, 2.0),
    ("tolerances", "goal_time", {"constraints.goal_time": 0.5, "cmd_timeout": 2.0}, 0.5),
    ("trajectories", "max_deceleration", BRAKING, NONE),
    ("trajectories", "max_deceleration", BRAKES, [NONE, 2.5]),
    ("trajectories", "allow_moving_end", {"allow_nonzero_velocity_at_trajectory_end": True}, True),
    ("trajectories", "allow_integration", {"allow_integration_in_goal_trajectories": True}, True),
    ("trajectories", "start_from_desired_state", {"interpolate_from_desired_state": False}, False),
    ("trajectories", "upsample_positions", {"positions_upsampling.enable": True}, True),
    ("trajectories", "excessive_effort", {}, ExcessiveEffort.warn),
    *(
        ("trajectories", "excessive_effort", {"constraints.excessive_effort": each.value}, each)
        for each in ExcessiveEffort
    ),
    ("", "controller.control_law", {"control_law": "pd"}, ControlLaw.pd),
    ("trajectories", "allow_partial", {"allow_partial_joints_goal": True}, True),
    ("trajectories", "policy_frequency", FREQUENCY, 0.0),
    ("trajectories", "policy_frequency", {**FREQUENCY, "positions_upsampling.enable": True}, 50.0),
    ("", "model.damping", {"friction.elbow.damping": 3.0}, [0.0, 3.0]),
    ("", "model.friction", {"friction.elbow.coulomb": 0.5}, [0.0, 0.5]),
    ("", "model.armature", {"armature.elbow": 0.2}, [0.0, 0.2]),
]


@pytest.mark.parametrize(("place", "name", "changes", "expected"), MEANING)
def test_parameter_decides_about_a_setting(
    place: str, name: str, changes: dict, expected: object
) -> None:
    found = attrgetter(name)(decided(changes)[place])
    if isinstance(expected, float | list):
        np.testing.assert_array_equal(found, np.broadcast_to(expected, np.shape(found)))
    else:
        assert found is expected


def test_parameters_of_the_tick_are_in_their_rows() -> None:
    values = {
        "gains.<joint>.i": 3.0,
        "gains.<joint>.i_clamp_min": -math.inf,
        "gains.<joint>.error_deadband": 0.02,
        "feedback_inertia.<joint>": 0.5,
        "activation.blend_time": 0.3,
    }
    found = decided({name.replace("<joint>", "elbow"): value for name, value in values.items()})[""]
    rows = found.controller.rows(found.model)
    fields = {parameter: field for field, parameter in layout.PARAMETERS.items()}
    taken = {name: np.atleast_1d(getattr(rows, fields[name]))[-1] for name in values}
    assert taken == values
    assert rows.error_deadband[0] == 0.0
    assert rows.saturation_timeout == 0.5
    assert list(rows.torque_rate_limit) == [5000.0, 5000.0]


def test_step_reads_the_parameters_of_its_rows_alone() -> None:
    in_tick = {row.name for row in TICK_ROWS}
    # Whether there is a threshold at all is decided where the settings are made.
    of_rows = {*layout.PARAMETERS.values(), *layout.STIFFNESSES}
    assert in_tick == {*of_rows, "collision_detection.enable"}


def test_live_parameters_are_read_by_the_names_of_their_rows() -> None:
    """A reader needs no field, argument or copy between it and the row."""
    values: dict[str, object] = {"trajectory.catch_up": True, "model_check.bound": 0.3}
    settings = decided(values)[""].controller
    assert {name: settings[name] for name in values} == values
    joint = "gains.<joint>.error_deadband"
    assert list(decided({joint.replace("<joint>", "elbow"): 0.02})[""].controller[joint]) == [
        0,
        0.02,
    ]
    default = ControllerSettings(settings.gains)  # of a program
    assert not default["trajectory.catch_up"] and default["model_check.bound"] == 0.1
    assert list(default[joint]) == [0.0, 0.0]
    default.check(("shoulder", "elbow"))
    settings.check(("shoulder", "elbow"))


def test_external_torques_are_collisions_beyond_a_quarter_of_the_effort_limit_where_asked() -> None:
    for changes, threshold in (
        ({}, [NONE, NONE]),
        ({"collision_detection.enable": True}, [25.0, 25.0]),
        (COLLISIONS, [25.0, 4.0]),
    ):
        found = decided(changes)[""]
        rows = found.controller.rows(found.model)
        assert list(rows.max_external_torque) == threshold
