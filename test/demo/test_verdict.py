"""What a run is worth: disturbed ones and void ones are no result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dds import LockstepArm, controller, ros, trajectory, wait_for
from robots import joint, link, robot, two_link_arm
from std_srvs.srv import Trigger

from rnea_control.demo.recording import Recording
from rnea_control.demo.report import stalls
from rnea_control.demo.robots import load_robot
from rnea_control.demo.verdict import disturbances, void
from rnea_control.demo.watch import ControllerWatch
from rnea_control.model import RobotModel

pytestmark = pytest.mark.filterwarnings("ignore::rnea_control.model.RobotModelWarning")

MODEL = RobotModel.from_urdf_string(two_link_arm())
DURATION = 1.0
N = 1300  # states, a millisecond apart


def clean() -> Recording:
    """An undisturbed run."""
    time = 1e-3 * np.arange(N)
    zero = np.zeros((N, 2))
    return Recording("pd", time, zero, zero, zero + 5.0, "", "", np.zeros(N), np.arange(N))


def reasons(**changes: object) -> list[str]:
    return disturbances(MODEL, replace(clean(), **changes), DURATION)


def test_undisturbed_run_has_no_reasons() -> None:
    assert reasons() == []
    assert stalls(clean()) == "Stalls under pd: none longer than 10 ms"


def test_incident_is_a_reason() -> None:
    assert reasons(incidents=("the action aborted",)) == ["the action aborted"]


def test_short_recording() -> None:
    whole = clean()
    parts = {
        name: getattr(whole, name)[:400]
        for name in ("time", "desired", "measured", "torque", "lateness", "commands")
    }
    assert reasons(**parts) == ["the recording ends after 0.40 of 1 s"]
    none = {name: part[:0] for name, part in parts.items()}
    assert reasons(**none) == ["the recording ends after 0.00 of 1 s"]


def test_arm_behind_real_time() -> None:
    time = clean().time.copy()
    time[500:] += 0.08
    time[900:] += 0.06
    assert reasons(time=time) == [
        "the simulated arm fell behind real time 2 times, by 140 ms in all",
        "no command came for 80 ms",
    ]


@pytest.mark.parametrize(("missing", "disturbed"), [(40, False), (60, True)])
def test_missing_commands(missing: int, disturbed: bool) -> None:
    commands = clean().commands.copy()
    commands[300 : 300 + missing] = commands[300]
    commands[300 + missing :] -= missing
    recording = replace(clean(), commands=commands)
    found = disturbances(MODEL, recording, DURATION)
    assert found == ([f"no command came for {missing} ms"] if disturbed else [])
    assert recording.stalls().count == 1
    assert recording.stalls().longest == pytest.approx(1e-3 * missing)


def test_command_every_second_period_is_no_stall() -> None:
    assert replace(clean(), commands=np.arange(N) // 2).stalls().count == 0


def test_commands_that_end_are_missing() -> None:
    commands = np.minimum(clean().commands, 1000)
    assert reasons(commands=commands) == ["no command came for 298 ms"]


def test_late_states_in_a_row_are_one_stall() -> None:
    lateness = np.zeros(N)
    lateness[100:130], lateness[700:720] = 0.03, 0.02
    recording = replace(clean(), lateness=lateness)
    assert stalls(recording) == "Stalls under pd: 2, the longest 30 ms"
    assert disturbances(MODEL, recording, DURATION) == []


@pytest.mark.parametrize(("part", "disturbed"), [(0.02, False), (0.3, True)])
def test_torque_at_its_limit(part: float, disturbed: bool) -> None:
    torque = clean().torque.copy()
    torque[: int(part * N), 1] = -100.0
    found = reasons(torque=torque)
    assert found == (["the torque of elbow was at its limit, 100, in 30% of the run"] * disturbed)


def urdf(folder: Path, text: str) -> str:
    path = folder / "robot.urdf"
    path.write_text(text)
    return str(path)


def test_robot_that_can_be_compared(tmp_path: Path) -> None:
    assert void(load_robot(urdf(tmp_path, two_link_arm()))) == ""


def test_joint_that_moves_no_mass_is_named(tmp_path: Path) -> None:
    text = robot(
        link("base"),
        link("a"),
        '<link name="b"/>',
        joint("one", "base", "a"),
        joint("two", "a", "b"),
    )
    path = urdf(tmp_path, text)
    assert void(load_robot(path)).startswith("the links that two move have no inertia")
    assert void(load_robot(path, ["one"])) == ""


def test_robot_without_room_to_move(tmp_path: Path) -> None:
    stuck = '<limit lower="0.5" upper="0.5" effort="100" velocity="1"/>'
    text = robot(link("base"), link("a"), joint("one", "base", "a", limit=stuck))
    assert void(load_robot(urdf(tmp_path, text))).startswith("no joint has room to move")


@pytest.mark.explores
def test_real_runs_are_judged() -> None:
    """In lockstep: one that goes through, and one that somebody stops."""
    parameters = {
        "joints": ["shoulder", "elbow"],
        "gains": {name: {"p": 100.0, "d": 20.0} for name in ("shoulder", "elbow")},
        "joint_state_timeout": 1000.0,
        "joint_state_gap": 1000.0,
    }
    with ros(85):
        arm = LockstepArm(robot_description=two_link_arm())
        watch = ControllerWatch(arm.node)
        hold = arm.node.create_client(Trigger, "rnea_controller/hold")
        try:
            with controller(parameters):
                arm.run(50)
                undisturbed = record(arm, watch, lambda: None)
                stopped = record(arm, watch, lambda: call(arm, hold))
        finally:
            arm.destroy()
    assert disturbances(MODEL, undisturbed, 0.5) == []
    found = disturbances(MODEL, stopped, 0.5)
    assert any(sentence.startswith("the controller's mode became braking") for sentence in found)


def call(arm: LockstepArm, client) -> None:
    future = client.call_async(Trigger.Request())
    wait_for(future.done, arm.spin)
    assert future.result().success, future.result().message


def record(arm: LockstepArm, watch: ControllerWatch, interfere) -> Recording:
    """Moves the shoulder there and back in half a second, and does something on the way."""
    wait_for(lambda: watch.reports, arm.spin)
    watch.begin()
    first, start = len(arm.time), arm.time[-1] + 0.1
    q = arm.q[-1]
    zero = np.zeros(2)
    points = [(0.25, q + np.array([0.05, 0.0]), zero), (0.5, q, zero)]
    arm.send(trajectory(["shoulder", "elbow"], points, start + arm.node.period))
    arm.until_diagnosed("motion", "following")
    arm.run(250)
    interfere()
    arm.run(500)
    reports = watch.reports
    wait_for(lambda: watch.reports > reports + 1, arm.spin)
    time = np.array(arm.time[first:]) - start
    measured = np.array(arm.q[first:])
    return Recording(
        "computed_torque",
        time,
        measured,
        measured,
        np.array(arm.torque[first:]),
        "",
        incidents=watch.incidents(),
        commands=np.arange(len(time)),
    )
