"""The executable: signals, requests that do not fit, files that cannot be read."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import pytest
from dds import ARM, PATIENT, LockstepArm, ask, controller, ros, wait_for
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from robots import two_link_arm

from rnea_control.dynamics import Workspace, gravity


@pytest.fixture(scope="module")
def arm() -> Iterator[LockstepArm]:
    with ros(83):
        arm = LockstepArm(**ARM)
        yield arm
        arm.destroy()


def test_wrong_requests_are_answered_and_a_signal_leaves_a_holding_torque(arm: LockstepArm) -> None:
    """By SIGHUP; of the other tests some end their processes by SIGINT, and some by SIGTERM."""
    with controller(PATIENT) as process:
        arm.run(5)
        for number in (1, 3, 42):  # configure, activate, nonsense; it is active already
            transition = Transition(id=number)
            name = "rnea_controller/change_state"
            assert not ask(arm.node, arm.spin, ChangeState, name, transition=transition).success
        process.said("transition 1 is not possible now, only deactivate (4)")
        wrong = [Parameter(name="x", value=ParameterValue(type=99))]
        service = "rnea_controller/set_parameters"
        answer = ask(arm.node, arm.spin, SetParameters, service, parameters=wrong)
        assert "type 99; it must be one of" in answer.results[0].reason
        wait_for(lambda: arm.diagnostics.get("callbacks failed") == "4", arm.spin)
        arm.run(20)
        received = arm.node.commands_received
        assert process.stop(signal.SIGHUP) == 0, process.output
        wait_for(lambda: arm.node.commands_received > received, arm.spin)
        assert "Traceback" not in process.output
    model = arm.node.model
    expected = gravity(model, Workspace(model), arm.node.q, np.zeros(2))
    command = arm.node.effort_controller.limited(arm.node.q, arm.node.v)
    np.testing.assert_allclose(command, expected, rtol=1e-6)


def test_what_is_wrong_at_the_start_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "87")  # where nobody tells a description
    wrong = {"robot_description": two_link_arm(), "contol_law": "pd", "control_law": "magic"}
    with ExitStack() as stack:
        waiting, refused, empty = (
            stack.enter_context(controller({**PATIENT, **changes}))
            for changes in ({}, wrong, {"joints": []})
        )
        empty.said("Does the YAML file set a parameter to []")
        assert "Traceback" not in empty.output
        refused.said("parameter 'contol_law' is not known and has no effect; is it misspelt?")
        refused.said("not configured: parameter 'control_law' is 'magic'; it must be one of")
        refused.said("[parameter]")
        waiting.said("waiting for the topic robot_description")
        waiting.said("still waiting for the topic robot_description")
        for process in (waiting.process, refused.process):
            assert process.poll() is None
            while process.poll() is None:  # a launch file sends a second one beside a terminal's
                process.send_signal(signal.SIGINT)
                time.sleep(0.001)
            assert process.returncode == 0
