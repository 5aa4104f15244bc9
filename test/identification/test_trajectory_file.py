"""Exciting motions as YAML, and the reader of such files."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from robots import PANDA_JOINTS, example_robot, load_quietly, two_link_arm
from scipy.interpolate import BPoly

from rnea_control.exceptions import IdentificationError, TrajectoryError
from rnea_control.identification.excitation import Excitation, plan_excitation
from rnea_control.identification.excitation_picture import draw_excitation
from rnea_control.identification.short_names import shortened
from rnea_control.identification.trajectory_file import (
    LONGEST_ARGUMENT,
    read_trajectory,
    trajectory_yaml,
)
from rnea_control.model import RobotModel

POINT = "{positions: [0.1, 0.2], time_from_start: {sec: %d, nanosec: 0}}"


@cache
def planned() -> Excitation:
    model = RobotModel.from_urdf_string(two_link_arm())
    return plan_excitation(model, 5.0, 2, harmonics=6, starts=1, iterations=20)


def write(folder: Path, text: str) -> Path:
    path = folder / "plan.yaml"
    path.write_text(text)
    return path


def test_round_trip(tmp_path: Path) -> None:
    excitation = planned()
    found = read_trajectory(write(tmp_path, trajectory_yaml(excitation, 4.0, 0.02)))
    assert found.joints == excitation.joint_names
    assert found.time[0] == 4.0
    assert found.time[-1] == pytest.approx(4.0 + excitation.duration, abs=1e-9)
    assert len(found.time) == 501
    for read, made in zip(
        (found.q, found.v, found.a), excitation.sample(found.time - 4.0), strict=True
    ):
        np.testing.assert_allclose(read, made, atol=1e-7)
    assert (found.v[[0, -1]] == 0.0).all()
    assert (found.a[[0, -1]] == 0.0).all()


@pytest.mark.parametrize("step", [0.02, 0.1, 5.0])
def test_quintics_between_the_points_follow_the_series(tmp_path: Path, step: float) -> None:
    excitation = planned()
    found = read_trajectory(write(tmp_path, trajectory_yaml(excitation, 1.0, step)))
    curve = BPoly.from_derivatives(found.time, np.stack([found.q, found.v, found.a], axis=1))
    time = np.linspace(0.0, excitation.duration, 20001)
    q, _, _ = excitation.sample(time)
    assert np.abs(curve(time + 1.0) - q).max() < 1e-4


def test_any_yaml_reader_finds_the_message() -> None:
    message = yaml.safe_load(trajectory_yaml(planned()))
    assert set(message) == {"joint_names", "points"}
    for point in message["points"]:
        assert set(point) == {"positions", "velocities", "accelerations", "time_from_start"}
        assert set(point["time_from_start"]) == {"sec", "nanosec"}
        assert all(type(part) is int for part in point["time_from_start"].values())
        for name in ("positions", "velocities", "accelerations"):
            assert [type(number) for number in point[name]] == [float, float]


def test_comment_says_how_it_was_made() -> None:
    text = trajectory_yaml(planned(), notes={"limits": "half the velocity"})
    comment = [line for line in text.splitlines() if line.startswith("#")]
    everything = "\n".join(comment)
    for words in (
        "two_link_arm",
        "WARNING",
        "simulation",
        "2 x 5 s",
        "seed 0",
        "limits:   half the",
        "shoulder: ",
    ):
        assert words in everything
    assert text.startswith("#")


def test_names_that_yaml_takes_for_something_else(tmp_path: Path) -> None:
    urdf = two_link_arm().replace("shoulder", "on").replace("elbow", "it's: 5")
    excitation = replace(planned(), model=RobotModel.from_urdf_string(urdf))
    path = write(tmp_path, trajectory_yaml(excitation))
    assert read_trajectory(path).joints == ("on", "it's: 5")


def test_half_a_minute_of_seven_joints_fits_on_a_command_line() -> None:
    model = load_quietly(example_robot("panda"), PANDA_JOINTS)
    excitation = plan_excitation(model, 30.0, starts=1, iterations=1)
    assert len(trajectory_yaml(excitation).encode()) <= LONGEST_ARGUMENT


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"approach": 0.0}, "approach is 0.0 s"),
        ({"step": np.nan}, "step is nan s"),
        ({"step": 1e-5}, "are 1000001 points; a controller takes 100000: give a longer step"),
    ],
)
def test_times_that_are_not_allowed(options: dict, message: str) -> None:
    with pytest.raises(IdentificationError, match=message):
        trajectory_yaml(planned(), **options)


def test_points_with_positions_only(tmp_path: Path) -> None:
    text = f"header: {{}}\njoint_names: [a, b]\npoints: [{POINT % 1}, {POINT % 2}]"
    found = read_trajectory(write(tmp_path, text))
    np.testing.assert_array_equal(found.q, [[0.1, 0.2]] * 2)
    assert np.isnan(found.v).all()
    assert np.isnan(found.a).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("joint_names: [", "is not valid YAML"),
        ("just words", "is not a JointTrajectory"),
        ("joint_names: [a, b]", "must have joint_names and points"),
        ("{joint_names: [], points: []}", "joint_names must be a list of at least one name"),
        ("{joint_names: [a, a], points: []}", "joint_names has a more than once"),
        ("{joint_names: [a, b], points: []}", "points must be a list of at least one point"),
        ("{joint_names: [a, b], points: [1]}", "points[0] has no time_from_start"),
        (
            "{joint_names: [a, b], points: [{positions: [1, 2], time_from_start: {sec: -1}}]}",
            "points[0] has no time_from_start",
        ),
        (
            f"{{joint_names: [a, b], points: [{POINT % 2}, {POINT % 2}]}}",
            "time_from_start of points[1] is 2 s, and of the point before 2 s; it must rise",
        ),
        (
            f"{{joint_names: [a], points: [{POINT % 1}]}}",
            "positions of points[0] is [0.1, 0.2]; it must be a list of 1 finite",
        ),
        (
            "{joint_names: [a], points: [{time_from_start: {sec: 1}}]}",
            "positions of points[0] is None",
        ),
        (
            "{joint_names: [a], points: [{positions: [.nan], time_from_start: {sec: 1}}]}",
            "positions of points[0] is [nan]",
        ),
    ],
)
def test_files_that_are_no_trajectory(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(TrajectoryError, match=re.escape(message)) as caught:
        read_trajectory(path)
    assert str(path) in str(caught.value)


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TrajectoryError, match="cannot be read"):
        read_trajectory(tmp_path / "none.yaml")


def test_picture(tmp_path: Path) -> None:
    path = tmp_path / "plan.png"
    draw_excitation(path, planned())
    assert path.read_bytes().startswith(b"\x89PNG")


def test_short_names() -> None:
    name = "link2.mcy - 0.316 link3.m - link3.mcz"
    assert shortened(name, 40) == name
    assert shortened(name, 30) == "link2.mcy - 0.316 link3.m ..."
    assert shortened(name, 5) == "link2.mcy ..."
    assert shortened("a_very_long_name.damping", 5) == "a_very_long_name.damping"
