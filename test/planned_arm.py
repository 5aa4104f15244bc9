"""A supervised arm that gets a planner's gains, as serialized messages, without ROS."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from linear_feedback_controller_msgs.msg import Control
from rclpy.serialization import serialize_message
from scipy.linalg import solve_continuous_are
from std_msgs.msg import Float64MultiArray, MultiArrayDimension
from supervised_arm import SupervisedArm

from rnea_control.control import stream_intake
from rnea_control.control.controller_state import torque_terms
from rnea_control.dynamics import Workspace, crba, gravity, rnea
from rnea_control.loop.loop_state import LoopState
from rnea_control.loop.other_inputs import CONTROL, OtherInputs, hear_targets_once
from rnea_control.loop.state_intake import StateIntake
from rnea_control.model import RobotModel

PLANNER, OTHER = (1, 2), (3, 4)


def matrix(numbers: np.ndarray) -> Float64MultiArray:
    """A matrix, or a vector as a matrix of one column, with its dimensions."""
    rows, columns = numbers.shape if numbers.ndim == 2 else (numbers.size, 1)
    message = Float64MultiArray(data=numbers.ravel().tolist())
    message.layout.dim = [
        MultiArrayDimension(label="rows", size=rows, stride=numbers.size),
        MultiArrayDimension(label="cols", size=columns, stride=columns),
    ]
    return message


def control(
    K: np.ndarray, tau: np.ndarray, q: np.ndarray, v: np.ndarray, names: Sequence[str] = ()
) -> Control:
    """A message with gains, and the torque and the state about which they are."""
    message = Control(feedback_gain=matrix(np.asarray(K)), feedforward=matrix(np.asarray(tau)))
    state = message.initial_state.joint_state
    state.name = list(names)
    state.position, state.velocity = np.asarray(q).tolist(), np.asarray(v).tolist()
    message.initial_state.base_pose.position.x = np.nan  # of an arm on a fixed base
    return message


class PlannedArm(SupervisedArm):
    """An arm that a planner moves.

    Attributes:
        others: messages of the loop.
        intake: that of the states; it has their time.
        size: size of the last message [bytes].
    """

    def __init__(self, **arguments) -> None:
        super().__init__(**arguments)
        model = self.controller.model
        self.others = OtherInputs(model.joint_names, model.link_names)
        self.loop = LoopState()
        self.intake, self.size = StateIntake(model.joint_names, 0.1).intake, 0
        self._workspace = Workspace(model)

    @property
    def model(self) -> RobotModel:
        return self.controller.model

    @property
    def x(self) -> tuple[np.ndarray, np.ndarray]:
        """Measured state."""
        return self.plant.q.copy(), self.plant.v.copy()

    def gravity(self, q: np.ndarray) -> np.ndarray:
        return gravity(self.model, self._workspace, q, np.zeros(self.model.nv))

    def torque(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Torque of a motion."""
        return rnea(self.model, self._workspace, q, v, a, np.zeros(self.model.nv))

    def controller_terms(self) -> np.ndarray:
        """Terms of the last torque."""
        controller = self.controller
        of = controller.model, self._workspace, controller.settings, controller.snapshot()
        return torque_terms(*of)

    def gravity_slope(self, q: np.ndarray, h: float = 1e-6) -> np.ndarray:
        """Derivative of the gravity torques by the positions."""
        steps = h * np.eye(self.model.nv)
        slopes = [self.gravity(q + step) - self.gravity(q - step) for step in steps]
        return np.array(slopes).T / (2.0 * h)

    def lqr(self, q: np.ndarray, cost: float = 1e3) -> np.ndarray:
        """Gains that are optimal about an arm at rest, for a cost of positions per that of
        torques."""
        nv = self.model.nv
        M = crba(self.model, self._workspace, q, np.zeros((nv, nv)))
        A, B = np.zeros((2 * nv, 2 * nv)), np.zeros((2 * nv, nv))
        A[:nv, nv:] = np.eye(nv)
        A[nv:, :nv] = -np.linalg.solve(M, self.gravity_slope(q))
        B[nv:] = np.linalg.inv(M)
        Q = np.diag([cost] * nv + [0.01 * cost] * nv)
        return B.T @ solve_continuous_are(A, B, Q, np.eye(nv))

    def hear(self, message: Control | bytes, publisher: tuple[int, int] = PLANNER) -> int:
        """Takes a message, or its bytes, between two ticks."""
        data = message if isinstance(message, bytes) else serialize_message(message)
        into = self.others.arrays.message
        kept = data[: len(into)]
        into[: len(kept)] = np.frombuffer(kept, np.uint8)
        self.intake.time, self.size = self.t, len(data)
        result = hear_targets_once(
            *(self.loop.argument, self.others.arrays, self.controller.arrays),
            *(self.intake.argument, CONTROL, len(data), publisher, -1, 0.0),
        )
        self.supervisor.follow_up(self.controller.tell())
        return result

    def plan(
        self, made: Callable[[float], Control], duration: float, period: float = 0.01
    ) -> PlannedArm:
        """Sends what is made of the time since now, every `period`; runs the arm."""
        begin = self.t
        for _ in range(round(duration / period)):
            assert self.hear(made(self.t - begin)) == stream_intake.TAKEN
            self.run(period)
        return self

    def hold(self, duration: float, K: np.ndarray | None = None) -> PlannedArm:
        """Is held where it is."""
        q = self.plant.q.copy()
        K = self.lqr(q) if K is None else K
        tau, still = self.gravity(q), np.zeros(self.model.nv)
        return self.plan(lambda _: control(K, tau, q, still), duration)
