"""A controller, a simulated arm in real time, the panel as a process, and a browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import dds
import pytest
from dds import ARM, PATIENCE, Process, controller, ros
from robots import two_link_arm

from rnea_control.client import Arm

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


@pytest.fixture(scope="module")
def simulated(request: pytest.FixtureRequest) -> Iterator[Process]:
    """A simulated arm, and its controller, whose process this is."""
    with ros(request.module.DOMAIN):
        arm = Process("rnea_control.simulation.executable", {**ARM, "rate": 250.0})
        with arm, controller(PARAMETERS) as process:
            yield process


@contextmanager
def panel_process(*options: str) -> Iterator[tuple[Process, str]]:
    """The panel at a port that is free, and the address of its page."""
    arguments = ["--", "--port", "0", "--wait", f"{PATIENCE:g}", *options]
    with Process("rnea_control.panel.executable", None, *arguments) as process:
        process.said("http://")
        yield process, process.output.partition("http://")[2].split()[0]


@pytest.fixture(scope="module")
def address(simulated: Process) -> Iterator[str]:
    """Address of the page."""
    with panel_process() as (_, found):
        yield f"http://{found}"


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """A headless browser."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"there is no browser: none of {', '.join(BROWSERS)}")
    with sync_api.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=path, args=OPTIONS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def arm(simulated: Process) -> Iterator[Arm]:
    """The controller's side."""
    with Arm(timeout=PATIENCE) as made:
        yield made


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


@pytest.fixture
def opened(browser: object, address: str) -> Iterator[Callable[..., Tab]]:
    """Opens the page in a new browser context; all are closed after the test."""
    contexts = []

    def open_page(at: str = address) -> Tab:
        context = browser.new_context(viewport=SIZE)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1e3 * PATIENCE)
        page.goto(at)
        page.get_by_role("tab", name="Arm", exact=True).wait_for()
        return Tab(page)

    yield open_page
    for context in contexts:
        context.close()
