"""A recording by the client, played back: what the controller wanted, and how far it was away."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")
pytest.importorskip("viser", reason="the extra panel is not installed")

from dds import PATIENCE

from rnea_control.client import Arm
from rnea_control.panel.recorded_desired import ABSENT
from rnea_control.panel.recording import RecordedSource
from rnea_control.panel.torque_history import position_error

DOMAIN = 93
WAY = 0.5  # [rad]


@pytest.mark.explores
def test_recording_has_desired_positions_and_the_tracking_error(arm: Arm, tmp_path: Path) -> None:
    arm.wait(seconds=PATIENCE)
    start = arm.state.positions[0]
    with arm.record(tmp_path / "bag"), arm.record(tmp_path / "states.npz"):
        arm.move_by({"shoulder": WAY}, speed=0.3)
    source = RecordedSource(tmp_path / "bag")
    times = np.arange(0.2, source.duration, 0.05)
    known = [bool(np.isfinite(source.at(t).desired).all()) for t in times]
    assert all(known[known.index(True) :])  # from the discovery of the topic on
    times = times[known]
    desired = np.array([source.at(t).desired[0] for t in times])
    measured = np.array([source.at(t).positions[0] for t in times])
    np.testing.assert_allclose(desired[[0, -1]], [start, start + WAY], atol=0.03)
    errors = np.array([position_error(source.model, source.at(t))[0] for t in times])
    np.testing.assert_allclose(errors, desired - measured, atol=1e-9)
    assert np.abs(errors).max() < 0.05 < np.ptp(desired)
    # Desired positions of the same time: moved by the time of one message they fit less.
    late = np.interp(times - 0.04, times, desired)
    assert np.abs(errors).mean() < np.abs(late - measured)[1:].mean()
    assert ABSENT not in source.notes
    without = RecordedSource(tmp_path / "states.npz")
    assert ABSENT in without.notes and np.isnan(without.at(1.0).desired).all()
