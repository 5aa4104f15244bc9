"""Recordings that are played back: what their moments have, and what is no recording."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("viser", reason="the extra panel is not installed")

from moments import Moments, headless
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from rnea_control.control.controller_state import TERMS
from rnea_control.dynamics import Workspace, rnea
from rnea_control.exceptions import RecordingError
from rnea_control.identification.recorded_topics import JOINT_STATE, STRING, Message
from rnea_control.identification.recording import Recording
from rnea_control.identification.recording_files import write_npz, write_rosbag
from rnea_control.panel.moment import Played
from rnea_control.panel.recording import MODE, RecordedSource
from rnea_control.panel.torque_tab import TorqueTab

ARM = Moments()
JOINTS, NV = ARM.joint_names, ARM.model.nv
RATE = 250.0
SECONDS = 4.0
TIMES = np.arange(0.0, SECONDS, 1.0 / RATE)
LOAD = np.linspace(0.0, 6.0, NV)  # torque that the model lacks [Nm]
START = 1_700_000_000.0  # stamp of the first state [s]


def motion(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration of a swing."""
    phase = np.arange(NV) + 2.0 * t
    return 0.4 * np.sin(phase), 0.8 * np.cos(phase), -1.6 * np.sin(phase)


def torque(t: float) -> np.ndarray:
    return rnea(ARM.model, Workspace(ARM.model), *motion(t), np.zeros(NV))


def recording(description: str = ARM.description) -> Recording:
    q = np.array([motion(t)[0] for t in TIMES])
    effort = np.array([torque(t) + LOAD for t in TIMES])
    return Recording("swing", JOINTS, TIMES, q, effort, robot_description=description)


def npz(folder: Path, made: Recording) -> Path:
    path = folder / "swing.npz"
    write_npz(path, made)
    return path


def bag(folder: Path) -> Path:
    """A bag with torque terms at another rate and from a later time on."""
    made = recording()
    messages = [
        Message("/robot_description", STRING, 0, serialize_message(String(data=ARM.description)))
    ]

    def add(topic: str, seconds: float, **fields: object) -> None:
        message = JointState(**fields)
        stamp = round(1e9 * (START + seconds))
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        messages.append(Message(topic, JOINT_STATE, stamp, serialize_message(message)))

    order = np.arange(NV)[::-1]
    names = [JOINTS[j] for j in order]
    for t, q, effort in zip(TIMES, made.q, made.effort, strict=True):
        add(
            "/joint_states",
            t,
            name=names,
            position=q[order].tolist(),
            effort=effort[order].tolist(),
        )
    named = [f"{joint}/{term}" for joint in JOINTS for term in TERMS]
    for t in np.arange(1.0, 2.0, 0.02):
        values = np.add.outer(10.0 * np.arange(NV), np.arange(len(TERMS))) + t
        add("/rnea_controller/torque_terms", t, name=named, effort=values.ravel().tolist())
    path = folder / "swing"
    write_rosbag(path, messages)
    return path


def test_motion_and_terms_of_the_model(tmp_path: Path) -> None:
    source = RecordedSource(npz(tmp_path, recording()))
    assert source.joint_names == JOINTS and source.duration == TIMES[-1]
    for t in (0.0, 1.234, 2.0, source.duration):
        shown = source.at(t)
        q, v, _ = motion(t)
        np.testing.assert_allclose(shown.positions, q, atol=1e-5)
        np.testing.assert_allclose(shown.velocities, v, atol=2e-2)
        terms = dict(zip(TERMS, shown.torque_terms, strict=True))
        assert all(np.isnan(terms[name]).all() for name in ("feedback", "external", "disturbance"))
    np.testing.assert_allclose(shown.external_torques, -LOAD, atol=1.0)
    middle = source.at(2.0)
    model = middle.torque_terms[:4].sum(axis=0)
    np.testing.assert_allclose(model, torque(2.0), atol=0.1)
    np.testing.assert_allclose(middle.external_torques, -LOAD, atol=0.1)
    assert middle.mode.name == MODE and np.isnan(middle.desired).all()


def test_recorded_terms_are_shown_at_their_time(tmp_path: Path) -> None:
    source = RecordedSource(bag(tmp_path))
    assert source.joint_names == JOINTS
    np.testing.assert_allclose(source.at(0.5).positions, motion(0.5)[0], atol=1e-5)
    recorded = source.at(1.5).torque_terms
    expected = np.add.outer(np.arange(len(TERMS)), 10.0 * np.arange(NV)) + 1.5
    np.testing.assert_allclose(recorded, expected, atol=0.02)
    assert np.isnan(source.at(0.5).torque_terms[TERMS.index("feedback")]).all()


def test_some_joints_of_a_robot_and_a_given_urdf(tmp_path: Path) -> None:
    made = recording("")
    with pytest.raises(RecordingError, match=r"no robot_description was recorded; .* --urdf"):
        RecordedSource(npz(tmp_path, made))
    some = Recording("some", JOINTS[:3], TIMES, made.q[:, :3], made.effort[:, :3])
    path = tmp_path / "some.npz"
    write_npz(path, some)
    source = RecordedSource(path, ARM.description)
    assert source.joint_names == JOINTS[:3] and source.moment().positions.shape == (3,)


def test_stamps_that_start_again_and_states_without_positions(tmp_path: Path) -> None:
    q = np.array([motion(t)[0] for t in TIMES])
    again = np.concatenate([TIMES, TIMES])
    twice = np.concatenate([q, q])
    twice[10] = math.nan
    made = Recording(
        "twice",
        JOINTS,
        again,
        twice,
        np.full_like(twice, math.nan),
        robot_description=ARM.description,
    )
    source = RecordedSource(npz(tmp_path, made))
    assert source.duration == pytest.approx(2.0 * TIMES[-1] + 1.0)
    second = source.at(TIMES[-1] + 1.0 + 2.0)
    np.testing.assert_allclose(second.positions, motion(2.0)[0], atol=1e-5)
    assert np.isnan(second.efforts).all() and np.isfinite(second.torque_terms[0]).all()


@pytest.mark.parametrize("content", [b"", b"no recording", b"PK\x03\x04 broken"])
@pytest.mark.parametrize("name", ["x.mcap", "x.npz", "x.txt"])
def test_what_is_no_recording_is_said(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    with pytest.raises(RecordingError, match="is not there"):
        RecordedSource(path)
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=name):
        RecordedSource(path)


def test_playback(tmp_path: Path) -> None:
    source = RecordedSource(npz(tmp_path, recording()))
    assert isinstance(source, Played) and not isinstance(ARM, Played)
    with headless() as server:
        source.controls(server.gui)
        tab = TorqueTab(server.gui, source)
        first = source.moment()
        tab.show(first)
        time.sleep(0.2)
        later = source.moment()
        assert 0.1 < later.time - first.time < 5.0
        source.plays = False
        assert (
            source.moment().time == source.moment().time
            and "is paused" in source.moment().mode.reason
        )
        source.seek(2.0)
        assert source.moment().time == 2.0 and source._slider.value == pytest.approx(2.0, abs=2.0)
        source.plays = True
        source.seek(1e9)
        assert source.moment().time == source.duration
        assert not source.plays and source._play.label == "Play"
        tab.show(source.moment())
