"""`ArmRecording`: joint states and commands of the arm, until they are written."""

from __future__ import annotations

from pathlib import Path

from rclpy.clock import Clock, ClockType

from rnea_control.client.controller_link import FRESH, ControllerLink
from rnea_control.client.recorder import Recorder
from rnea_control.identification.recording_files import refuse_existing

try:
    from control_msgs.msg import JointTrajectoryControllerState
except ImportError:
    JointTrajectoryControllerState = None

LONGEST_DISCOVERY = 2.0  # time limit for the controller's state, which inactive ones lack [s]
PERIOD = 0.1  # period at which subscribers of the commands are sought [s]


class ArmRecording:
    """Records every joint state, the commands, and in rosbag2 the states of the controller; a
    context manager.

    Args:
        link: connection to the controller.
        path: new folder for rosbag2 (MCAP), or new file that ends in .npz.

    Raises:
        RecordingError: the path cannot be written.
    """

    def __init__(self, link: ControllerLink, path: Path) -> None:
        refuse_existing(path)
        self._link, self._path, self._is_written = link, path, False
        link.connection.run(self._open)
        link.until(lambda: self._recorder.states.messages, FRESH)
        link.until(lambda: self._recorder.is_complete, LONGEST_DISCOVERY)  # from here on

    def _open(self) -> None:
        node, commands = self._link.connection.node, self._link.given.values["command_topic"]
        others = {}
        if JointTrajectoryControllerState is not None:
            others[f"{self._link.controller}/controller_state"] = JointTrajectoryControllerState
        self._recorder = Recorder(node, commands, others)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(PERIOD, self._recorder.follow_commands, clock=steady)

    def __enter__(self) -> ArmRecording:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the recording, and writes it.

        Raises:
            RecordingError: it cannot be written, or is empty.
        """
        if self._is_written:
            return
        self._is_written = True
        self._timer.cancel()
        self._recorder.stop()
        joints = self._link.given.model.joint_names
        self._recorder.write(self._path, joints)
