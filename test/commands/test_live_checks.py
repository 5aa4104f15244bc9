"""What `rnea_identify record` says while it records, and the trajectory that it sends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from robots import two_link_arm

from rnea_control.commands.identify.live_checks import LiveChecks
from rnea_control.dynamics import Workspace, gravity
from rnea_control.identification.trajectory_file import read_trajectory
from rnea_control.model import RobotModel
from rnea_control.ros.trajectory_client import trajectory_message

JOINTS = ("shoulder", "elbow")
PERIOD = 4_000_000
URDF = two_link_arm().replace('mass value="1.5"', 'mass value="6.0"')
MODEL = RobotModel.from_urdf_string(URDF, JOINTS)
Q = np.array([0.3, -0.4])
HELD = gravity(MODEL, Workspace(MODEL), Q, np.zeros(2))


def said(
    stamps: np.ndarray, effort: np.ndarray | float, q: np.ndarray | None = None, urdf: str = ""
) -> list[str]:
    """What is said of states, which come in blocks of ten."""
    checks = LiveChecks(JOINTS)
    if urdf:
        checks.know(urdf)
    values = np.zeros((3, len(stamps), 2))
    values[0], values[2] = Q if q is None else q, effort
    blocks = (slice(i, i + 10) for i in range(0, len(stamps), 10))
    return [text for each in blocks for text in checks.look(stamps[each], values[:, each])]


def regular(count: int = 250, period: int = PERIOD) -> np.ndarray:
    return 10**18 + period * np.arange(count)


def moving(count: int = 250) -> np.ndarray:
    return Q + 0.5 * np.sin(np.arange(count) / 40.0)[:, None]


def test_effort_that_is_not_measured_is_said_once() -> None:
    for effort, words in (
        (np.nan, "no effort of shoulder, elbow: it is empty or NaN"),
        (np.array([1.0, np.nan]), "no effort of elbow"),
        (np.array([0.0, 1.0]), "the effort of shoulder is exactly 0 while it moves"),
    ):
        (text,) = said(regular(), effort, moving())
        assert words in text
    assert said(regular(), 0.0) == []  # it is at rest


def shifted(begin: int, by: int) -> np.ndarray:
    """Regular stamps, from one of them on later by so many periods."""
    return regular() + by * PERIOD * (np.arange(250) >= begin)


def test_falling_repeated_missing_slow_and_empty_stamps() -> None:
    repeated = np.where(np.arange(250) == 100, regular()[99], regular())
    for stamps, words in (
        (shifted(100, -2), "fall"),
        (repeated, "repeat"),
        (shifted(100, 5), "24.0 ms without one, where they come every 4.00 ms"),
        (shifted(100, 1), ""),  # one state is missing
        (regular(period=20_000_000), "joint states come 50 times a second"),
        (np.zeros(250, dtype=np.int64), "stamps of joint_states are 0"),
    ):
        found = said(stamps, 1.0)
        assert len(found) == bool(words) and words in "".join(found)


def test_gap_between_blocks_is_counted_in_the_summary() -> None:
    checks = LiveChecks(JOINTS)
    values = np.ones((3, 50, 2))
    checks.look(regular(50), values)
    (text,) = checks.look(regular(50) + 60 * PERIOD, values)
    assert "joint states are missing" in text
    assert checks.look(regular(50) + 130 * PERIOD, values) == []
    assert checks.summary() == ["2 gaps of more than 5 periods, the longest of 84.0 ms"]


def test_motor_current_is_guessed_with_the_numbers_and_nothing_else_is_one() -> None:
    assert np.abs(HELD).min() > 9.0
    by_joint = np.array([1.2, 0.15]), "0.15 to 1.2 of that, by the joint"
    for factor, words in ((np.full(2, 0.1), "10 times smaller or more"), by_joint):
        (text,) = said(regular(), factor * HELD, urdf=URDF)
        assert "may be motor currents in ampere" in text and "This is a guess" in text
        numbers = f"shoulder: {HELD[0]:.1f} Nm, effort {factor[0] * HELD[0]:.2f}"
        assert words in text and numbers in text
    for other in (1.0, 0.5, 1.5, -0.1, 0.001, np.array([0.6, 1.4])):  # models and held arms
        assert said(regular(), other * HELD, urdf=URDF) == []
    for effort in (1.0, 0.1 * HELD):
        assert said(regular(), effort, moving(), URDF) == []
    for urdf in ("", "<robot/>"):
        assert said(regular(), 0.1 * HELD, urdf=urdf) == []


def test_trajectory_becomes_the_message_that_ros2_topic_pub_sends(tmp_path: Path) -> None:
    path = tmp_path / "motion.yaml"
    path.write_text("""
joint_names: [a, b]
points:
- {positions: [0.1, 2.0], time_from_start: {sec: 0, nanosec: 500000000}}
- {positions: [0.2, -1.5], velocities: [1.0, 2.0], accelerations: [3.0, 4.0],
   time_from_start: {sec: 1, nanosec: 7}}
""")
    trajectory = read_trajectory(path)
    message = trajectory_message(trajectory.joints, trajectory.points)
    assert message.joint_names == ["a", "b"]
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (0, 0)
    first, last = message.points
    assert list(first.positions) == [0.1, 2.0] and not first.velocities and not first.accelerations
    assert (first.time_from_start.sec, first.time_from_start.nanosec) == (0, 500_000_000)
    assert list(last.positions) == [0.2, -1.5]
    assert list(last.velocities) == [1.0, 2.0] and list(last.accelerations) == [3.0, 4.0]
    assert (last.time_from_start.sec, last.time_from_start.nanosec) == (1, 7)
