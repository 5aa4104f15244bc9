"""Whether a recording can be one of a robot: turns, glitches, jumps, units."""

from __future__ import annotations

import numpy as np
import pytest
from robots import joint, link, robot

from rnea_control.exceptions import RecordingError
from rnea_control.identification.recording import Recording
from rnea_control.identification.recording_checks import of_robot
from rnea_control.model import RobotModel

RATE = 100.0


def model() -> RobotModel:
    return RobotModel.from_urdf_string(
        robot(
            link("base"),
            link("arm"),
            link("slider"),
            joint("turn", "base", "arm", "continuous"),
            joint("slide", "arm", "slider", "prismatic"),
        )
    )


def recorded(turn: np.ndarray) -> Recording:
    t = np.arange(len(turn)) / RATE
    q = np.stack([turn, np.sin(t)], axis=1)
    effort = np.stack([np.cos(t), 10.0 * np.sin(3.0 * t)], axis=1)
    nothing = np.full_like(q, np.nan)
    return Recording("some", ("turn", "slide"), t, q, nothing, effort, nothing)


def steady() -> Recording:
    return recorded(2.0 * np.arange(1000) / RATE)


def test_a_good_recording_stays_as_it_is() -> None:
    found = of_robot(steady(), model())
    assert found.notes == ()
    np.testing.assert_array_equal(found.q, steady().q)
    np.testing.assert_array_equal(found.effort, steady().effort)


def test_turns_of_a_continuous_joint_are_counted() -> None:
    wrapped = recorded((steady().q[:, 0] + np.pi) % (2.0 * np.pi) - np.pi)
    found = of_robot(wrapped, model())
    np.testing.assert_allclose(found.q[:, 0], steady().q[:, 0], atol=1e-12)
    assert found.notes == ("some: turn jumps by whole turns; they were counted",)


def test_glitches_are_lost_samples() -> None:
    recording = steady()
    recording.q[300, 1] += 5.0
    recording.effort[400:402, 0] = -1e6
    found = of_robot(recording, model())
    assert np.flatnonzero(np.isnan(found.q[:, 1])).tolist() == [300]
    assert np.flatnonzero(np.isnan(found.effort[:, 0])).tolist() == [400, 401]
    assert found.notes == (
        "some: positions that jump there and back were left out: slide (1)",
        "some: efforts that jump there and back were left out: turn (2)",
    )


def test_steps_of_the_effort_are_no_glitches() -> None:
    recording = steady()
    recording.effort[500:, 0] += 100.0  # as a load that is taken
    assert np.isfinite(of_robot(recording, model()).effort).all()


def test_sensors_without_noise_have_no_glitches() -> None:
    recording = steady()
    recording.effort[:] = np.round(recording.effort)
    recording.q[:] = np.round(recording.q, 3)
    assert of_robot(recording, model()).notes == ()


def test_a_zero_that_is_set_is_refused() -> None:
    recording = steady()
    recording.q[500:, 1] += 2.5
    with pytest.raises(RecordingError, match=r"slide jumps by 2.5 m .* 4.99 s after the beginning"):
        of_robot(recording, model())


def test_positions_beyond_the_limits_are_told_or_refused() -> None:
    recording = steady()
    recording.q[:, 1] += 2.5
    (note,) = of_robot(recording, model()).notes
    assert "slide goes from 1.5 to 3.5 m, and its limits are -3 and 3 m" in note
    recording.q[:, 1] *= 1000.0
    with pytest.raises(RecordingError, match=r"slide goes from .* are they in degrees or mm"):
        of_robot(recording, model())


def test_degrees_of_a_joint_without_limits_are_refused() -> None:
    with pytest.raises(RecordingError, match=r"turn typically moves with 115 rad/s"):
        of_robot(recorded(np.degrees(steady().q[:, 0])), model())
