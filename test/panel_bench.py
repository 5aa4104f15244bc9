"""The panel as a process, and a tab of a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import dds
import numpy as np
from dds import PATIENCE, Process, wait_for
from robots import two_link_arm

from rnea_control.client import Arm, Refused

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# WebGL by software, and no sandbox, which containers refuse.
OPTIONS = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
SIZE = {"width": 1000, "height": 800}
# The clock is real: the arm tolerates the pauses of a busy machine.
PARAMETERS = {
    **dds.PARAMETERS,
    "robot_description": two_link_arm(),
    "joint_state_timeout": 20.0,
    "joint_state_gap": 20.0,
    "interpreter_timeout": 100.0,
    "activation": {"check": "off"},
    "thread_priority": 0,
    "lock_memory": False,
    "stream.target_timeout": 0.5,
}
HOME = [0.3, -0.4]  # positions of the arm at the start [rad]


@contextmanager
def panel_process(*options: str) -> Iterator[tuple[Process, str]]:
    """The panel at a port that is free, and the address of its page."""
    arguments = ["--", "--port", "0", "--wait", f"{PATIENCE:g}", *options]
    with Process("rnea_control.panel.executable", None, *arguments) as process:
        process.said("http://")
        yield process, process.output.partition("http://")[2].split()[0]


class Tab:
    """A tab of the browser with the page.

    Args:
        page: the tab of playwright.
    """

    def __init__(self, page: object) -> None:
        self.page = page

    def press(self, name: str) -> None:
        """Clicks a button."""
        self.page.get_by_role("button", name=name, exact=True).click()

    def open(self, tab: str) -> None:
        """Opens a tab of the page."""
        self.page.get_by_role("tab", name=tab, exact=True).click()

    def row(self, label: str) -> object:
        """The inputs of a row with a label."""
        rows = self.page.locator("label", has_text=label).locator("xpath=ancestor::*[.//input][1]")
        return rows.first.locator("input:visible")

    def set(self, label: str, value: object) -> None:
        """Types a number into the field of a slider."""
        field = self.row(label).last
        field.fill(str(value))
        field.press("Enter")

    def value(self, label: str) -> float:
        """Number in the field of a slider."""
        return float(self.row(label).last.input_value())

    def shows(self, words: str) -> None:
        """Waits until the page shows words."""
        self.page.get_by_text(words).first.wait_for()

    def has(self, name: str) -> bool:
        """True if there is a button."""
        return self.page.get_by_role("button", name=name, exact=True).count() > 0


def resumes(arm: Arm) -> bool:
    """Requests the end of a stop, which a panel holds until it is known to have ended."""
    with suppress(Refused):
        arm.resume()
        return True
    return False


def rest(arm: Arm) -> None:
    """The arm at `HOME`, free of requests."""
    wait_for(lambda: arm.mode.name in ("holding", "emergency_stop"))
    if arm.mode.name == "emergency_stop":
        wait_for(lambda: resumes(arm))
    arm.wait(seconds=PATIENCE)
    if np.abs(arm.state.positions - HOME).max() > 0.01:
        arm.go_to(HOME, speed=0.1)
