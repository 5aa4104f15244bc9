"""The model against the robot, and a push against the momentum observer, over DDS in lockstep."""

from __future__ import annotations

import pytest
from control_msgs.action import FollowJointTrajectory
from trajectory_bench import JOINTS, START, STILL, aborted, trajectory_bench

DOMAIN = 74
INVALID_GOAL = FollowJointTrajectory.Result.INVALID_GOAL


@pytest.mark.parametrize(("trusted", "words"), [(False, "held with"), (True, "measured")])
def test_unknown_load_is_reported_for_each_joint(trusted: bool, words: str) -> None:
    parameters = {"model_check": {"bound": 0.01}, "measured_effort_is_trusted": trusted}
    with trajectory_bench(DOMAIN, **parameters) as bench:
        assert "model 1" not in bench.arm.diagnostics
        bench.push([5.0, 2.0])  # of effort limits of 100 and 50 Nm
        bench.run(2.0)
        bench.arm.until_diagnosed("model 1", "shoulder: model ")
        assert f" Nm, {words} " in bench.arm.diagnostics["model 1"]
        assert "elbow: model " in bench.arm.diagnostics["model 2"]
        assert "the model does not fit the robot: shoulder" in bench.arm.diagnostics["message"]
        bench.push([0.0, 0.0])
        bench.run(2.0)
        bench.wait(lambda: "model 1" not in bench.arm.diagnostics)


@pytest.mark.explores
def test_push_is_taken_for_a_collision_until_the_fault_is_reset() -> None:
    detection = {"enable": True, "threshold": {joint: 4.0 for joint in JOINTS}}
    with trajectory_bench(DOMAIN, collision_detection=detection) as bench:
        sent = bench.follow([(0.8, START + 0.5, STILL, STILL)])
        bench.run(0.4)
        assert not sent.ended
        bench.push([8.0, 0.0])
        bench.run(0.3)
        bench.wait(lambda: sent.ended)
        status, code, text = sent.ending
        assert (status, code) == aborted(INVALID_GOAL)
        assert text.startswith("collision? ") and "act on shoulder from outside" in text
        bench.push([0.0, 0.0])
        bench.run(1.2)
        bench.arm.until_diagnosed("mode", "fault")
        assert "call ~/reset_fault first" in bench.rejected(bench.goal([(0.5, START, STILL)]))
        assert bench.ask("reset_fault") == (True, "holding")
        bench.run(0.1)
        bench.arm.until_diagnosed("mode", "holding")
