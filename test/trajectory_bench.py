"""A controller process and a two-joint arm in lockstep, with a real action client and all that the
controller tells of its trajectories.

Nothing here sleeps: either the arm is stepped, or it stands until the controller has answered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import rclpy
from action_msgs.msg import GoalStatus
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance, JointTrajectoryControllerState, SpeedScalingFactor
from control_msgs.srv import QueryTrajectoryState
from dds import (
    ARM,
    JOINTS,
    PATIENCE,
    PATIENT,
    LockstepArm,
    Process,
    ask,
    controller,
    ros,
    settings,
    trajectory,
    wait_for,
)
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.action import ActionClient
from rclpy.parameter import parameter_value_to_python
from rclpy.publisher import Publisher
from rclpy.time import Time
from std_srvs.srv import Trigger

from rnea_control.ros.conventions import LATCHED

Result = FollowJointTrajectory.Result
START = np.array([0.3, -0.4])
STILL = [0.0, 0.0]
RATE = 250.0
PARAMETERS = {
    **PATIENT,
    "dead_time": 0.0,  # what is desired at a stamp is that of the stamp
    # Tests push the arm far, and set it back.
    "max_position_errors": {joint: 0.0 for joint in JOINTS},
    "saturation_timeout": 0.0,
    "thread_priority": 0,
    "lock_memory": False,
    "action_monitor_rate": 200.0,
    "state_publish_rate": 500.0,
}
SERVICES = {SetParameters: "set_parameters", GetParameters: "get_parameters"}
SERVICES[QueryTrajectoryState] = "query_state"
# Between looks at what no message tells, such as the controller's log, [s].
POLL = 0.005
# Until a first state is sent again, until all answers to it are in, and until what was sent before
# an answer is in too, [s].
RETRY, QUIET, DRAIN = 0.1, 0.2, 0.02
# Longer than any motion here takes, [s].
LONGEST_MOTION = 20.0
# Trajectories that follow each other quickly are logged at this level.
LOG_LEVEL = "rnea_controller:=debug"


@dataclass
class Sent:
    """A goal that was sent, and what came back."""

    accepted: bool = False
    feedback: list = field(default_factory=list)
    response: object = None
    handle: object = None

    @property
    def ended(self) -> bool:
        return self.response is not None

    @property
    def ending(self) -> tuple[int, int, str]:
        """Status, error_code and error_string."""
        result = self.response.result
        return self.response.status, result.error_code, result.error_string


SUCCEEDED = (GoalStatus.STATUS_SUCCEEDED, Result.SUCCESSFUL)
CANCELED = (GoalStatus.STATUS_CANCELED, Result.SUCCESSFUL)


def aborted(code: int) -> tuple[int, int]:
    return GoalStatus.STATUS_ABORTED, code


def tolerance(joint: str, position: float = 0.0, velocity: float = 0.0) -> JointTolerance:
    return JointTolerance(name=joint, position=position, velocity=velocity)


class TrajectoryBench:
    """See the file.

    Attributes:
        arm: the simulated arm.
        process: the controller.
        state: the last message on controller_state.
        scaling: publishes speed scaling factors.
        changed: parameters that `reset` sets, with the values that they had.
    """

    def __init__(self, arm: LockstepArm, process: Process, scaling: Publisher) -> None:
        self.arm = arm
        self.process = process
        self.state = JointTrajectoryControllerState()
        self.node = rclpy.create_node("client")
        arm.executor.add_node(self.node)
        name = "rnea_controller"
        topic = f"{name}/follow_joint_trajectory"
        self.action = ActionClient(self.node, FollowJointTrajectory, topic)
        self._change_state = self.node.create_client(ChangeState, f"{name}/change_state")
        self.node.create_subscription(
            JointTrajectoryControllerState, f"{name}/controller_state", self._take, 1
        )
        self.scaling = scaling
        self.changed: dict[str, object] = {}
        self._physics, self._push = arm.node._physics.step, np.zeros(2)
        arm.node._physics.step = lambda torque: self._physics(torque + self._push)
        self.wait(self.action.server_is_ready)
        self.first_steps()

    def _take(self, message: JointTrajectoryControllerState) -> None:
        self.state = message

    def reset(self) -> None:
        """Brings controller and arm to the state they had at first."""
        self._push[:] = 0.0
        # A test or a reset that failed may have left it inactive.
        self.transition(Transition.TRANSITION_DEACTIVATE, required=False)
        if self.changed:
            self.set(**self.changed)
            self.changed.clear()
        data = self.arm.node._physics._data
        data.qpos[:], data.qvel[:] = START, 0.0
        self.transition(Transition.TRANSITION_ACTIVATE)
        self.first_steps()

    # Waiting.

    @property
    def now(self) -> float:
        """The stamp of the last state, [s]."""
        return self.arm.node.ticks / RATE

    def wait(self, condition: Callable[[], object]) -> None:
        """Waits, without a step."""
        wait_for(condition, self._spin)

    def _spin(self) -> None:
        self.arm.executor.spin_once(timeout_sec=POLL)

    def run(self, seconds: float) -> None:
        self.arm.run(round(seconds * RATE))

    def recorded(self, seconds: float) -> np.ndarray:
        """Steps, and returns the reference of every step: position, velocity, acceleration, shape
        (n, 3, 2)."""
        rows = []
        for _ in range(round(seconds * RATE)):
            self.arm.run(1)
            point = self.observed().reference
            rows.append([point.positions, point.velocities, point.accelerations])
        return np.array(rows)

    def observed(self) -> JointTrajectoryControllerState:
        """controller_state after the last step."""
        stamp = round(self.now * 1e9)
        self.wait(lambda: Time.from_msg(self.state.header.stamp).nanoseconds == stamp)
        return self.state

    def call(self, kind: type, **fields: object) -> object:
        """The answer of a service."""
        return ask(self.node, self._spin, kind, f"rnea_controller/{SERVICES[kind]}", **fields)

    def ask(self, name: str) -> tuple[bool, str]:
        """What one of the operator's services answers."""
        answer = ask(self.node, self._spin, Trigger, f"rnea_controller/{name}")
        return answer.success, answer.message

    def transition(self, number: int, required: bool = True) -> None:
        """Has the controller change its lifecycle state, and steps while it brakes for that; fails
        if it is `required` and the controller refuses."""
        client = self._change_state
        self.wait(client.service_is_ready)
        answer = client.call_async(ChangeState.Request(transition=Transition(id=number)))
        node, deadline = self.arm.node, time.monotonic() + PATIENCE
        while not answer.done():
            assert time.monotonic() < deadline, "the controller does not change its state"
            received = node.commands_received
            if number != Transition.TRANSITION_ACTIVATE:
                node.publish_state()
            self._spin_for(RETRY, lambda: answer.done() or node.commands_received > received)  # noqa: B023
            if node.commands_received > received:
                node.advance()
        self._spin_for(DRAIN)  # a last command is no answer to a later state
        assert answer.result().success or not required

    def first_steps(self) -> None:
        """Has a controller that was just activated hold the arm; its topics may be new."""
        received, sent = self.arm.node.commands_received, 0
        deadline = time.monotonic() + PATIENCE
        while self.arm.node.commands_received == received:
            assert time.monotonic() < deadline, "the controller does not hold the arm"
            self.arm.node.publish_state()
            sent += 1
            self._spin_for(RETRY, lambda: self.arm.node.commands_received > received)
        if sent > 1:  # no later state may take the second answer for its own
            self._spin_for(QUIET)
        self.arm.run(2)

    def _spin_for(self, seconds: float, condition: Callable[[], bool] = lambda: False) -> None:
        """Spins until a condition holds, but no longer than this."""
        end = time.monotonic() + seconds
        while not condition() and (left := end - time.monotonic()) > 0.0:
            self.arm.executor.spin_once(timeout_sec=left)

    # Settings.

    def set(self, **parameters: object) -> None:
        """Sets parameters, in whose names __ stands for a dot."""
        messages = settings(parameters)
        names = [message.name for message in messages]
        before = self.call(GetParameters, names=names).values
        for name, value in zip(parameters, before, strict=True):
            self.changed.setdefault(name, parameter_value_to_python(value))
        for result in self.call(SetParameters, parameters=messages).results:
            assert result.successful, result.reason

    def scale(self, factor: float) -> None:
        """Has the controller take a speed scaling factor."""
        message = SpeedScalingFactor(factor=factor)
        self.said_after("speed scaling ", lambda: self.scaling.publish(message))

    def push(self, torque: Sequence[float]) -> None:
        """Pushes the arm with a torque at its joints from now on."""
        self._push[:] = torque

    # Trajectories.

    def goal(
        self,
        points: Sequence,
        joints: Sequence[str] = JOINTS,
        start: float = 0.0,
        path: Sequence[JointTolerance] = (),
        goal: Sequence[JointTolerance] = (),
        goal_time: float = 0.0,
    ) -> FollowJointTrajectory.Goal:
        """A goal; for its points see `dds.trajectory`."""
        motion = trajectory(joints, points, start)
        how = {"path_tolerance": path, "goal_tolerance": goal}
        message = FollowJointTrajectory.Goal(trajectory=motion, **how)
        message.goal_time_tolerance = rclpy.duration.Duration(seconds=goal_time).to_msg()
        return message

    def send(self, goal: FollowJointTrajectory.Goal) -> Sent:
        """Sends a goal, and waits without a step until it is rejected, under way or ended."""
        sent = self.submit(goal)
        self.wait(lambda: sent.handle is not None)
        self.wait(lambda: not sent.accepted or sent.feedback or sent.ended)
        return sent

    def submit(self, goal: FollowJointTrajectory.Goal) -> Sent:
        """Sends a goal, and waits for nothing."""
        sent = Sent()

        def ended(future) -> None:
            assert sent.response is None
            sent.response = future.result()

        def answered(future) -> None:
            sent.handle = future.result()
            sent.accepted = sent.handle.accepted
            if sent.accepted:
                sent.handle.get_result_async().add_done_callback(ended)

        keep = sent.feedback.append
        answer = self.action.send_goal_async(goal, lambda message: keep(message.feedback))
        answer.add_done_callback(answered)
        return sent

    def refused(self, goal: FollowJointTrajectory.Goal) -> tuple[int, int, str]:
        """How a goal ends that ends at once."""
        sent = self.send(goal)
        assert sent.accepted
        self.wait(lambda: sent.ended)
        return sent.ending

    def rejected(self, goal: FollowJointTrajectory.Goal) -> str:
        """What the controller says about a goal that it does not accept."""
        sent: list[Sent] = []
        line = self.said_after("goal rejected", lambda: sent.append(self.send(goal)))
        assert not sent[0].accepted
        return line

    def follow(self, points: Sequence, **arguments: object) -> Sent:
        """Sends a goal, which must be followed."""
        sent = self.send(self.goal(points, **arguments))
        assert sent.accepted and not sent.ended, sent.response or self.process.output
        return sent

    def end(self, sent: Sent) -> tuple[int, int, str]:
        """Steps until the controller follows no goal any more, and waits for the ending."""
        self.finish(sent)
        self.wait(lambda: sent.ended)
        return sent.ending

    def finish(self, sent: Sent) -> None:
        """Steps until the controller follows no goal any more."""
        last, idle = self.now + LONGEST_MOTION, 0
        while not sent.ended and idle < 2:  # once, the time may be 0 as a goal just starts
            self.arm.run(2)
            elapsed = self.observed().reference.time_from_start
            idle = 0 if elapsed.sec or elapsed.nanosec else idle + 1
            assert self.now < last, "the goal does not end"

    def cancel(self, sent: Sent) -> tuple[int, int, str]:
        """Cancels a goal, and waits without a step until it has ended."""
        sent.handle.cancel_goal_async()
        self.wait(lambda: sent.ended)
        return sent.ending

    def publish(
        self, points: Sequence, start: float = 0.0, words: str = "following a trajectory: "
    ) -> str:
        """Publishes a trajectory on the topic; the line with these words that the controller prints
        about it."""
        message = trajectory(JOINTS, points, start)
        return self.said_after(words, lambda: self.arm.send(message))

    def said_after(self, words: str, action: Callable[[], None]) -> str:
        """The line with these words that the controller prints after an action."""
        before = len(self.process.output)
        action()

        def lines() -> list[str]:
            new = self.process.output[before:]
            return [line for line in new.splitlines(True) if words in line and line.endswith("\n")]

        self.wait(lines)
        return lines()[0]

    def query(self, moment: float) -> QueryTrajectoryState.Response:
        """query_state at a stamp, [s]."""
        stamp = Time(nanoseconds=round(moment * 1e9)).to_msg()
        return self.call(QueryTrajectoryState, time=stamp)

    def destroy(self) -> None:
        self.arm.executor.remove_node(self.node)
        self.action.destroy()
        self.node.destroy_node()


@contextmanager
def trajectory_bench(
    domain: int, factor: float | None = None, **parameters: object
) -> Iterator[TrajectoryBench]:
    """A bench in a ROS domain of its own.

    Args:
        domain: the ROS domain.
        factor: of the speed, published before the controller starts.
        parameters: of the controller, in place of `PARAMETERS`.
    """
    with ros(domain):
        arm = LockstepArm(rate=RATE, **ARM)
        scaling = arm.node.create_publisher(
            SpeedScalingFactor, "rnea_controller/speed_scaling_input", LATCHED
        )
        if factor is not None:
            scaling.publish(SpeedScalingFactor(factor=factor))
        try:
            with controller(PARAMETERS | parameters, "--log-level", LOG_LEVEL) as process:
                bench = TrajectoryBench(arm, process, scaling)
                try:
                    yield bench
                finally:
                    bench.destroy()
        finally:
            arm.destroy()
