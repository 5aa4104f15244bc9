"""Recordings from files and back: what is read is what was written, and broken files are named."""

from __future__ import annotations

import pickle
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from rnea_control.exceptions import RecordingError
from rnea_control.identification.recording import Recording, check_measured
from rnea_control.identification.recording_files import read_recording, refuse_existing, write_npz

JOINTS = ("a", "b", "c")
COUNT = 50
NAN = float("nan")
TOPIC = "/joint_states"
TYPES = get_typestore(Stores.ROS2_HUMBLE)
JOINT_STATE = "sensor_msgs/msg/JointState"
STRING = "std_msgs/msg/String"
START = 1_700_000_000_000_000_000
PERIOD = 1_000_000
# Topic, time of the recording, type and bytes.
Message = tuple[str, int, str, bytes]


def joint_state(stamp: int, names, q, v, effort, little_endian=True, frame="") -> bytes:
    """Written by the library rosbags and not by this package, as the bags are."""
    t = TYPES.types
    sec, nanosec = divmod(stamp, 1_000_000_000)
    header = t["std_msgs/msg/Header"](t["builtin_interfaces/msg/Time"](sec, nanosec), frame)
    numbers = [np.array(values, dtype=np.float64) for values in (q, v, effort)]
    message = t[JOINT_STATE](header, list(names), *numbers)
    return bytes(TYPES.serialize_cdr(message, JOINT_STATE, little_endian=little_endian))


def text(words: str) -> bytes:
    return bytes(TYPES.serialize_cdr(TYPES.types[STRING](words), STRING))


def states(
    count: int, names: Sequence[str], topic: str = "/joint_states", **options: object
) -> list[Message]:
    """Joint `j` has position 10 i + j, velocity -i - j and effort i / (j + 1) at state i."""
    found = []
    for i in range(count):
        stamp = START + i * PERIOD
        j = np.arange(len(names))
        data = joint_state(stamp, names, 10.0 * i + j, -1.0 * i - j, i / (j + 1), **options)
        found.append((topic, stamp + 100, JOINT_STATE, data))
    return found


def write_bag(
    path: Path, messages: Sequence[Message], storage: str = "MCAP", compression: str = "NONE"
) -> Path:
    bag = Writer(path, version=8, storage_plugin=StoragePlugin[storage])
    bag.set_compression(CompressionMode[compression], CompressionFormat.ZSTD)
    with bag:
        connections = {}
        for topic, time, kind, data in messages:
            if topic not in connections:
                connections[topic] = bag.add_connection(topic, kind, typestore=TYPES)
            bag.write(connections[topic], time, data)
    return path


def a_recording(**change: object) -> Recording:
    rng = np.random.default_rng(1)
    q = rng.normal(size=(COUNT, 3))
    q[7, 1] = NAN
    values = {
        "time": np.arange(COUNT) * PERIOD / 1e9,
        "q": q,
        "effort": rng.normal(size=(COUNT, 3)),
        "robot_description": "<robot name='ä'/>",
    }
    return Recording("test", JOINTS, **{**values, **change})


def assert_same(found: Recording, expected: Recording) -> None:
    assert found.joints == expected.joints
    for name in ("time", "q", "effort"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one.dtype == np.float64 and one.shape == other.shape, name
        np.testing.assert_array_equal(one.view(np.uint64), other.view(np.uint64), name)


def assert_states(found: Recording, columns: Sequence[int] = range(3), count: int = COUNT) -> None:
    """The numbers of `states`, of the joints that stand at these places in the messages."""
    i, j = np.arange(count)[:, None], np.array(columns)[None, :]
    np.testing.assert_array_equal(found.time, np.arange(count) * PERIOD / 1e9)
    np.testing.assert_array_equal(found.q, 10.0 * i + j)
    np.testing.assert_array_equal(found.effort, i / (j + 1))


def state(at: int, stamp: int, *fields: Sequence, topic: str = TOPIC) -> Message:
    """Recorded so many nanoseconds after the start; names, positions, velocities and efforts."""
    return topic, START + at, JOINT_STATE, joint_state(stamp, *fields)


def test_written_arrays_read_back_bit_for_bit(tmp_path: Path) -> None:
    recording, path = a_recording(), tmp_path / "motion.npz"
    write_npz(path, recording)
    with pytest.raises(RecordingError, match=r"cannot be written: .*File exists"):
        write_npz(path, a_recording(q=recording.q + 1.0))
    found = read_recording(path)
    assert_same(found, recording)
    assert found.source == str(path) and found.notes == ()
    assert found.robot_description == recording.robot_description
    columns = read_recording(path, ["c", "a"]).effort
    np.testing.assert_array_equal(columns, recording.effort[:, [2, 0]])
    with pytest.raises(RecordingError, match=r"lacks the joints d of c, a, d; .* --joints c a$"):
        read_recording(path, ["c", "a", "d"])
    with pytest.raises(RecordingError, match=r"lacks the joints d of d; .* of this robot$"):
        read_recording(path, ["d"])


@pytest.mark.parametrize("name", ["motion.mcap", "nowhere/motion", "motion.db3", "motion.csv"])
def test_name_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordingError, match=r"is a folder; call it|there is no folder"):
        refuse_existing(tmp_path / name)


@pytest.mark.parametrize(
    ("storage", "compression"),
    [
        *(("MCAP", compression) for compression in ("NONE", "MESSAGE", "FILE", "STORAGE")),
        *(("SQLITE3", compression) for compression in ("NONE", "MESSAGE", "FILE")),
    ],
)
def test_bags_of_another_writer(tmp_path: Path, storage: str, compression: str) -> None:
    messages = [*states(COUNT, JOINTS), ("/robot_description", START, STRING, text("<robot/>"))]
    path = write_bag(tmp_path / "bag", messages, storage, compression)
    found = read_recording(path)
    assert found.joints == JOINTS and found.robot_description == "<robot/>"
    assert_states(found)
    if compression == "NONE":  # a bare file, and the folder of a recorder that was killed
        assert_states(read_recording(next(path.glob("bag.[md]*"))))
        (path / "metadata.yaml").unlink()
        assert_states(read_recording(path))


def test_many_blocks_of_messages_stay_in_order(tmp_path: Path) -> None:
    count = 9000
    messages = states(count, JOINTS, frame="one")
    messages[1::2] = states(count, JOINTS, frame="two")[1::2]  # of the same size
    messages[2::3] = states(count, JOINTS, frame="another publisher")[2::3]
    assert_states(read_recording(write_bag(tmp_path / "bag", messages)), count=count)


def test_jumbled_joints_and_publishers_of_different_ones(tmp_path: Path) -> None:
    for names in (("x", "c", "gripper", "a", "b"), ("bb", "b", "aa", "a", "c")):
        found = read_recording(write_bag(tmp_path / names[0], states(COUNT, names)), JOINTS)
        assert found.joints == JOINTS
        assert_states(found, [names.index(joint) for joint in JOINTS])
    messages = states(COUNT, JOINTS)
    for i in range(0, COUNT, 3):
        j = np.array([2, 0, 1])
        rows = 10.0 * i + j, -1.0 * i - j, i / (j + 1)
        messages[i] = (*messages[i][:3], joint_state(START + i * PERIOD, ("c", "a", "b"), *rows))
    gripper = joint_state(START, ("finger",), [1.0], [], [])
    both = [each for one in messages for each in (one, (one[0], one[1] + 10, one[2], gripper))]
    found = read_recording(write_bag(tmp_path / "bag", both), JOINTS)
    assert_states(found)
    assert f"{COUNT} of {2 * COUNT} messages of /joint_states do not name all" in found.notes[0]


def test_both_byte_orders_and_arbitrary_bytes_between_fields(tmp_path: Path) -> None:
    messages = states(COUNT, ("a", "bcd", "c"))
    messages[::2] = states(COUNT, ("a", "bcd", "c"), little_endian=False)[::2]
    data = bytearray(messages[1][3])
    data[2:4] = b"\xff\xff"  # options of the encapsulation
    after_a = data.index(b"a\0") + 2
    assert data[after_a : after_a + 2] == b"\0\0"
    data[after_a : after_a + 2] = b"\xaa\xbb"
    messages[1] = (*messages[1][:3], bytes(data))
    assert_states(read_recording(write_bag(tmp_path / "bag", messages)))


def test_empty_fields_are_nan(tmp_path: Path) -> None:
    efforts = ([], [1.0, NAN, 3.0], [1.0])
    messages = [state(i, START + i, JOINTS, [1, 2, 3], [], e) for i, e in enumerate(efforts)]
    found = read_recording(write_bag(tmp_path / "bag", messages), ["c", "b"])
    np.testing.assert_array_equal(found.q, [[3.0, 2.0]] * 3)
    np.testing.assert_array_equal(found.effort, [[NAN, NAN], [3.0, NAN], [NAN, NAN]])


def test_stamps_fall_repeat_and_begin_anywhere_or_give_way_if_empty(tmp_path: Path) -> None:
    stamps = [5, 9, 9, 2, 7_000_000_005]
    messages = [state(i, stamp, ["a"], [i], [i], [i]) for i, stamp in enumerate(stamps)]
    found = read_recording(write_bag(tmp_path / "bag", messages))
    np.testing.assert_array_equal(found.time, [0.0, 4e-9, 4e-9, -3e-9, 7.0])
    np.testing.assert_array_equal(found.q[:, 0], range(5))
    messages = [state(2 * PERIOD * i, 0, "a", [i], [0], [0]) for i in range(5)]
    found = read_recording(write_bag(tmp_path / "empty", messages))
    np.testing.assert_array_equal(found.time, np.arange(5) * 2 * PERIOD / 1e9)
    assert "all stamps of /joint_states are 0" in found.notes[0]


def test_description_of_the_same_namespace_is_taken(tmp_path: Path) -> None:
    descriptions = [
        (f"/{arm}/robot_description", START, STRING, text(arm)) for arm in ("right", "left")
    ]
    messages = [*descriptions, *states(5, JOINTS, "/left/joint_states")]
    assert read_recording(write_bag(tmp_path / "bag", messages)).robot_description == "left"


def test_topic_that_names_the_joints_and_has_efforts_is_found(tmp_path: Path) -> None:
    other = states(COUNT, ("x", "y", "z", "w"), "/other/joint_states")
    path = write_bag(tmp_path / "bag", [*other, *states(COUNT, JOINTS, "/arm/states")])
    assert_states(read_recording(path, JOINTS))
    assert read_recording(path).joints == ("x", "y", "z", "w")
    assert read_recording(path, topic="arm/states").joints == JOINTS
    goal = (*JOINTS, "d"), [0] * 4, [], []
    goals = [state(i * PERIOD, 1, *goal, topic="/goals") for i in range(COUNT)]
    path = write_bag(tmp_path / "goals", [*goals, *states(COUNT, JOINTS)])
    assert_states(read_recording(path))
    found = read_recording(path, JOINTS)
    assert_states(found)
    assert "those of /joint_states, the most complete ones; /goals" in found.notes[0]


def test_npz_of_others(tmp_path: Path) -> None:
    path, of_one = tmp_path / "own.npz", {"v": [[5, 6], [7, 8]], "joints": ["a", "b"]}
    np.savez(path, time=[3.0, 4.0], q=[[1, 2], [3, 4]], effort=np.ones((2, 2)), **of_one)
    found = read_recording(path)
    np.testing.assert_array_equal(found.time, [0.0, 1.0])
    np.testing.assert_array_equal(found.q, [[1.0, 2.0], [3.0, 4.0]])


def test_missing_efforts_are_read_and_then_refused(tmp_path: Path) -> None:
    none = np.full((COUNT, 3), NAN)
    some = a_recording().effort.copy()
    some[:, 1] = NAN
    check_measured(a_recording())
    write_npz(tmp_path / "none.npz", a_recording(effort=none))
    with pytest.raises(RecordingError, match=r"no effort of any joint \(a, b, c\).*export the"):
        check_measured(read_recording(tmp_path / "none.npz"))
    with pytest.raises(RecordingError, match=": no effort of b: "):
        check_measured(a_recording(effort=some))
    with pytest.raises(RecordingError, match="no position of any joint"):
        check_measured(a_recording(q=none))


class Trap:
    def __reduce__(self) -> tuple:
        return (Path("/nowhere/trap").touch, ())


def save(path: Path, **arrays: object) -> None:
    np.savez(path, **{"time": [0.0], "q": [[0.0]], "effort": [[0.0]], "joints": ["a"], **arrays})


def part(path: Path, name: str, *storage: str) -> Path:
    return write_bag(path.with_name("bag"), states(COUNT, JOINTS), *storage) / name


def write_cut_npz(path: Path) -> None:
    write_npz(path, a_recording())
    path.write_bytes(path.read_bytes()[:1000])


def write_unfinished(path: Path) -> None:
    path.write_bytes(b"")
    path.with_name("wal.db3-wal").write_bytes(b"x")


def without(path: Path) -> Path:
    """The folder of this file, which is taken away."""
    path.unlink()
    return path.parent


DESCRIPTION = ("/robot_description", START, STRING, text("<robot/>"))
CUT = (TOPIC, START, JOINT_STATE, states(1, JOINTS)[0][3][:-9])
OTHER = (TOPIC, START, JOINT_STATE, struct.pack("<q", -1))
# What makes it, a text or what writes it, which may return another path; and words of the error.
Made = str | Callable[[Path], object] | None
BROKEN: dict[str, tuple[Made, str]] = {
    "absent": (None, "is not there; a recording must be a rosbag2 folder"),
    "pickled.npz": (lambda path: save(path, joints=np.array([Trap()], object)), "without pickled"),
    "array.npz": (lambda path: np.save(path.open("wb"), [1.0]), "is not a readable .npz file"),
    "pickle.npz": (lambda path: path.write_bytes(pickle.dumps({"a": 1})), "is not a readable"),
    "shapes.npz": (
        lambda path: save(path, time=[0.0, 1.0]),
        r"q and effort .* \(1, 1\)\); .* \(2, 1\)",
    ),
    "no_effort.npz": (
        lambda path: np.savez(path, time=[0.0], q=[[0.0]], joints=["a"]),
        "effort is not a file in the archive.; it must have time",
    ),
    "cut.npz": (write_cut_npz, "is not a readable .npz file"),
    "cut.mcap": (lambda p: p.write_bytes(part(p, "bag.mcap").read_bytes()[:-5000]), "mcap recover"),
    "cut.db3": (
        lambda path: path.write_bytes(part(path, "bag.db3", "SQLITE3").read_bytes()[:5000]),
        "rosbag2 cannot be read.*ros2 bag reindex",
    ),
    "wal.db3": (write_unfinished, "last messages are still in wal.db3-wal.*wal_checkpoint"),
    "one.mcap": (lambda path: part(path, "bag.mcap", "MCAP", "MESSAGE"), "only metadata.yaml says"),
    "one.zstd": (lambda path: part(path, "bag.mcap.zstd", "MCAP", "FILE"), "is compressed: give"),
    "without_metadata": (
        lambda path: without(part(path, "metadata.yaml", "MCAP", "FILE")),
        "it has no metadata.yaml.*unzstd.*ros2 bag reindex",
    ),
    "lost_file": (lambda path: without(part(path, "bag.mcap")), "Some database files are missing"),
    "no_states": (
        lambda path: write_bag(path, [DESCRIPTION]),
        "JointState message; it has some on no topic",
    ),
    "empty_bag": (lambda path: write_bag(path, []), "no sensor_msgs/msg/JointState message"),
    "cut_message": (lambda path: write_bag(path, [CUT]), "the message ends inside its effort"),
    "other_bytes": (lambda path: write_bag(path, [OTHER]), "the bytes begin with ff ff ff ff"),
    "folder": (Path.mkdir, "is no rosbag2 recording: it has no metadata.yaml"),
    "ros1.bag": ("#ROSBAG V2.0\n", "rosbags-convert --src .*ros1.bag --dst .*ros1$"),
    "table.csv": ("time,a.position,a.effort\n", "is no recording that can be read"),
    "notes.txt": ("a text", "is no recording that can be read; it must be a rosbag2 folder"),
    "empty.npz": (
        lambda path: save(path, time=[], q=np.ones((0, 1)), effort=np.ones((0, 1))),
        "there are 0 samples of 1 joints",
    ),
    "twice.npz": (
        lambda path: save(path, joints=["a", "a"], q=[[0, 0]], effort=[[0, 0]]),
        "names a joint twice: a, a",
    ),
    "time.npz": (lambda path: save(path, time=[NAN]), "time.0. is infinite or NaN; every"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_recording_says_what_is_wrong(tmp_path: Path, name: str) -> None:
    path, (made, words) = tmp_path / name, BROKEN[name]
    if isinstance(made, str):
        path.write_text(made)
    elif made is not None:
        other = made(path)
        path = other if isinstance(other, Path) else path
    with pytest.raises(RecordingError, match=words) as caught:
        read_recording(path)
    assert str(path) in str(caught.value)


def test_wrong_joints_and_topics_are_listed_with_those_there_are(tmp_path: Path) -> None:
    messages = [*states(5, JOINTS), *states(5, ["x"], "/gripper/states")]
    path = write_bag(tmp_path / "bag", messages)
    for joints, topic, words in (
        (["a", "d"], None, r"all of the joints a, d; /joint_states has a, b, c; /gripper/states h"),
        (["c", "a", "d"], None, r"to lock the others, .* name those that moved: --joints c a$"),
        (None, "/other", "some on /joint_states, /gripper/states"),
        (JOINTS, "/gripper/states", r"/gripper/states has x\. Give .* of this robot$"),
        ([], None, "no message names all of the joints"),
    ):
        with pytest.raises(RecordingError, match=words):
            read_recording(path, joints, topic)


MOST = 200 << 20
BOMB = 1 << 29  # [bytes] that these files unpack to


READ_BOUNDED = """
import resource, sys
from rnea_control.exceptions import RecordingError
from rnea_control.identification import bounded_memory
from rnea_control.identification.recording_files import read_recording
path, most = sys.argv[1], int(sys.argv[2])
bounded_memory.MOST_MEMORY = bounded_memory.MOST_DISK = most
kinds = resource.RLIMIT_AS, resource.RLIMIT_FSIZE
before = [resource.getrlimit(kind) for kind in kinds]
try:
    read_recording(path)
except RecordingError as error:
    print(error)
assert [resource.getrlimit(kind) for kind in kinds] == before
"""


def bomb(path: Path, kind: str) -> Path:
    """A file of less than 2 MB, or the folder of one."""
    if kind == "declared.npz":
        zeros = np.zeros(BOMB // 8)
        np.savez_compressed(path, time=zeros[:1], q=zeros, effort=zeros[:1], joints=["a"])
    elif kind == "header.npz":  # 100 GB in a file of some bytes
        header = {"descr": "<f8", "fortran_order": False, "shape": (13_000_000_000,)}
        with zipfile.ZipFile(path, "w") as archive, archive.open("time.npy", "w") as file:
            np.lib.format.write_array_header_1_0(file, header)
    elif kind == "chunks":
        zeros = (TOPIC, START, JOINT_STATE, bytes(BOMB // 4))
        write_bag(path, [zeros] * 4, "MCAP", "STORAGE")
    elif kind == "messages":
        write_bag(path, [(TOPIC, START, JOINT_STATE, bytes(BOMB))], "SQLITE3", "MESSAGE")
    else:  # a file that unpacks to more than its message is
        write_bag(path, [(TOPIC, START, JOINT_STATE, bytes(BOMB))], "SQLITE3", "FILE")
    return path


@pytest.mark.explores
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("declared.npz", r"declared.npz unpacks to 0.5 GiB; the bound is 0.2 GiB on this machine"),
        ("header.npz", "takes more memory than a recording may"),
        ("chunks", "takes more memory than a recording may"),
        ("messages", "takes more memory than a recording may"),
        ("files", "unpacks to a larger file than a recording may"),
    ],
)
def test_file_that_unpacks_to_gigabytes_is_refused(kind: str, words: str, tmp_path: Path) -> None:
    path = bomb(tmp_path / kind, kind)
    files = [path] if path.is_file() else [*path.iterdir()]
    assert sum(file.stat().st_size for file in files) < 2 << 20
    # In a process of its own, as the tool runs: memory that earlier tests return while the file is
    # read would be added to the bound.
    command = [sys.executable, "-c", READ_BOUNDED, str(path), str(MOST)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search(words, ended.stdout), ended.stdout
