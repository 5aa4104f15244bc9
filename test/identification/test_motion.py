"""From recordings to motions: stamps, gaps, filter, derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rnea_control.exceptions import RecordingError
from rnea_control.identification.motion import Motion, motion_of
from rnea_control.identification.recording import Recording

RATE = 500.0
FREQUENCY = 0.7


def waves(seconds: float = 8.0, noise: float = 0.0) -> Recording:
    """Two joints on a sine; the effort is the velocity."""
    t = np.arange(0.0, seconds, 1.0 / RATE)
    w = 2.0 * np.pi * FREQUENCY
    q = np.stack([np.sin(w * t), 0.5 * np.cos(w * t)], axis=1)
    v = np.stack([w * np.cos(w * t), -0.5 * w * np.sin(w * t)], axis=1)
    q = q + noise * np.random.default_rng(0).standard_normal(q.shape)
    return Recording("waves", ("a", "b"), t, q, v, v.copy(), np.full_like(q, np.nan))


def chosen(recording: Recording, rows: np.ndarray) -> Recording:
    names = ("time", "q", "v", "effort", "commanded")
    return replace(recording, **{name: getattr(recording, name)[rows] for name in names})


def exact(motion: Motion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    w, t = 2.0 * np.pi * FREQUENCY, motion.time
    q = np.stack([np.sin(w * t), 0.5 * np.cos(w * t)], axis=1)
    v = np.stack([w * np.cos(w * t), -0.5 * w * np.sin(w * t)], axis=1)
    return q, v, -(w**2) * q


def assert_right(motion: Motion, tolerance: float = 2e-3) -> None:
    settled = motion.counts.any(axis=1)
    assert settled.sum() > 100
    for found, true in zip((motion.q, motion.v, motion.a), exact(motion), strict=True):
        assert np.abs(found - true)[settled].max() < tolerance * np.abs(true).max()


def test_derivatives_have_no_delay_and_little_error() -> None:
    motion = motion_of(waves())
    assert_right(motion)
    assert motion.ends == (len(motion.time),)
    assert motion.notes == ()


def test_noise_of_the_encoder_is_filtered() -> None:
    """Differences of the raw positions would have 1e-4 * rate^2 = 25 rad/s^2 of noise."""
    motion = motion_of(waves(noise=1e-4))
    assert_right(motion, 0.05)


def test_cutoff_is_by_the_motion_and_by_option() -> None:
    assert motion_of(waves()).cutoff == pytest.approx(10 * FREQUENCY, rel=0.3)
    assert motion_of(waves(), 20.0).cutoff == 20.0
    with pytest.raises(RecordingError, match="below 250 Hz"):
        motion_of(waves(), 300.0)
    with pytest.raises(RecordingError, match="above 0"):
        motion_of(waves(), -1.0)


def test_states_that_repeat_are_no_motion_of_high_frequency() -> None:
    """The hardware's clock is not the controller's: now and then a state is there twice, and the
    next one is two steps further."""
    recording = waves()
    rng = np.random.default_rng(2)
    rows = np.arange(len(recording.time))
    repeats = 1 + np.flatnonzero(rng.random(len(rows) - 2) < 0.06)
    rows[repeats] -= 1
    jumpy = replace(recording, q=recording.q[rows])
    assert motion_of(jumpy).cutoff < 12.0
    assert_right(motion_of(jumpy), 0.1)


def test_a_hole_of_milliseconds_is_bridged() -> None:
    recording = waves()
    motion = motion_of(chosen(recording, np.r_[0:1500, 1504:4000]))
    assert len(motion.parts) == 1
    assert_right(motion)


def test_stamps_that_fall_or_repeat_are_dropped_and_told() -> None:
    recording = waves()
    rows = np.arange(len(recording.time))
    rows = np.insert(rows, 1000, [999, 990, 999])
    motion = motion_of(chosen(recording, rows))
    assert_right(motion)
    assert len(motion.time) == len(recording.time)
    assert motion.notes == ("waves: the stamps of 3 states fall or repeat; they were left out",)


def test_recordings_one_after_the_other_are_parts() -> None:
    """The stamps start again: a bag of two runs in simulated time."""
    recording = waves()
    twice = chosen(recording, np.tile(np.arange(len(recording.time)), 2))
    motion = motion_of(twice)
    assert len(motion.parts) == 2
    assert_right(motion)
    assert any("start again 1 times" in note for note in motion.notes)


def test_gaps_divide_and_are_told() -> None:
    recording = waves()
    rows = np.r_[0:1500, 1700:4000]
    motion = motion_of(chosen(recording, rows))
    assert len(motion.parts) == 2
    assert_right(motion)
    assert any("1 gaps, the longest of 0.402 s" in note for note in motion.notes)


def test_unsteady_stamps_are_put_on_a_grid() -> None:
    recording = waves()
    rng = np.random.default_rng(1)
    rows = np.flatnonzero(rng.random(len(recording.time)) > 0.1)  # a tenth of the messages is lost
    motion = motion_of(chosen(recording, rows))
    assert_right(motion, 0.01)
    assert np.ptp(np.diff(motion.time)) < 1e-9


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
    with pytest.raises(RecordingError, match="0 states"):
        motion_of(chosen(recording, np.arange(0)))
    nothing = replace(recording, effort=np.full_like(recording.effort, np.nan))
    with pytest.raises(RecordingError, match="0 states"):
        motion_of(nothing)


def test_a_joint_at_rest_does_not_count() -> None:
    recording = waves()
    recording.q[:, 1] = 0.3
    motion = motion_of(recording)
    assert motion.counts[:, 0].any() and not motion.counts[:, 1].any()
    # Nor where it turns back.
    assert (np.abs(motion.v[motion.counts]) > 0.029).all()


@pytest.mark.parametrize("delay", [0.0, 0.0031, -0.0007, 0.05])
def test_delayed_motion_is_that_of_before(delay: float) -> None:
    recording = waves()
    motion = motion_of(recording).delayed(delay)
    before = replace(motion, time=motion.time - delay)
    settled = motion.counts.all(axis=1)
    for found, true in zip((motion.q, motion.v, motion.a), exact(before), strict=True):
        assert np.abs(found - true)[settled].max() < 2e-3 * np.abs(true).max()
    # The efforts stay where they are.
    np.testing.assert_allclose(motion.effort, exact(motion)[1], atol=1e-9)


def test_split_keeps_the_end_of_each_part() -> None:
    motion = motion_of(chosen(waves(), np.r_[0:1500, 1700:4000]))
    first, last = motion.split(0.2)
    assert len(first.time) + len(last.time) == len(motion.time)
    assert len(first.parts) == len(last.parts) == 2
    assert last.time[0] > first.time[first.parts[0].stop - 1]
