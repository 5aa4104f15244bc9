"""Recordings from files and back: what is read is what was written, and broken files are named."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from bags import (
    COMMANDS,
    JOINT_STATE,
    PERIOD,
    START,
    STRING,
    command,
    joint_state,
    states,
    text,
    write_bag,
)

from rnea_control.exceptions import RecordingError
from rnea_control.identification.recording import Recording
from rnea_control.identification.recording_checks import check_effort, check_positions
from rnea_control.identification.recording_files import read_recording, write_recording

JOINTS = ("a", "b", "c")
COUNT = 50
NAN = float("nan")


def a_recording(**change: object) -> Recording:
    rng = np.random.default_rng(1)
    shape = (COUNT, len(JOINTS))
    commanded = np.repeat(rng.normal(size=(COUNT // 5, len(JOINTS))), 5, axis=0)
    commanded[:5] = NAN
    v = rng.normal(size=shape)
    v[7, 1] = NAN
    values = {
        "source": "test",
        "joints": JOINTS,
        "time": np.arange(COUNT) * PERIOD / 1e9,
        "q": rng.normal(size=shape),
        "v": v,
        "effort": rng.normal(size=shape),
        "commanded": commanded,
        "robot_description": "<robot name='ä'/>",
    }
    return Recording(**{**values, **change})


def assert_same(found: Recording, expected: Recording) -> None:
    assert found.joints == expected.joints
    for name in ("time", "q", "v", "effort", "commanded"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one.dtype == np.float64 and one.shape == other.shape, name
        np.testing.assert_array_equal(one.view(np.uint64), other.view(np.uint64), name)


def assert_states(found: Recording, columns: list[int], count: int = COUNT) -> None:
    """The numbers of `states`, of the joints that stand at these places in the messages."""
    i, j = np.arange(count)[:, None], np.array(columns)[None, :]
    np.testing.assert_array_equal(found.time, np.arange(count) * PERIOD / 1e9)
    np.testing.assert_array_equal(found.q, 10.0 * i + j)
    np.testing.assert_array_equal(found.v, -1.0 * i - j)
    np.testing.assert_array_equal(found.effort, i / (j + 1))


@pytest.mark.parametrize("name", ["motion.npz", "motion"])
def test_written_recording_reads_back_bit_for_bit(tmp_path: Path, name: str) -> None:
    recording = a_recording()
    write_recording(tmp_path / name, recording)
    found = read_recording(tmp_path / name, JOINTS)
    assert_same(found, recording)
    assert found.robot_description == recording.robot_description
    assert found.source == str(tmp_path / name) and found.notes == ()


def test_csv_has_the_same_numbers_and_no_description(tmp_path: Path) -> None:
    recording = a_recording()
    write_recording(tmp_path / "motion.csv", recording)
    found = read_recording(tmp_path / "motion.csv")
    assert_same(found, recording)
    assert found.robot_description == ""
    header = (tmp_path / "motion.csv").read_text().splitlines()[0]
    assert header.startswith("time,a.position,a.velocity,a.effort,a.commanded,b.position")


def test_order_of_states_survives_where_stamps_fall_and_repeat(tmp_path: Path) -> None:
    time = a_recording().time.copy()
    time[20:] -= 0.015  # falls below the first states, and meets others
    time[30] = time[29]
    recording = a_recording(time=np.rint(1e9 * time) / 1e9)  # stamps have whole nanoseconds
    write_recording(tmp_path / "motion", recording)
    assert_same(read_recording(tmp_path / "motion", JOINTS), recording)


@pytest.mark.parametrize("name", ["motion.npz", "motion.csv", "motion"])
def test_nothing_is_overwritten(tmp_path: Path, name: str) -> None:
    recording = a_recording()
    write_recording(tmp_path / name, recording)
    with pytest.raises(RecordingError, match="exists already, and is not overwritten"):
        write_recording(tmp_path / name, a_recording(q=recording.q + 1.0))
    assert_same(read_recording(tmp_path / name), recording)


@pytest.mark.parametrize("name", ["motion.mcap", "nowhere/motion", "motion.db3"])
def test_name_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordingError, match=r"is a folder; call it|there is no folder"):
        write_recording(tmp_path / name, a_recording())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("storage", "compression"),
    [
        ("MCAP", "NONE"),
        ("MCAP", "MESSAGE"),
        ("MCAP", "FILE"),
        ("MCAP", "STORAGE"),
        ("SQLITE3", "NONE"),
        ("SQLITE3", "MESSAGE"),
        ("SQLITE3", "FILE"),
    ],
)
def test_bags_of_another_writer(tmp_path: Path, storage: str, compression: str) -> None:
    messages = [*states(COUNT, JOINTS), ("/robot_description", START, STRING, text("<robot/>"))]
    path = write_bag(tmp_path / "bag", messages, storage, compression)
    found = read_recording(path)
    assert found.joints == JOINTS and found.robot_description == "<robot/>"
    assert_states(found, [0, 1, 2])
    assert np.isnan(found.commanded).all()


@pytest.mark.parametrize(("storage", "suffix"), [("MCAP", ".mcap"), ("SQLITE3", ".db3")])
def test_bare_file_and_folder_of_a_killed_recorder(
    tmp_path: Path, storage: str, suffix: str
) -> None:
    path = write_bag(tmp_path / "bag", states(COUNT, JOINTS), storage)
    assert_states(read_recording(path / f"bag{suffix}"), [0, 1, 2])
    (path / "metadata.yaml").unlink()
    assert_states(read_recording(path), [0, 1, 2])


def test_many_blocks_of_messages_stay_in_order(tmp_path: Path) -> None:
    count = 9000
    messages = states(count, JOINTS, frame="one")
    messages[1::2] = states(count, JOINTS, frame="two")[1::2]  # of the same size
    messages[2::3] = states(count, JOINTS, frame="another publisher")[2::3]
    assert_states(read_recording(write_bag(tmp_path / "bag", messages)), [0, 1, 2], count)


@pytest.mark.parametrize("names", [("x", "c", "gripper", "a", "b"), ("bb", "b", "aa", "a", "c")])
def test_jumbled_joints(tmp_path: Path, names: tuple[str, ...]) -> None:
    path = write_bag(tmp_path / "bag", states(COUNT, names))
    found = read_recording(path, JOINTS)
    assert found.joints == JOINTS
    assert_states(found, [names.index(joint) for joint in JOINTS])


def test_publishers_of_different_orders_and_joints_on_one_topic(tmp_path: Path) -> None:
    messages = states(COUNT, JOINTS)
    for i in range(0, COUNT, 3):
        q, v, effort = ([f(i, j) for j in (2, 0, 1)] for f in (position_of, velocity_of, effort_of))
        data = joint_state(START + i * PERIOD, ("c", "a", "b"), q, v, effort)
        messages[i] = (*messages[i][:3], data)
    gripper = [
        (topic, time + 10, kind, joint_state(START, ("finger",), [1.0], [], []))
        for topic, time, kind, _ in messages
    ]
    both = [each for pair in zip(messages, gripper, strict=True) for each in pair]
    found = read_recording(write_bag(tmp_path / "bag", both), JOINTS)
    assert_states(found, [0, 1, 2])
    assert f"{COUNT} of {2 * COUNT} messages of /joint_states do not name all" in found.notes[0]


def position_of(i: int, j: int) -> float:
    return 10.0 * i + j


def velocity_of(i: int, j: int) -> float:
    return -1.0 * i - j


def effort_of(i: int, j: int) -> float:
    return i / (j + 1)


def test_big_endian_messages(tmp_path: Path) -> None:
    messages = states(COUNT, JOINTS)
    messages[::2] = states(COUNT, JOINTS, little_endian=False)[::2]
    assert_states(read_recording(write_bag(tmp_path / "bag", messages)), [0, 1, 2])


def test_bytes_between_fields_are_arbitrary(tmp_path: Path) -> None:
    names = ("a", "bcd", "c")
    messages = states(COUNT, names)
    data = bytearray(messages[1][3])
    data[2:4] = b"\xff\xff"  # options of the encapsulation
    after_a = data.index(b"a\0") + 2
    assert data[after_a : after_a + 2] == b"\0\0"
    data[after_a : after_a + 2] = b"\xaa\xbb"
    messages[1] = (*messages[1][:3], bytes(data))
    found = read_recording(write_bag(tmp_path / "bag", messages))
    assert_states(found, [0, 1, 2])


def test_empty_fields_are_nan(tmp_path: Path) -> None:
    messages = [
        ("/joint_states", START + i, JOINT_STATE, joint_state(START + i, JOINTS, [1, 2, 3], [], e))
        for i, e in enumerate([[], [1.0, NAN, 3.0], [1.0]])
    ]
    found = read_recording(write_bag(tmp_path / "bag", messages), ["c", "b"])
    np.testing.assert_array_equal(found.q, [[3.0, 2.0]] * 3)
    assert np.isnan(found.v).all()
    np.testing.assert_array_equal(found.effort, [[NAN, NAN], [3.0, NAN], [NAN, NAN]])


def test_stamps_fall_repeat_and_begin_anywhere(tmp_path: Path) -> None:
    stamps = [5, 9, 9, 2, 7_000_000_005]
    messages = [
        ("/joint_states", START + i, JOINT_STATE, joint_state(s, ["a"], [i], [i], [i]))
        for i, s in enumerate(stamps)
    ]
    found = read_recording(write_bag(tmp_path / "bag", messages))
    np.testing.assert_array_equal(found.time, [0.0, 4e-9, 4e-9, -3e-9, 7.0])
    np.testing.assert_array_equal(found.q[:, 0], range(5))


def test_empty_stamps_give_way_to_the_time_of_recording_and_it_is_said(tmp_path: Path) -> None:
    messages = [
        ("/joint_states", START + 2 * PERIOD * i, JOINT_STATE, joint_state(0, "a", [i], [0], [0]))
        for i in range(5)
    ]
    found = read_recording(write_bag(tmp_path / "bag", messages))
    np.testing.assert_array_equal(found.time, np.arange(5) * 2 * PERIOD / 1e9)
    assert "all stamps of /joint_states are 0" in found.notes[0]


def test_commands_are_held_until_the_next_one(tmp_path: Path) -> None:
    messages = states(10, JOINTS)
    for i, values in ((2, [1.0, 2.0, 3.0]), (5, [4.0, NAN, 6.0]), (7, [9.0])):
        time = messages[i][1] + 1
        messages.append(("/effort_controller/commands", time, COMMANDS, command(values)))
    messages.append(("/other/data", START, COMMANDS, command([7.0, 7.0, 7.0])))
    messages.sort(key=lambda each: each[1])
    found = read_recording(write_bag(tmp_path / "bag", messages), JOINTS)
    expected = [[NAN] * 3] * 3 + [[1.0, 2.0, 3.0]] * 3 + [[4.0, NAN, 6.0]] * 4
    np.testing.assert_array_equal(found.commanded, expected)
    assert found.notes == ()


def test_commands_of_the_same_namespace_are_taken_and_of_none_are_not_guessed(
    tmp_path: Path,
) -> None:
    own = ("/left/effort/commands", START, COMMANDS, command([1.0, 2.0, 3.0]))
    other = ("/right/effort/commands", START, COMMANDS, command([4.0, 5.0, 6.0]))
    messages = [own, other, *states(5, JOINTS, "/left/joint_states")]
    found = read_recording(write_bag(tmp_path / "namespaces", messages), JOINTS)
    np.testing.assert_array_equal(found.commanded, [[1.0, 2.0, 3.0]] * 5)
    messages = [own, other, *states(5, JOINTS)]
    found = read_recording(write_bag(tmp_path / "global", messages), JOINTS)
    assert np.isnan(found.commanded).all()
    assert "it is open which belongs to /joint_states" in found.notes[0]


def test_topic_that_names_the_joints_is_found(tmp_path: Path) -> None:
    other = states(COUNT, ("x", "y", "z", "w"), "/other/joint_states")
    path = write_bag(tmp_path / "bag", [*other, *states(COUNT, JOINTS, "/arm/states")])
    assert_states(read_recording(path, JOINTS), [0, 1, 2])
    assert read_recording(path).joints == ("x", "y", "z", "w")
    found = read_recording(path, topic="arm/states")
    assert found.joints == JOINTS


def test_topic_with_efforts_is_preferred(tmp_path: Path) -> None:
    goals = [
        ("/goals", time, kind, joint_state(time, (*JOINTS, "d"), [0] * 4, [], []))
        for _, time, kind, _ in states(COUNT, JOINTS)
    ]
    path = write_bag(tmp_path / "bag", [*goals, *states(COUNT, JOINTS)])
    assert_states(read_recording(path), [0, 1, 2])
    found = read_recording(path, JOINTS)
    assert_states(found, [0, 1, 2])
    assert "those of /joint_states, the most complete ones; /goals" in found.notes[0]


def test_plotjuggler_table(tmp_path: Path) -> None:
    path = tmp_path / "plot.csv"
    path.write_text(
        "__time,/joint_states/a/position,/joint_states/a/effort,/joint_states/b/position,"
        "/joint_states/b/effort,/joint_states/b/velocity,/goals/a/position,/note\n"
        "1700000000.000,1.0,2.0,3.0,4.0,5.0,,\n"
        "1700000000.001,,,,,,9.0,a word\n"
        "1700000000.002,6.0,,8.0,9.0,10.0,,\n"
    )
    found = read_recording(path, ["b", "a"])
    np.testing.assert_allclose(found.time, [0.0, 0.002], atol=1e-6)
    np.testing.assert_array_equal(found.q, [[3.0, 1.0], [8.0, 6.0]])
    np.testing.assert_array_equal(found.v, [[5.0, NAN], [10.0, NAN]])
    np.testing.assert_array_equal(found.effort, [[4.0, 2.0], [9.0, NAN]])


def test_columns_of_tables_are_chosen_by_joint(tmp_path: Path) -> None:
    recording = a_recording()
    for name in ("motion.npz", "motion.csv"):
        write_recording(tmp_path / name, recording)
        found = read_recording(tmp_path / name, ["c", "a"])
        np.testing.assert_array_equal(found.effort, recording.effort[:, [2, 0]])
        with pytest.raises(RecordingError, match=r"lacks the joints d of a, d; it has a, b, c"):
            read_recording(tmp_path / name, ["a", "d"])


def test_npz_needs_no_velocities(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    np.savez(path, time=[3.0, 4.0], q=[[1, 2], [3, 4]], effort=np.ones((2, 2)), joints=["a", "b"])
    found = read_recording(path)
    np.testing.assert_array_equal(found.time, [0.0, 1.0])
    np.testing.assert_array_equal(found.q, [[1.0, 2.0], [3.0, 4.0]])
    assert np.isnan(found.v).all() and np.isnan(found.commanded).all()


def test_missing_efforts_are_read_and_then_refused(tmp_path: Path) -> None:
    none = np.full((COUNT, 3), NAN)
    some = a_recording().effort.copy()
    some[:, 1] = NAN
    check_effort(a_recording())
    write_recording(tmp_path / "bag", a_recording(effort=none))
    with pytest.raises(RecordingError, match=r"all joints \(a, b, c\) have no effort.*export the"):
        check_effort(read_recording(tmp_path / "bag"))
    with pytest.raises(RecordingError, match=r": b has no effort"):
        check_effort(a_recording(effort=some))
    with pytest.raises(RecordingError, match=r"all joints .* have no position"):
        check_positions(a_recording(q=none))


class Trap:
    def __reduce__(self) -> tuple:
        return (Path("/nowhere/trap").touch, ())


def _broken(folder: Path, name: str) -> Path:
    """A broken recording of this kind."""
    path = folder / name
    if name == "pickled.npz":
        np.savez(path, time=[0.0], q=[[0.0]], effort=[[0.0]], joints=np.array([Trap()], object))
    elif name == "pickle.npz":
        path.write_bytes(pickle.dumps({"a": 1}))
    elif name == "shapes.npz":
        np.savez(path, time=[0.0, 1.0], q=[[0.0]], effort=[[0.0]], joints=["a"])
    elif name == "no_effort.npz":
        np.savez(path, time=[0.0], q=[[0.0]], joints=["a"])
    elif name == "cut.npz":
        write_recording(path, a_recording())
        path.write_bytes(path.read_bytes()[:1000])
    elif name == "cut.mcap":
        bag = write_bag(folder / "bag", states(COUNT, JOINTS))
        path.write_bytes((bag / "bag.mcap").read_bytes()[:-5000])
    elif name == "cut.db3":
        bag = write_bag(folder / "bag", states(COUNT, JOINTS), "SQLITE3")
        path.write_bytes((bag / "bag.db3").read_bytes()[:5000])
    elif name == "wal.db3":
        path.write_bytes(b"")
        path.with_name("wal.db3-wal").write_bytes(b"x")
    elif name == "one.mcap":
        bag = write_bag(folder / "bag", states(COUNT, JOINTS), "MCAP", "MESSAGE")
        path = bag / "bag.mcap"
    elif name == "one.zstd":
        bag = write_bag(folder / "bag", states(COUNT, JOINTS), "MCAP", "FILE")
        path = bag / "bag.mcap.zstd"
    elif name == "without_metadata":
        path = write_bag(folder / "bag", states(COUNT, JOINTS), "MCAP", "FILE")
        (path / "metadata.yaml").unlink()
    elif name == "lost_file":
        path = write_bag(folder / "bag", states(COUNT, JOINTS))
        (path / "bag.mcap").unlink()
    elif name == "no_states":
        write_bag(path, [("/robot_description", START, STRING, text("<robot/>"))])
    elif name == "empty_bag":
        write_bag(path, [])
    elif name == "cut_message":
        (topic, time, kind, data), *_ = states(1, JOINTS)
        write_bag(path, [(topic, time, kind, data[:-9])])
    elif name == "other_bytes":
        write_bag(path, [("/joint_states", START, JOINT_STATE, struct.pack("<q", -1))])
    elif name == "folder":
        path.mkdir()
    elif name in TEXTS:
        path.write_text(TEXTS[name])
    return path


TEXTS = {
    "ros1.bag": "#ROSBAG V2.0\n",
    "notes.txt": "a text",
    "ros1.data": "#ROSBAG V2.0\n",
    "no_header.csv": "1.0,2.0\n3.0,4.0\n",
    "no_time.csv": "a.position,a.effort\n1.0,2.0\n",
    "cut.csv": "time,a.position,a.effort\n0.0,1.0,2.0\n0.1,1.0\n",
    "comma.csv": 'time,a.position,a.effort\n0.0,1.0,2.0\n0.1,"1,5",2.0\n',
    "empty.csv": "time,a.position,a.effort\n",
    "nothing.csv": "",
}
BROKEN = {
    "absent": "is not there; a recording must be a rosbag2 folder",
    "pickled.npz": "is not a readable .npz file.*without pickled objects",
    "pickle.npz": "is not a readable .npz file.*without pickled objects",
    "shapes.npz": r"q is of float64 and shape \(1, 1\); it must be numbers of shape \(2, 1\)",
    "no_effort.npz": "has time, q, joints, but no effort",
    "cut.npz": "is not a readable .npz file",
    "cut.mcap": "rosbag2 cannot be read.*mcap recover",
    "cut.db3": "rosbag2 cannot be read.*ros2 bag reindex",
    "wal.db3": "last messages are still in wal.db3-wal.*wal_checkpoint",
    "one.mcap": "Its messages are compressed, which only metadata.yaml says: give the folder",
    "one.zstd": "is compressed: give the folder",
    "without_metadata": "bag.mcap.zstd but no metadata.yaml.*unzstd.*ros2 bag reindex",
    "lost_file": "rosbag2 cannot be read: Some database files are missing",
    "no_states": r"no sensor_msgs/msg/JointState message; it has /robot_description \(std_msgs",
    "empty_bag": "no sensor_msgs/msg/JointState message; it has no topics",
    "cut_message": "/joint_states: joint_states: the message ends inside its effort",
    "other_bytes": "/joint_states: joint_states: the bytes begin with ff ff ff ff",
    "folder": "is no rosbag2 recording: it has no metadata.yaml",
    "ros1.bag": "a recording of ROS 1. Convert it: rosbags-convert --src .*ros1.bag --dst .*ros1$",
    "ros1.data": "a recording of ROS 1",
    "notes.txt": "is no recording that can be read; it must be a rosbag2 folder",
    "no_header.csv": "none is a joint's position, velocity or effort; the header must be",
    "no_time.csv": "has no column time or __time",
    "cut.csv": "line 3: 2 cells for 3 columns. Was the file cut off",
    "comma.csv": "line 3: a.position is '1,5'; it must be a number with a point",
    "empty.csv": "has 0 samples of 1 joints",
    "nothing.csv": r"has the columns \(none\)",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_recording_says_what_is_wrong(tmp_path: Path, name: str) -> None:
    path = _broken(tmp_path, name)
    with pytest.raises(RecordingError, match=BROKEN[name]) as caught:
        read_recording(path)
    assert str(path) in str(caught.value)


def test_wrong_joints_and_topics_are_listed_with_those_there_are(tmp_path: Path) -> None:
    messages = [*states(5, JOINTS), *states(5, ["x"], "/gripper/states")]
    path = write_bag(tmp_path / "bag", messages)
    with pytest.raises(
        RecordingError,
        match=r"all of the joints a, d; /joint_states has a, b, c; /gripper/states has x\.",
    ):
        read_recording(path, ["a", "d"])
    with pytest.raises(RecordingError, match="states on /joint_states, /gripper/states"):
        read_recording(path, topic="/other")
    with pytest.raises(RecordingError, match=r"/gripper/states has x\. Give"):
        read_recording(path, JOINTS, topic="/gripper/states")
    with pytest.raises(RecordingError, match="name at least one, and each once"):
        read_recording(path, ["a", "a"])
