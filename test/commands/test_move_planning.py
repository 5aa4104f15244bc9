"""rnea_move without ROS: files of points, the remembered pose, targets, options and words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from robots import two_link_arm

from rnea_control.commands.move.executable import _options
from rnea_control.commands.move.planning import Wish, plan
from rnea_control.commands.move.points_file import read_points
from rnea_control.commands.move.pose_memory import PoseMemory
from rnea_control.exceptions import RneaControlError, TrajectoryPointsError
from rnea_control.model import RobotModel
from rnea_control.node.parameters import PARAMETERS, in_force
from rnea_control.parameters.parameter import GivenParameters, expand

JOINTS = ("shoulder", "elbow")
HELD = np.array([0.3, -0.4])
CONTINUOUS = two_link_arm().replace('type="revolute"', 'type="continuous"', 1)


def settings_in_force(urdf: str = two_link_arm(), **values: object):
    robot = RobotModel.from_urdf_string(urdf)
    gains = {f"gains.{joint}.{key}": 20.0 for joint in JOINTS for key in "pd"}
    named = {"joints": list(JOINTS), **gains, **values}
    return in_force(GivenParameters(named, expand(PARAMETERS, JOINTS)), robot)


@pytest.fixture
def memory(tmp_path: Path) -> PoseMemory:
    return PoseMemory("/rnea_controller", {"ROS_HOME": str(tmp_path)})


def planned(wish: Wish, memory: PoseMemory, given=None):
    return plan(wish, given or settings_in_force(), HELD, HELD, memory)


# Files of points: the text, and what the message says.
WRONG_FILES = {
    "": "line 1: the file is empty; its first line must name the joints",
    "# only a comment\n\n": "the file is empty",
    "time,shoulder,elbow\n": "line 1: there are no points after the header",
    "time\n0\n": "line 1: the first line names no joint",
    "time,shoulder,wrist\n": "line 1, column 3: 'wrist' is not a joint of the controller; the "
    "first line may have time, shoulder, elbow",
    "shoulder,elbow,shoulder\n": "line 1, column 3: 'shoulder' is named twice",
    "shoulder,elbow\n0.1,0.2\n\n0.1\n": "line 4: has 1 fields; the first line has 2",
    "shoulder,elbow\n0.1,zero\n": "line 2, column 2: elbow is 'zero'; it must be a number",
    "time,shoulder\n0,0.1\n1,nan\n": "line 3, column 2: shoulder is nan; it must be finite",
    "shoulder;elbow\n0,1;0,2\n": "line 1, column 1: 'shoulder;elbow' is not a joint",
}


@pytest.mark.parametrize("text", WRONG_FILES)
def test_wrong_file_is_refused_with_line_and_column(text: str, tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text(text)
    with pytest.raises(TrajectoryPointsError) as error:
        read_points(path, JOINTS)
    assert str(error.value).startswith(f"{path}, ") and WRONG_FILES[text] in str(error.value)


def test_what_is_no_text_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\xff\xfe\x00" * 99)
    for path in (tmp_path, tmp_path / "none.csv", tmp_path / "noise"):
        with pytest.raises(TrajectoryPointsError, match="cannot be read"):
            read_points(path, JOINTS)


def test_file_with_and_without_times(tmp_path: Path, memory: PoseMemory) -> None:
    path = tmp_path / "points.csv"
    path.write_bytes(b"\xef\xbb\xbfelbow, time\r\n# a comment\r\n-0.3, 1.0\r\n\r\n-0.1, 3\r\n")
    points = read_points(path, JOINTS)
    assert points.joints == ("elbow",)
    np.testing.assert_array_equal(points.times, [1.0, 3.0])
    np.testing.assert_array_equal(points.positions, [[-0.3], [-0.1]])
    motion = planned(Wish(file=path, speed=1.0), memory)
    p = motion.profile
    np.testing.assert_array_equal(p.positions[:, 0], HELD[0])  # a joint that is not named
    first = p.positions[:, 1].tolist().index(-0.3)
    assert p.times[-1] - p.times[first] == pytest.approx(2.0)
    path.write_text("shoulder,elbow\n0.4,-0.4\n0.4,0.0\n")
    p = planned(Wish(file=path), memory).profile
    resting = np.abs(p.velocities).max(axis=1) == 0.0
    np.testing.assert_array_equal(p.positions[resting], [HELD, [0.4, -0.4], [0.4, 0.0]])


WRONG_WISHES = {
    "too few": (
        Wish(pose=(0.1,)),
        "--to has 1 numbers; the controller has 2 joints: shoulder, elb",
    ),
    "beyond": (Wish(pose=(0.1, 3.5)), "elbow would go to 3.5 rad; its limits are -3 to 3 rad"),
    "step beyond": (Wish(steps=(("elbow", 9.0),)), "elbow would go to 8.6 rad; its limits"),
    "unknown": (Wish(steps=(("wrist", 0.1),)), "--joint 'wrist' is not a joint of the controller"),
    "slow": (Wish(pose=(1.0, 1.0), speed=1e-7), "the motion would take .* more than 3600 s"),
    "accelerations": (Wish(pose=(0.0, 0.0), acceleration=(1.0,) * 3), "--acceleration has 3 num"),
    "nothing remembered": (Wish(back=True), "the start of the last rnea_move is unknown"),
}


@pytest.mark.parametrize("name", WRONG_WISHES)
def test_wish_that_cannot_be_fulfilled(name: str, memory: PoseMemory) -> None:
    wish, words = WRONG_WISHES[name]
    with pytest.raises(RneaControlError, match=words):
        planned(wish, memory)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time,shoulder\n0,0\n0,1\n", "the time of point 2, 0 s, is not after that of point 1, 0"),
        ("time,shoulder\n-1,0\n", "the time of point 1 is negative, -1 s"),
        ("shoulder\n0.1\n3.1\n", "point 2: shoulder would go to 3.1 rad; its limits are -3 to 3"),
        # Between the points the spline leaves the limits.
        ("time,elbow\n0,-2.9\n1,-2.99\n2,-2.99\n3,-1\n", "joint 'elbow' would be at -3.*outside"),
    ],
)
def test_points_that_cannot_be_followed(
    text: str, words: str, tmp_path: Path, memory: PoseMemory
) -> None:
    path = tmp_path / "points.csv"
    path.write_text(text)
    with pytest.raises(RneaControlError, match=words):
        planned(Wish(file=path), memory)


def test_words_name_each_joint_and_the_controllers_doubts(memory: PoseMemory) -> None:
    motion = planned(Wish(steps=(("elbow", 0.5),), speed=0.2), memory)
    first, *lines = motion.words.splitlines()
    duration = f"{motion.profile.duration:.1f} s"
    assert first == f"The arm will move in {duration}, at 0.2 of its velocity limits at most:"
    assert lines[0] == "  shoulder  stays at 0.300 rad"
    assert lines[1].startswith("  elbow     from -0.400 to 0.100 rad (+0.500), at most ")
    assert motion.note == ""
    weak = settings_in_force(two_link_arm().replace('effort="100"', 'effort="45"'))
    doubted = planned(Wish(pose=(1.2, 0.5), speed=1.0, acceleration=(900.0,)), memory, weak)
    assert "its effort limit is 45" in doubted.note
    still = planned(Wish(pose=tuple(HELD)), memory)
    assert not still.moves and "nothing moves" in still.words


def test_continuous_joint_goes_the_short_way_but_steps_as_told(memory: PoseMemory) -> None:
    given = settings_in_force(CONTINUOUS)
    motion = planned(Wish(pose=(HELD[0] + 2 * np.pi - 0.1, -0.4)), memory, given)
    assert motion.profile.positions[-1, 0] == pytest.approx(HELD[0] - 0.1)
    motion = planned(Wish(steps=(("shoulder", 7.0),), speed=1.0), memory, given)
    assert motion.profile.positions[-1, 0] == pytest.approx(HELD[0] + 7.0)


# The remembered pose.


def test_pose_is_remembered_per_controller_and_restored(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path / "made")}
    here, there = (PoseMemory(name, environment) for name in ("/left/arm", "/right/arm"))
    other = PoseMemory("/left/arm", environment | {"ROS_DOMAIN_ID": "7"})
    assert here.write(JOINTS, HELD) is None
    before = here.write(JOINTS[::-1], HELD)
    np.testing.assert_array_equal(here.read(JOINTS).position, HELD[::-1])
    assert here.read(JOINTS).age < 3600.0
    here.restore(before)
    np.testing.assert_array_equal(here.read(JOINTS).position, HELD)
    here.restore(None)
    for memory in (here, there, other):
        with pytest.raises(TrajectoryPointsError, match="does not exist"):
            memory.read(JOINTS)
    assert not list((tmp_path / "made" / "rnea_control").iterdir())


GARBAGE = [
    b"", b"{", b"\xff\x00", b"null", b"[1]", b'{"positions": {"shoulder": 1}, "time": 0}',
    b'{"positions": {"shoulder": NaN, "elbow": 0}, "time": 0}',
    b'{"positions": {"shoulder": "x", "elbow": 0}, "time": 0}',
    b'{"positions": 5, "time": 0}', b'{"positions": {"shoulder": 1, "elbow": 1}}',
    b"[" * 100_000, b"0" * 2_000_000,
]  # fmt: skip


@pytest.mark.parametrize("content", GARBAGE)
def test_garbage_is_refused_in_words_and_replaced(content: bytes, memory: PoseMemory) -> None:
    memory.path.parent.mkdir(parents=True)
    memory.path.write_bytes(content)
    with pytest.raises(TrajectoryPointsError, match="Give the pose by --to"):
        memory.read(JOINTS)
    memory.write(JOINTS, HELD)
    assert json.loads(memory.path.read_text())["positions"] == {"shoulder": 0.3, "elbow": -0.4}


# Options.


def test_options_become_a_wish() -> None:
    assert _options(["--to", "-1e-3", "0.5"]).wish == Wish(pose=(-0.001, 0.5))
    options = _options(["--joint", "a", "--by", "-1e-1", "--joint", "b", "--by", ".2", "--yes"])
    assert options.wish == Wish(steps=(("a", -0.1), ("b", 0.2))) and options.yes
    assert _options(["--back", "--controller", "left/arm/"]).controller == "/left/arm"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "give one of --to"),
        ("--back --to 1", "give one of --to"),
        ("--to nan", "nan; it must be finite"),
        ("--to -inf", "-inf; it must be finite"),
        ("--joint a", "1 --joint and 0 --by"),
        ("--joint a --by 1 --joint a --by 2", "given twice"),
        ("--back --speed 0", "above 0 and at most 1"),
        ("--back --speed 1.5", "above 0 and at most 1"),
        ("--back --speed -0.5", "above 0 and at most 1"),
        ("--back --acceleration 0", "must be positive"),
    ],
)
def test_wrong_options(given: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        _options(given.split())
    assert ended.value.code == 2
    assert words in " ".join(capsys.readouterr().err.split())
