"""The robot of LeRobot among the examples, also where LeRobot is not installed: then its base
classes have stand-ins with the same abstract methods."""

from __future__ import annotations

import importlib
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from dds import JOINTS, PATIENCE

from rnea_control.client import Arm

pytestmark = pytest.mark.explores
DOMAIN = 87
EXAMPLE = Path(__file__).parents[2] / "examples" / "lerobot_robot_rnea"
ABSTRACT = {
    *("observation_features", "action_features", "is_connected", "connect", "is_calibrated"),
    *("calibrate", "configure", "get_observation", "send_action", "disconnect"),
}


@dataclass(kw_only=True)
class Config:
    id: str | None = None

    def __post_init__(self) -> None: ...

    @classmethod
    def register_subclass(cls, name: str):
        return lambda subclass: subclass


def start(robot: object, config: Config) -> None:
    robot.id = config.id


METHODS = {name: abstractmethod(lambda robot: None) for name in ABSTRACT}
Robot = type("Robot", (ABC,), {**METHODS, "__init__": start})


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.setenv("HF_HOME", str(tmp_path))  # LeRobot makes a folder there
    monkeypatch.syspath_prepend(EXAMPLE)
    if importlib.util.find_spec("lerobot") is None:
        robots, cameras = ModuleType("lerobot.robots"), ModuleType("lerobot.cameras")
        robots.Robot, robots.RobotConfig = Robot, Config
        cameras.CameraConfig, cameras.make_cameras_from_configs = object, dict
        for module in (ModuleType("lerobot"), robots, cameras):
            monkeypatch.setitem(sys.modules, module.__name__, module)
    return importlib.import_module("lerobot_robot_rnea")


def test_robot_of_lerobot_observes_and_follows(package: ModuleType, arm: Arm) -> None:
    config = package.RneaArmConfig(id="test", joints=JOINTS, observe_pose=True)
    robot = package.RneaArm(config)
    assert not robot.is_connected
    with pytest.raises(RuntimeError, match="not connected"):
        robot.get_observation()
    robot.connect()
    try:
        assert robot.is_connected and robot.is_calibrated
        seen = robot.get_observation()
        assert seen.keys() == robot.observation_features.keys()
        assert all(type(value) is float for value in seen.values())
        start = {key: seen[key] for key in robot.action_features}
        assert list(start) == ["shoulder.pos", "elbow.pos"]
        for k in range(20):
            sent = robot.send_action({**start, "elbow.pos": start["elbow.pos"] + 0.005 * k})
            time.sleep(0.02)
        assert sent["elbow.pos"] == pytest.approx(start["elbow.pos"] + 0.095)
        assert arm.mode.name == "streaming"
        arm.wait(seconds=PATIENCE)
        now = robot.get_observation()["elbow.pos"]
        assert now == pytest.approx(sent["elbow.pos"], abs=0.02)
        chunk = [{**start, "elbow.pos": now + 0.01 * k} for k in range(1, 6)]
        robot.send_chunk(chunk, fps=20.0)
        arm.wait("moving", PATIENCE)
    finally:
        robot.disconnect()
    assert not robot.is_connected


def test_actions_are_poses_of_the_tip(package: ModuleType, arm: Arm) -> None:
    config = package.RneaArmConfig(joints=JOINTS, action="pose", observe_pose=True)
    robot = package.RneaArm(config)
    robot.connect()
    try:
        seen = robot.get_observation()
        pose = {key: np.float32(seen[key]) for key in robot.action_features}
        for _ in range(20):
            robot.send_action(pose)
            time.sleep(0.02)
        assert arm.mode.name == "streaming"
    finally:
        robot.disconnect()
    with pytest.raises(ValueError, match="'torques'; it must be one of joints, pose"):
        package.RneaArmConfig(joints=JOINTS, action="torques")
    other = package.RneaArm(package.RneaArmConfig(joints=["elbow"]))
    with pytest.raises(ValueError, match="the controller has"):
        other.connect()
