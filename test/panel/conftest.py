"""A controller, a simulated arm in real time, the panel as a process, and a browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from dds import ARM, PATIENCE, Process, controller, ros
from panel_bench import BROWSERS, OPTIONS, PARAMETERS, SIZE, Tab, panel_process

from rnea_control.client import Arm


@pytest.fixture(scope="module")
def simulated(request: pytest.FixtureRequest) -> Iterator[Process]:
    """A simulated arm, and its controller, whose process this is."""
    with ros(request.module.DOMAIN):
        arm = Process("rnea_control.simulation.executable", {**ARM, "rate": 250.0})
        with arm, controller(PARAMETERS) as process:
            yield process


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


@pytest.fixture
def opened(browser: object, address: str) -> Iterator[Callable[..., Tab]]:
    """Opens the page in a new browser context; all are closed after the test."""
    contexts = []

    def open_page(at: str = address, size: dict[str, int] = SIZE) -> Tab:
        context = browser.new_context(viewport=size)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1e3 * PATIENCE)
        page.goto(at)
        page.get_by_role("tab", name="Arm", exact=True).wait_for()
        return Tab(page)

    yield open_page
    for context in contexts:
        context.close()
