"""A controller that ends, and comes back, while the page is open."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")
pytest.importorskip("viser", reason="the extra panel is not installed")

from dds import PATIENCE, Process, controller
from panel_bench import PARAMETERS, Tab

from rnea_control.client import Arm

DOMAIN = 89


@pytest.mark.explores
def test_page_and_its_stop_survive_a_controller_that_ends(
    opened: Callable[..., Tab], simulated: Process
) -> None:
    tab = opened()
    tab.shows("holding")
    tab.press("STOP")
    tab.shows("This panel holds the emergency stop.")
    simulated.process.send_signal(signal.SIGKILL)
    simulated.process.wait()
    tab.shows("no controller")
    tab.shows("it has sent no report for")
    with controller(PARAMETERS), Arm(timeout=PATIENCE) as arm:
        arm.wait("emergency_stop", PATIENCE)  # the stop is sent again
        tab.shows("Held by /rnea_panel_")
        tab.press("Release")
        tab.shows("released here")
        tab.press("Resume")
        arm.wait(seconds=PATIENCE)
        tab.open("Move")
        tab.press("Hold")
        tab.shows("Hold: ")
