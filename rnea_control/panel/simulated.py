"""A simulated arm and its controller as processes of the panel, with the parameters of the demo."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from rnea_control.child_process import command
from rnea_control.control import ControlLaw
from rnea_control.demo.controller import CONTROLLER, controller
from rnea_control.demo.robots import DemoRobot, load_robot
from rnea_control.exceptions import RneaControlError
from rnea_control.model import RobotModelWarning

NAMESPACE = "simulated"  # separates the arm from a real robot in the same network
RATE = 1000.0  # of states and commands [Hz]
LONGEST_END = 10.0  # time limit for the end of the simulated arm [s]


@contextlib.contextmanager
def simulated_arm(
    name: str, running: Callable[[], bool]
) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Starts an arm and its controller; both end with the context.

    Args:
        name: a robot of the demo, or the path of a URDF; empty for the demo's default.
        running: returns False once the program is to end.

    Yields:
        Full name of the controller's node, and `running`, which raises RneaControlError if one of
        both processes has ended.

    Raises:
        RneaControlError: there is no such robot.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        robot = load_robot(name or None, None)
    with _arm(robot) as arm, controller(robot, ControlLaw.computed_torque, RATE, NAMESPACE) as own:
        print(f"rnea_panel: starts a simulated {robot.name}, and its controller", flush=True)

        def going_on() -> bool:
            if not running():
                return False
            for process, what in ((arm, "simulated arm"), (own, "controller")):
                if process.poll() is not None:
                    raise RneaControlError(f"the {what} has ended; see its output above")
            return True

        yield f"/{NAMESPACE}/{CONTROLLER}", going_on


@contextlib.contextmanager
def _arm(robot: DemoRobot) -> Iterator[subprocess.Popen]:
    """Runs the executable `rnea_simulated_arm`; ends it by SIGINT."""
    joints = list(robot.model.joint_names)
    values = {
        "robot_description": robot.urdf,
        "joints": joints,
        "rate": RATE,
    }
    locked = robot.parameters.get("locked_positions", {})
    start = zip(joints, robot.start.tolist(), strict=True)
    values |= {f"initial_positions.{joint}": position for joint, position in start}
    values |= {f"locked_positions.{joint}": position for joint, position in locked.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parameters.yaml"
        path.write_text(yaml.safe_dump({"/**": {"ros__parameters": values}}))
        options = ["--params-file", str(path), "-r", f"__ns:=/{NAMESPACE}", "--log-level", "error"]
        with subprocess.Popen(
            command("rnea_control.simulation.executable", "--ros-args", *options)
        ) as process:
            try:
                yield process
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(timeout=LONGEST_END)
                except subprocess.TimeoutExpired:
                    process.kill()
