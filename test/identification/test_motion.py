"""From recordings to motions: whether it is one of the robot, stamps, gaps, filter, derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from robots import joint, link, robot

from rnea_control.exceptions import RecordingError
from rnea_control.identification.motion import Motion, motion_of
from rnea_control.identification.recording import Recording, of_robot
from rnea_control.model import RobotModel

RATE = 500.0
FREQUENCY = 0.7
EVERY = np.arange(4000)


def exact(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    w = 2.0 * np.pi * FREQUENCY
    q = np.stack([np.sin(w * t), 0.5 * np.cos(w * t)], axis=1)
    v = np.stack([w * np.cos(w * t), -0.5 * w * np.sin(w * t)], axis=1)
    return q, v, -(w**2) * q


def waves(seconds: float = 8.0, noise: float = 0.0) -> Recording:
    """Two joints on a sine; the effort is the velocity."""
    t = np.arange(0.0, seconds, 1.0 / RATE)
    q, v, _ = exact(t)
    q = q + noise * np.random.default_rng(0).standard_normal(q.shape)
    return Recording("waves", ("a", "b"), t, q, v)


def chosen(recording: Recording, rows: np.ndarray) -> Recording:
    names = ("time", "q", "effort")
    return replace(recording, **{name: getattr(recording, name)[rows] for name in names})


def assert_right(motion: Motion, tolerance: float = 2e-3, delay: float = 0.0) -> None:
    settled = motion.counts.any(axis=1)
    assert settled.sum() > 100
    true_motion = exact(motion.time - delay)
    for found, true in zip((motion.q, motion.v, motion.a), true_motion, strict=True):
        assert np.abs(found - true)[settled].max() < tolerance * np.abs(true).max()


@pytest.mark.parametrize(
    ("rows", "tolerance", "ends", "note"),
    [
        (EVERY, 2e-3, (4000,), ""),
        (np.r_[0:1500, 1504:4000], 2e-3, (4000,), ""),  # a hole of milliseconds
        (np.flatnonzero(np.random.default_rng(1).random(4000) > 0.1), 0.01, (4000,), ""),
        (np.insert(EVERY, 1000, [999, 990, 999]), 2e-3, (4000,), "stamps of 3 states fall or rep"),
        # The stamps start again: a bag of two runs in simulated time.
        (np.tile(EVERY, 2), 2e-3, (4000, 8000), "start again 1 times"),
        (np.r_[0:1500, 1700:4000], 2e-3, (1500, 3800), "1 gaps, the longest of 0.402 s"),
    ],
)
def test_derivatives_have_no_delay_and_little_error(rows, tolerance, ends, note) -> None:
    motion = motion_of(chosen(waves(), rows))
    assert_right(motion, tolerance)
    assert motion.ends == ends
    assert all(np.ptp(np.diff(motion.time[part])) < 1e-9 for part in motion.parts)
    assert len(motion.notes) == bool(note) and note in "".join(motion.notes)


def test_noise_of_the_encoder_is_filtered_by_the_motion_or_by_option() -> None:
    """Differences of the raw positions would have 1e-4 * rate^2 = 25 rad/s^2 of noise."""
    assert_right(motion_of(waves(noise=1e-4)), 0.05)
    assert motion_of(waves()).cutoff == pytest.approx(10 * FREQUENCY, rel=0.3)
    assert motion_of(waves(), 20.0).cutoff == 20.0
    for cutoff in (300.0, -1.0):
        with pytest.raises(RecordingError, match="above 0 and below 250 Hz"):
            motion_of(waves(), cutoff)


def test_states_that_repeat_are_no_motion_of_high_frequency() -> None:
    """The hardware's clock is not the controller's: now and then a state is there twice, and the
    next one is two steps further."""
    recording, rows = waves(), EVERY.copy()
    rows[1 + np.flatnonzero(np.random.default_rng(2).random(len(rows) - 2) < 0.06)] -= 1
    motion = motion_of(replace(recording, q=recording.q[rows]))
    assert motion.cutoff < 12.0
    assert_right(motion, 0.1)


def test_lost_efforts_leave_their_states_out() -> None:
    recording = waves()
    effort = recording.effort.copy()
    effort[100:110, 1] = np.nan
    motion = motion_of(replace(recording, effort=effort))
    assert any("10 of 4000 states lack" in note for note in motion.notes)
    assert np.isfinite(motion.effort).all()
    assert_right(motion)


def test_too_short_or_empty_is_refused() -> None:
    recording = waves(0.5)
    with pytest.raises(RecordingError, match="without gaps"):
        motion_of(recording)
    nothing = replace(recording, effort=np.full_like(recording.effort, np.nan))
    for empty in (chosen(recording, EVERY[:0]), nothing):
        with pytest.raises(RecordingError, match="0 states"):
            motion_of(empty)


def test_a_joint_at_rest_does_not_count() -> None:
    recording = waves()
    recording.q[:, 1] = 0.3
    motion = motion_of(recording)
    assert motion.counts[:, 0].any() and not motion.counts[:, 1].any()
    # Nor where it turns back.
    assert (np.abs(motion.v[motion.counts]) > 0.029).all()


@pytest.mark.parametrize("delay", [0.0, 0.0031, -0.0007, 0.05])
def test_delayed_motion_is_that_of_before(delay: float) -> None:
    motion = motion_of(waves()).delayed(delay)
    assert_right(motion, delay=delay)
    # The efforts stay where they are.
    np.testing.assert_allclose(motion.effort, exact(motion.time)[1], atol=1e-9)


def test_split_keeps_the_end_of_each_part() -> None:
    motion = motion_of(chosen(waves(), np.r_[0:1500, 1700:4000]))
    first, last = motion.split(0.2)
    assert len(first.time) + len(last.time) == len(motion.time)
    assert len(first.parts) == len(last.parts) == 2
    assert last.time[0] > first.time[first.parts[0].stop - 1]


LINKS = (link(name) for name in ("base", "arm", "slider"))
JOINTS = joint("turn", "base", "arm", "continuous"), joint("slide", "arm", "slider", "prismatic")
MODEL = RobotModel.from_urdf_string(robot(*LINKS, *JOINTS))


def recorded(turn: np.ndarray) -> Recording:
    t = np.arange(len(turn)) / 100.0
    q = np.stack([turn, np.sin(t)], axis=1)
    effort = np.stack([np.cos(t), 10.0 * np.sin(3.0 * t)], axis=1)
    return Recording("some", ("turn", "slide"), t, q, effort)


def steady() -> Recording:
    return recorded(2.0 * np.arange(1000) / 100.0)


def test_what_is_right_stays_as_it_is() -> None:
    found = of_robot(steady(), MODEL)
    assert found.notes == ()
    np.testing.assert_array_equal(found.q, steady().q)
    np.testing.assert_array_equal(found.effort, steady().effort)
    rounded = replace(steady(), q=np.round(steady().q, 3), effort=np.round(steady().effort))
    assert of_robot(rounded, MODEL).notes == ()
    loaded = steady()
    loaded.effort[500:, 0] += 100.0  # a step, as of a load that is taken
    assert np.isfinite(of_robot(loaded, MODEL).effort).all()


def test_turns_of_a_continuous_joint_are_counted() -> None:
    wrapped = recorded((steady().q[:, 0] + np.pi) % (2.0 * np.pi) - np.pi)
    found = of_robot(wrapped, MODEL)
    np.testing.assert_allclose(found.q[:, 0], steady().q[:, 0], atol=1e-12)
    assert found.notes == ("some: jumps by whole turns were counted: turn",)


def test_glitches_are_lost_samples() -> None:
    recording = steady()
    recording.q[300, 1] += 5.0
    recording.effort[400:402, 0] = -1e6
    found = of_robot(recording, MODEL)
    assert np.flatnonzero(np.isnan(found.q[:, 1])).tolist() == [300]
    assert np.flatnonzero(np.isnan(found.effort[:, 0])).tolist() == [400, 401]
    jumps = "that jump there and back were left out"
    of_turn = f"some: efforts {jumps}: turn (2)"
    assert found.notes == (f"some: positions {jumps}: slide (1)", of_turn)


def test_positions_that_cannot_be_are_told_or_refused() -> None:
    recording = steady()
    recording.q[500:, 1] += 2.5
    with pytest.raises(RecordingError, match=r"slide jumps by 2.5 m .* 4.99 s after the beginning"):
        of_robot(recording, MODEL)
    recording.q[:500, 1] += 2.5
    (note,) = of_robot(recording, MODEL).notes
    assert "slide goes from 1.5 to 3.5 m, and its limits are -3 and 3 m" in note
    recording.q[:, 1] *= 1000.0
    with pytest.raises(RecordingError, match=r"slide goes from .* are they in degrees or mm"):
        of_robot(recording, MODEL)
    with pytest.raises(RecordingError, match=r"turn typically moves with 115 rad/s"):
        of_robot(recorded(np.degrees(steady().q[:, 0])), MODEL)
