"""All that the node offers for trajectories: topics, services and the action."""

from __future__ import annotations

from contextlib import ExitStack

from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.trajectory_action import TrajectoryAction
from rnea_control.node.trajectory_input import InputSettings, TrajectoryInput
from rnea_control.ros.node_parameters import NodeParameters

try:  # the ROS 2 wheels lack control_msgs
    from rnea_control.node.state_topics import StateTopics

    HAS_CONTROL_MSGS = True
except ModuleNotFoundError as missing:
    if missing.name != "control_msgs":
        raise
    HAS_CONTROL_MSGS = False


class TrajectoryInterface:
    """Topics, services and the action of trajectories, around one control loop after the other.

    Args:
        node: that offers them.
        parameters: of the node.

    Attributes:
        input: the way of trajectories to the loop, while there is one.
    """

    def __init__(self, node: Node, parameters: NodeParameters) -> None:
        self._node = node
        self._parameters = parameters
        self._action: TrajectoryAction | None = None
        self._topics: StateTopics | None = None
        self._undo = ExitStack()
        self.input: TrajectoryInput | None = None

    @property
    def has_goals(self) -> bool:
        """Whether goals run, or have results that are still to be sent."""
        return self._action is not None and self._action.has_goals

    @property
    def received(self) -> int:
        """How many trajectories have been received for this loop."""
        return 0 if self.input is None else self.input.received

    def serve_action(self) -> None:
        """Has the action served from now on, where control_msgs is installed."""
        if HAS_CONTROL_MSGS:
            self._action = TrajectoryAction(self._node)

    def connect(self, loop: ControlLoop, settings: InputSettings) -> None:
        """Has this loop follow what comes.

        Raises:
            ParameterError: a value that is not allowed.
        """
        node, parameters, undo = self._node, self._parameters, self._undo
        loop.controller.speed_scaling = parameters["speed_scaling.initial_scaling_factor"]
        self.input = TrajectoryInput(loop, settings, node.get_logger())
        topic = node.create_subscription(
            JointTrajectory, "~/joint_trajectory", self.input.receive, 1, raw=True
        )
        undo.callback(node.destroy_subscription, topic)
        if not HAS_CONTROL_MSGS:
            node.get_logger().warning(
                "control_msgs is not installed: there is no action, no controller_state, "
                "torque_terms, query_state or speed_scaling_input; trajectories come by topic only",
                once=True,
            )
            return
        self._topics = StateTopics(node, loop, parameters["state_publish_rate"])
        undo.callback(self._close_topics)
        if self._action is not None:
            self._action.connect(self.input, loop, parameters["action_monitor_rate"])
            undo.callback(self._action.disconnect)

    def housekeeping(self) -> None:
        """Work that is to be done once a second."""
        if self._topics is not None:
            self._topics.look_for_listeners()

    def _close_topics(self) -> None:
        self._topics.destroy()
        self._topics = None

    def disconnect(self) -> None:
        """Takes all down but the action, which rejects goals from now on."""
        self._undo.close()
        self.input = None

    def destroy(self) -> None:
        """Takes the action down too, once its results are sent."""
        self.disconnect()
        if self._action is not None:
            self._action.destroy()
            self._action = None
