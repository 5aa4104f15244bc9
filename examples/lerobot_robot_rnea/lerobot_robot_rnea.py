"""An arm under rnea_control as a robot of LeRobot, which finds it by the name of this package.

pip install . and: lerobot-record --robot.type=rnea --robot.joints="[joint1, joint2]" ...

Observations are positions, velocities and efforts of the joints, the pose of the tip, and pictures
of the cameras. Actions are positions of the joints, or a pose of the tip. Each action is a target
of a stream: the controller bounds velocity and acceleration, and the arm rests when actions stop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from lerobot.cameras import CameraConfig, make_cameras_from_configs
from lerobot.robots import Robot, RobotConfig

from rnea_control.client import Arm

# Keys of a pose of the tip: position [m], quaternion.
POSITION = ("tip.x", "tip.y", "tip.z")
ORIENTATION = ("tip.qx", "tip.qy", "tip.qz", "tip.qw")
ACTIONS = ("joints", "pose")


@RobotConfig.register_subclass("rnea")
@dataclass(kw_only=True)
class RneaArmConfig(RobotConfig):
    """Options of the robot.

    Attributes:
        joints: joints of the controller, which LeRobot asks for before it connects.
        controller: name of the controller's node.
        namespace: namespace of the controller.
        action: what actions are, "joints" or "pose".
        observe_pose: True to observe the pose of the tip.
        cameras: cameras by name.
    """

    joints: list[str]
    controller: str = "rnea_controller"
    namespace: str = ""
    action: str = "joints"
    observe_pose: bool = False
    cameras: dict[str, CameraConfig] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.action not in ACTIONS:
            raise ValueError(f"action is {self.action!r}; it must be one of {', '.join(ACTIONS)}")


class RneaArm(Robot):
    """The arm."""

    config_class = RneaArmConfig
    name = "rnea"

    def __init__(self, config: RneaArmConfig) -> None:
        super().__init__(config)
        self.config = config
        self.cameras = make_cameras_from_configs(config.cameras)
        self._arm: Arm | None = None

    @cached_property
    def observation_features(self) -> dict[str, Any]:
        names = [f"{joint}.{key}" for key in ("pos", "vel", "effort") for joint in self._joints]
        if self.config.observe_pose:
            names += [*POSITION, *ORIENTATION]
        pictures = {name: (each.height, each.width, 3) for name, each in self.cameras.items()}
        return {**dict.fromkeys(names, float), **pictures}

    @cached_property
    def action_features(self) -> dict[str, Any]:
        if self.config.action == "pose":
            return dict.fromkeys((*POSITION, *ORIENTATION), float)
        return {f"{joint}.pos": float for joint in self._joints}

    @property
    def _joints(self) -> list[str]:
        return self.config.joints

    @property
    def arm(self) -> Arm:
        """The arm, for all that LeRobot has no name for."""
        if self._arm is None:
            raise RuntimeError("the arm is not connected; call connect() first")
        return self._arm

    @property
    def is_connected(self) -> bool:
        return self._arm is not None and all(each.is_connected for each in self.cameras.values())

    def connect(self, calibrate: bool = True) -> None:
        arm = Arm(self.config.controller, self.config.namespace)
        if sorted(arm.joint_names) != sorted(self._joints):
            arm.close()
            raise ValueError(f"joints are {self._joints}; the controller has {arm.joint_names}")
        self._arm = arm
        for camera in self.cameras.values():
            camera.connect()

    @property
    def is_calibrated(self) -> bool:
        return True  # by the hardware

    def calibrate(self) -> None:
        pass

    def configure(self) -> None:
        pass

    def get_observation(self) -> dict[str, Any]:
        state, joints = self.arm.state, self.arm.joint_names
        columns = {"pos": state.positions, "vel": state.velocities, "effort": state.efforts}
        seen: dict[str, Any] = {
            f"{joint}.{key}": float(value)
            for key, column in columns.items()
            for joint, value in zip(joints, column, strict=True)
        }
        if self.config.observe_pose:
            pose = self.arm.pose
            seen.update(zip(POSITION, pose.position.tolist(), strict=True))
            seen.update(zip(ORIENTATION, pose.orientation.tolist(), strict=True))
        return seen | {name: camera.async_read() for name, camera in self.cameras.items()}

    def send_action(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Sends the next target; raises `Refused` or `Stopped` if the arm does not follow."""
        numbers = {key: float(action[key]) for key in self.action_features}
        if self.config.action == "pose":
            quaternion = np.array([numbers[key] for key in ORIENTATION])
            quaternion /= np.linalg.norm(quaternion)  # that of a policy is seldom exact
            self.arm.stream_pose([numbers[key] for key in POSITION], quaternion)
        else:
            self.arm.stream({joint: numbers[f"{joint}.pos"] for joint in self._joints})
        return numbers

    def send_chunk(self, actions: Sequence[Mapping[str, Any]], fps: float) -> None:
        """Sends several actions of joints at once, for policies that predict chunks; the next
        chunk replaces the rest."""
        rows = [[action[f"{joint}.pos"] for joint in self.arm.joint_names] for action in actions]
        self.arm.stream_chunk(np.array(rows, dtype=float), 1.0 / fps)

    def disconnect(self) -> None:
        for camera in self.cameras.values():
            if camera.is_connected:
                camera.disconnect()
        arm, self._arm = self._arm, None
        if arm is not None:
            arm.close()
