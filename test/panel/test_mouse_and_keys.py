"""Mouse and keys in a real browser, checked on the controller's side: what is in view on a narrow
page, STOP among other clicks, and the handle at the tool."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")
pytest.importorskip("viser", reason="the extra panel is not installed")

from dds import wait_for
from geometry_msgs.msg import PoseStamped
from panel_bench import Tab, rest
from rclpy.node import Node

from rnea_control.client import Arm
from rnea_control.client.message_recorder import MessageRecorder
from rnea_control.panel.tool_handle import INVITATION, LONGEST_STILLNESS
from rnea_control.panel.tool_handle import SIZE as AXIS

DOMAIN = 79
NARROW = {"width": 800, "height": 900}
STOPS = 20
CONFIRMED = 1.0  # time until a stop is in force, on a busy computer [s]
FIELD_OF_VIEW = np.radians(75.0)  # of viser's camera, vertical
EYE = np.array([0.7, -0.9, 0.3])  # place of the camera [m]
CENTER = np.array([0.38, 0.0, -0.1])  # what it looks at, near the tool [m]
Opened = Callable[..., Tab]

# Why an element cannot be clicked in its middle; empty if it can.
HIDDEN = """element => {
    const box = element.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    if (box.x < 0 || box.y < 0 || box.right > innerWidth || box.bottom > innerHeight)
        return `outside: ${JSON.stringify(box)}`;
    const top = document.elementFromPoint(x, y);
    if (element.contains(top) || top.contains(element)) return "";
    return `covered by ${top.outerHTML.slice(0, 300)}`;
}"""
# Presses buttons and releases them at once; `times` are in milliseconds from the first one on.
QUICK_CLICKS = """([names, times]) => {
    const found = name => [...document.querySelectorAll("button")].find(
        each => each.textContent.trim() === name);
    names.forEach((name, k) => setTimeout(() => {
        const button = found(name), mouse = {bubbles: true, button: 0};
        button.dispatchEvent(new PointerEvent("pointerdown", mouse));
        button.dispatchEvent(new PointerEvent("pointerup", mouse));
        button.click();
    }, times[k]));
}"""


def button(tab: Tab, name: str) -> object:
    return tab.page.get_by_role("button", name=name, exact=True)


def field(tab: Tab, label: str) -> object:
    """The field with a label."""
    labels = tab.page.locator("label", has_text=re.compile(f"^{label}$"))
    return labels.locator("xpath=ancestor::*[.//input][1]").first.locator("input")


def assert_reached(element: object, name: str) -> None:
    """Asserts that the mouse reaches an element without scrolling."""
    hidden = element.evaluate(HIDDEN)
    assert not hidden, f"{name}: {hidden}"


def click(tab: Tab, element: object) -> None:
    """Clicks by the mouse, where an element is in the window: playwright's own click scrolls."""
    box = element.bounding_box()
    tab.page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])


def click_and_wait(tab: Tab, element: object) -> None:
    click(tab, element)
    time.sleep(0.2)


def end_stop(tab: Tab, arm: Arm) -> None:
    """Ends a stop by the mouse."""
    release = button(tab, "Release")
    wait_for(release.is_enabled)
    # Within 50 ms, the browser may send another STOP after Release, and Resume may come first.
    wait_for(release.is_disabled, spin=lambda: click_and_wait(tab, release))
    resume = button(tab, "Resume")
    wait_for(lambda: arm.mode.name == "holding", spin=lambda: click_and_wait(tab, resume))


@pytest.mark.explores
def test_all_that_acts_is_reached_at_800_pixels(opened: Opened, arm: Arm) -> None:
    tab = opened(size=NARROW)
    rest(arm)
    page = tab.page
    own = {
        "Arm": {},
        "Move": {
            "slider": page.get_by_role("slider").first,
            "Go": button(tab, "Go"),
            "Cancel": button(tab, "Cancel"),
            "handle": page.get_by_label("Handle at the tool"),
        },
        "Torque": {"joint": tab.row("joint").first},
        "Tune": {"p": field(tab, "p"), "Set": button(tab, "Set").first},
        "Health": {"Examine": button(tab, "Examine")},
    }
    names = ("STOP", "Release", "Hold", "Resume", "Hand guiding", "Reset fault")
    for title, elements in own.items():
        tab.open(title)
        for name, element in elements.items():
            element.wait_for()
            assert_reached(element, f"{title}: {name}")
        for name in names:
            assert_reached(button(tab, name), f"{title}: {name}")
    stop = button(tab, "STOP")
    place = stop.bounding_box()
    click(tab, stop)
    wait_for(lambda: arm.mode.name == "emergency_stop")
    tab.shows("This panel holds the emergency stop.")
    assert stop.bounding_box() == place  # also where the reason is longer
    for name in names:
        assert_reached(button(tab, name), f"stopped: {name}")
    end_stop(tab, arm)


@pytest.mark.explores
def test_stop_acts_when_it_is_pressed_and_cannot_be_dragged_away(opened: Opened, arm: Arm) -> None:
    tab = opened()
    rest(arm)
    stop = button(tab, "STOP")
    place, mouse = stop.bounding_box(), tab.page.mouse
    mouse.move(place["x"] + 10.0, place["y"] + 10.0)
    mouse.down()
    wait_for(lambda: arm.mode.name == "emergency_stop")  # before it is let go
    mouse.move(place["x"] + 200.0, place["y"] - 300.0, steps=5)
    mouse.up()
    assert stop.bounding_box() == place
    end_stop(tab, arm)
    for edge in (place["y"] - 4.0, place["y"] + place["height"] + 4.0):
        mouse.move(place["x"] + 0.5 * place["width"], edge)
        mouse.down()
        mouse.move(place["x"] + 300.0, edge - 300.0, steps=5)
        mouse.up()
        assert stop.bounding_box() == place


@pytest.mark.explores
@pytest.mark.parametrize(
    "names", [("STOP", "Hold"), ("Hold", "STOP", "Hold"), ("Hold", "STOP", "Resume", "Hold")]
)
def test_stop_is_not_lost_among_other_clicks(
    opened: Opened, arm: Arm, names: tuple[str, ...], report: Callable[[str], None]
) -> None:
    tab = opened()
    rest(arm)
    stops = 0
    for k in range(STOPS):
        step = 5 + k % 4 * 5  # a panel of viser sends every 50 ms
        tab.page.evaluate(QUICK_CLICKS, [names, [step * i for i in range(len(names))]])
        end = time.monotonic() + CONFIRMED
        while arm.mode.name != "emergency_stop" and time.monotonic() < end:
            time.sleep(0.01)
        if arm.mode.name == "emergency_stop":
            stops += 1
            end_stop(tab, arm)
            time.sleep(0.1)  # after the click on Resume
    report(f"{', '.join(names)} within 15 ms to 60 ms: {stops} stops of {STOPS}")
    assert stops == STOPS


@pytest.mark.explores
def test_escape_stops_also_where_a_field_is_edited(opened: Opened, arm: Arm) -> None:
    tab = opened()
    rest(arm)
    fields = {
        "Arm": None,
        "Move": tab.row("shoulder").last,
        "Torque": tab.row("joint").first,
        "Tune": field(tab, "p"),
    }
    for title, edited in fields.items():
        tab.open(title)
        if edited is not None:
            edited.click()
        tab.page.keyboard.press("Escape")
        wait_for(lambda: arm.mode.name == "emergency_stop", seen=lambda title=title: title)
        tab.page.keyboard.press("Escape")  # closes the list of a dropdown
        end_stop(tab, arm)


class Handle:
    """The handle at the tool, as the mouse finds it.

    Args:
        tab: the page, with the camera at EYE.
        arm: the arm.
    """

    def __init__(self, tab: Tab, arm: Arm) -> None:
        self._arm, self.mouse = arm, tab.page.mouse
        box = tab.page.locator("canvas").first.bounding_box()
        self._middle = np.array([box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"]])
        self._focal = 0.5 * box["height"] / np.tan(0.5 * FIELD_OF_VIEW)
        forward = (CENTER - EYE) / np.linalg.norm(CENTER - EYE)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        self._axes = np.array([right, -np.cross(right, forward), forward])

    def pixel(self, point: np.ndarray) -> np.ndarray:
        """Place of a point of the scene [m] in the window."""
        x, y, depth = self._axes @ (point - EYE)
        return self._middle + self._focal * np.array([x, y]) / depth

    def grab(self) -> np.ndarray:
        """Presses the mouse on the axis of the tool in whose direction the elbow moves it; returns
        the direction of the axis in the scene, shape (3,)."""
        pose = self._arm.pose
        x, y, z, w = pose.orientation
        axis = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
        self._tool, self._at = pose.position, 0.6 * AXIS
        self.axis = axis
        self.mouse.move(*self.pixel(self._tool + 0.5 * AXIS * axis))
        self.mouse.move(*self.pixel(self._tool + self._at * axis))
        self.mouse.down()
        return axis

    def drag(self, way: float) -> None:
        """Moves the handle along the axis [m]."""
        self._at += way
        self.mouse.move(*self.pixel(self._tool + self._at * self.axis))


@pytest.fixture
def handle(opened: Opened, arm: Arm, address: str) -> Iterator[Handle]:
    """The handle at the tool of an arm at rest, in a scene that is drawn quickly."""
    eye, center = (",".join(map(str, each)) for each in (EYE, CENTER))
    tab = opened(f"{address}/?initialCameraPosition={eye}&initialCameraLookAt={center}")
    rest(arm)
    tab.open("Move")
    box = tab.page.get_by_label("Handle at the tool")
    box.check(force=True)
    tab.shows(INVITATION)
    tab.page.wait_for_timeout(1000.0)  # some frames
    yield Handle(tab, arm)
    tab.page.mouse.up()
    box.uncheck(force=True)


@pytest.fixture
def targets(arm: Arm) -> Iterator[Callable[[float], int]]:
    """Counts the targets of poses within a time [s]."""
    node = Node("counts_targets")
    recorder = MessageRecorder(node, PoseStamped, "target_pose", lambda _: time.monotonic())

    def count(seconds: float) -> int:
        start = time.monotonic()
        time.sleep(seconds)
        return sum(received > start for received, _ in recorder.messages)

    yield count
    recorder.stop()
    node.destroy_node()


def drag_until_the_tool_follows(handle: Handle, arm: Arm) -> None:
    """Drags the handle, 1 cm each time."""
    axis, start = handle.grab(), arm.pose.position
    for _ in range(12):
        handle.drag(0.01)
        time.sleep(0.05)
    wait_for(lambda: (arm.pose.position - start) @ axis > 0.01)


@pytest.mark.explores
@pytest.mark.parametrize("end", ["let go", "still"])
def test_tool_follows_the_mouse(
    handle: Handle, arm: Arm, targets: Callable[[float], int], end: str
) -> None:
    assert targets(0.2) == 0
    drag_until_the_tool_follows(handle, arm)
    way = itertools.cycle((0.004, -0.004))
    for _ in range(10):
        handle.drag(next(way))
        assert targets(0.1) >= 1  # every 50 ms
    assert arm.mode.name == "streaming"
    if end == "let go":
        handle.mouse.up()
        assert targets(0.8 * LONGEST_STILLNESS) <= 2  # not only as it is still
    else:
        time.sleep(2.0 * LONGEST_STILLNESS)
    wait_for(lambda: arm.mode.name == "holding")
    assert targets(0.5) == 0
    if end == "still":  # it is still held, and goes on where it is moved
        handle.drag(-0.02)
        wait_for(lambda: arm.mode.name == "streaming")
