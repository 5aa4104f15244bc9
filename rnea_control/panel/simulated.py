"""A simulated arm and its controller as processes of the panel, with the parameters of the demo."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator

from rnea_control.control import ControlLaw
from rnea_control.demo.controller import CONTROLLER, controller, executable
from rnea_control.demo.robots import load_robot
from rnea_control.exceptions import RneaControlError
from rnea_control.model import RobotModelWarning

NAMESPACE = "simulated"  # separates the arm from a real robot in the same network
RATE = 1000.0  # of states and commands [Hz]


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
    # A browser without a graphics card keeps the computer busy: the controller is late then.
    values = {**robot.simulation(RATE), "waits_for_commands": True}
    with (
        executable("rnea_control.simulation.executable", values, NAMESPACE) as arm,
        controller(robot, ControlLaw.computed_torque, RATE, NAMESPACE) as own,
    ):
        print(f"rnea_panel: starts a simulated {robot.name}, and its controller", flush=True)

        def going_on() -> bool:
            if not running():
                return False
            for process, what in ((arm, "simulated arm"), (own, "controller")):
                if process.poll() is not None:
                    raise RneaControlError(f"the {what} has ended; see its output above")
            return True

        yield f"/{NAMESPACE}/{CONTROLLER}", going_on
