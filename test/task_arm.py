"""A supervised arm whose tip gets target poses and twists, as serialized messages, without ROS."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.serialization import serialize_message
from robots import panda
from sensor_msgs.msg import JointState
from supervised_arm import SupervisedArm

from rnea_control.control import ControlLaw, stream_intake
from rnea_control.dynamics import Workspace, forward_kinematics, jacobian
from rnea_control.loop import other_inputs
from rnea_control.loop.loop_state import LoopState
from rnea_control.loop.other_inputs import OtherInputs, hear_targets_once
from rnea_control.loop.state_intake import StateIntake
from rnea_control.model import RobotModel

READY = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
TCP = "panda_hand_tcp"
SENDER, OTHER = (1, 2), (3, 4)


class TaskArm(SupervisedArm):
    """An arm that a stream of poses moves; forces act on its tip.

    Attributes:
        force: force [N] and moment [Nm] on the tip, in the root link's frame.
        others: messages of the loop.
    """

    def __init__(
        self,
        task_law: ControlLaw = ControlLaw.cartesian_impedance,
        model: RobotModel | None = None,
        tip: str = TCP,
        q: np.ndarray = READY,
        parameters: dict | None = None,
        control_law: ControlLaw = ControlLaw.computed_torque,
        **arguments,
    ) -> None:
        model = model or panda()
        super().__init__(control_law, model=model, q=q, **arguments)
        settings = self.controller.settings
        self.controller.settings = replace(
            settings, task_law=task_law, tip=tip, more={**settings.more, **(parameters or {})}
        )
        self.tip, self.force = tip, np.zeros(6)
        self.others = OtherInputs(model.joint_names, model.link_names)
        self.loop = LoopState()
        self._states = StateIntake(model.joint_names, 0.1)
        self._workspace, self._J = Workspace(model), np.zeros((6, model.nv))

    @property
    def model(self) -> RobotModel:
        return self.controller.model

    def pose_of(self, q: np.ndarray) -> np.ndarray:
        """Homogeneous transform of the tip."""
        poses = np.zeros((len(self.model.link_names), 4, 4))
        forward_kinematics(self.model, self._workspace, q, poses)
        return poses[self.model.link_names.index(self.tip)]

    @property
    def pose(self) -> np.ndarray:
        return self.pose_of(self.plant.q)

    def jacobian_at(self, q: np.ndarray) -> np.ndarray:
        return jacobian(self.model, self._workspace, q, self.tip, self._J).copy()

    def send(
        self,
        position: np.ndarray,
        rotation: np.ndarray,
        frame: str | None = None,
        publisher: tuple[int, int] = SENDER,
    ) -> int:
        """A target pose; the result of its intake."""
        message = PoseStamped()
        message.header.frame_id = self.model.root_link if frame is None else frame
        place, turn = message.pose.position, message.pose.orientation
        place.x, place.y, place.z = map(float, position)
        coefficients = rotation
        if np.shape(rotation) == (3, 3):
            coefficients = pin.Quaternion(np.array(rotation)).coeffs()
        turn.x, turn.y, turn.z, turn.w = map(float, coefficients)
        return self.hear(other_inputs.TARGET_POSE, message, publisher)

    def send_twist(self, linear: np.ndarray, angular: np.ndarray, frame: str | None = None) -> int:
        message = TwistStamped()
        message.header.frame_id = self.model.root_link if frame is None else frame
        for part, numbers in ((message.twist.linear, linear), (message.twist.angular, angular)):
            part.x, part.y, part.z = map(float, numbers)
        return self.hear(other_inputs.TWIST, message, SENDER)

    def send_posture(self, q: np.ndarray, publisher: tuple[int, int] = OTHER) -> int:
        names = list(self.model.joint_names)
        message = JointState(name=names, position=[float(each) for each in q])
        return self.hear(other_inputs.TARGET_JOINT, message, publisher)

    def hear(self, kind: int, message: object, publisher: tuple[int, int]) -> int:
        """Takes a message, or its bytes, between two ticks."""
        data = message if isinstance(message, bytes) else serialize_message(message)
        self.others.arrays.message[: len(data)] = np.frombuffer(data, np.uint8)
        self._states.intake.time = self.t
        result = hear_targets_once(
            *(self.loop.argument, self.others.arrays, self.controller.arrays),
            *(self._states.intake.argument, kind, len(data), publisher, -1, 0.0),
        )
        self.supervisor.follow_up(self.controller.tell())
        return result

    def hold_pose(self, duration: float, position=None, rotation=None) -> TaskArm:
        """Sends a pose at 50 Hz; that of the arm without one."""
        pose = self.pose
        position = pose[:3, 3] if position is None else position
        rotation = pose[:3, :3] if rotation is None else rotation
        for _ in range(round(duration / 0.02)):
            assert self.send(position, rotation) == stream_intake.TAKEN
            self.run(0.02)
        return self

    def _pass(self) -> None:
        self.plant.push = self.jacobian_at(self.plant.q).T @ self.force
        super()._pass()
