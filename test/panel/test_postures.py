"""Stored postures: what was written is read, and what is not theirs is left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rnea_control.panel.postures import Postures

JOINTS = ("shoulder", "elbow")


def test_postures_are_kept_by_controller_and_by_joint(tmp_path: Path) -> None:
    home = {"ROS_HOME": str(tmp_path)}
    postures = Postures("/left/rnea_controller", JOINTS, home)
    assert postures.read() == {}
    postures.write({"ready": np.array([0.1, -0.2]), "at the table": np.array([1.0, 2.0])})
    again = Postures("/left/rnea_controller", JOINTS[::-1], home).read()
    assert list(again) == ["ready", "at the table"]
    np.testing.assert_array_equal(again["ready"], [-0.2, 0.1])
    assert Postures("/right/rnea_controller", JOINTS, home).read() == {}
    assert Postures("/left/rnea_controller", ("wrist",), home).read() == {}


def test_files_that_are_no_postures_are_none(tmp_path: Path) -> None:
    postures = Postures("/rnea_controller", JOINTS, {"ROS_HOME": str(tmp_path)})
    postures.write({})
    assert postures.read() == {}
    for content in (b"\xff", b"- a list", b"a: {shoulder: x, elbow: 0}", b"a: [", b"!!python/x a"):
        postures.path.write_bytes(content)
        assert postures.read() == {}
    postures.path.write_text("a: {shoulder: .nan, elbow: 0.0}\nb: {shoulder: 1, elbow: 0}\n")
    assert list(postures.read()) == ["b"]
