"""What is always in view: the emergency stop, the mode, and the requests that change it."""

from __future__ import annotations

import html
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import viser

from rnea_control.client import Arm
from rnea_control.control import Mode
from rnea_control.exceptions import RneaControlError
from rnea_control.panel.live_arm import GONE
from rnea_control.panel.moment import Moment
from rnea_control.ros.conventions import STOP_HOLDERS

LONGEST_CONFIRMATION = 1.0  # time after which a stop that is not in force is a warning [s]
GREEN, YELLOW, RED = "#2b8a3e", "#b07400", "#c92a2a"
COLORS = {
    Mode.HOLDING.value: GREEN,
    Mode.MOVING.value: GREEN,
    Mode.STREAMING.value: GREEN,
    Mode.GRAVITY_COMPENSATION.value: GREEN,
    Mode.EMERGENCY_STOP.value: RED,
    Mode.FAULT.value: RED,
    Mode.POWERLESS.value: RED,
    GONE: RED,
}
TALLEST_STATUS = 8.5  # height of mode and reason beyond which they scroll [lines of text]
ANSWER = 3.2  # height of the answer [lines of text]
LASTING = 2.0  # time for which an answer is shown although the mode changes [s]
# STOP is large, in front of all panels, and without a header by which its panel could be dragged
# away, folded, or made smaller; a header with the tab of another panel stays.
STOP_STYLE = (
    "<style>button:has(.icon-tabler-hand-stop){height:3.6em !important;font-size:1.2em;"
    "font-weight:bold}"
    "[data-floating-window]:has(.icon-tabler-hand-stop){z-index:100 !important}"
    "[data-floating-window]:has(.icon-tabler-hand-stop):not(:has([role=tab]+[role=tab]))"
    ">:not(:last-child),"
    "[data-dock-group]:has(.icon-tabler-hand-stop):not(:has([role=tab]+[role=tab]))"
    ">:not(:last-child){display:none !important}</style>"
)
# viser's keys do nothing while a field is edited. An image runs the code, as the page runs no
# <script> of an element.
ESCAPE = """
if (!window.escapeStops) {
  window.escapeStops = true;
  window.addEventListener("keydown", event => {
    if (event.key === "Escape" && event.target.closest("input, textarea, select"))
      document.querySelector("button:has(.icon-tabler-hand-stop)")?.click();
  }, true);
}
"""
ONE_PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
RELEASED = "released here; Resume ends the stop"


@dataclass
class StopHold:
    """The emergency stop of this panel; it outlives a controller that ends and comes back."""

    since: float | None = None  # time of the press, by the steady clock; None if released [s]
    words: str = ""  # answer to the newest request
    mode: str = ""  # mode that was shown last
    words_at: float = -math.inf  # time of the answer, by the steady clock; infinity if it stays [s]

    def answer(self, words: str, stays: bool = False) -> None:
        """Shows an answer until the mode changes later, or until another one if it `stays`."""
        self.words, self.words_at = words, math.inf if stays else time.monotonic()

    def answer_in(self, mode: str, now: float) -> str:
        """The answer to show in a mode; `now` is the steady clock [s]."""
        if mode != self.mode and now - self.words_at > LASTING:
            self.words = ""  # it is about another mode
        self.mode = mode
        return self.words

    def put_in_force(self, arm: Arm) -> None:
        """Has a new connection hold the stop, or release what it holds."""
        if self.since is None:
            arm.release_emergency_stop()
        else:
            arm.emergency_stop(wait=False)


class StopButton:
    """STOP. It needs a panel of its own: a browser sends the messages of a panel at most every
    50 ms, and only the latest one of those that came meanwhile.

    Args:
        gui: user interface of the page, in whose present container the button is made.
        arm: the arm.
        hold: the emergency stop of this panel.
    """

    def __init__(self, gui: viser.GuiApi, arm: Arm, hold: StopHold) -> None:
        self._arm, self._hold = arm, hold
        code = html.escape(ESCAPE)
        gui.add_html(f"{STOP_STYLE}<img src='{ONE_PIXEL}' hidden onload='{code}'>")
        stop = gui.add_button(
            "STOP", color="red", icon=viser.Icon.HAND_STOP,
            hint="Holds the emergency stop until Release; closing this page keeps it. Key: Escape",
        )  # fmt: skip
        stop.on_hold(self._press, callback_hz=1.0)  # when it is pressed, before it is let go
        stop.on_click(self._press)
        command = gui.add_command("STOP", description="Emergency stop", hotkey="escape")
        command.on_trigger(self._press)

    # In the loop of the messages: a pool of busy threads must not delay it.
    async def _press(self, _: object) -> None:
        self._hold.since = self._hold.since or time.monotonic()
        try:
            self._arm.emergency_stop(wait=False)
        except Exception as error:  # whatever it is, the user must know
            words = f"STOP was not sent: {error}. Use the robot's own emergency stop"
            self._hold.answer(words, stays=True)


class StopBar:
    """Mode and reason, and what ends a stop or changes the mode.

    Args:
        gui: user interface of the page, in whose present container the bar is made.
        arm: the arm; None for a page that only shows.
        hold: the emergency stop of this panel.
    """

    def __init__(self, gui: viser.GuiApi, arm: Arm | None, hold: StopHold) -> None:
        self._arm, self._hold = arm, hold
        if arm is not None:
            self._add_release(gui, arm)
        self._status = gui.add_html("")
        if arm is not None:
            self._add_requests(gui, arm)
            self._answer = gui.add_html("")

    def _add_release(self, gui: viser.GuiApi, arm: Arm) -> None:
        async def release(_: object) -> None:
            self._hold.since = None
            self._hold.answer(RELEASED)
            try:
                arm.release_emergency_stop()
            except Exception as error:
                self._hold.answer(f"Release was not sent: {error}", stays=True)

        self._release = gui.add_button(
            "Release", icon=viser.Icon.LOCK_OPEN, disabled=True,
            hint="Releases the stop of this panel; Resume then ends it",
        )  # fmt: skip
        self._release.on_click(release)

    def _add_requests(self, gui: viser.GuiApi, arm: Arm) -> None:
        groups: dict[str, dict[str, Callable[[], str]]] = {
            "Motion": {"Hold": arm.hold, "Resume": arm.resume},
            "Mode": {"Hand guiding": arm.guide, "Reset fault": arm.reset_fault},
        }
        for label, requests in groups.items():
            buttons = gui.add_button_group(label, tuple(requests))
            buttons.on_click(lambda event, known=requests: self._ask(known, event.target.value))

    def _ask(self, known: dict[str, Callable[[], str]], name: str) -> None:
        """Carries out a request of a browser."""
        request = known.get(name)
        if request is None:
            return
        try:
            self._hold.answer(f"{name}: {request()}")
        except RneaControlError as error:
            self._hold.answer(f"{name} was refused: {error}")

    def show(self, moment: Moment, now: float) -> None:
        """Shows a moment; `now` is the steady clock [s]."""
        mode, reason = moment.mode.name, moment.mode.reason
        stopped = mode == Mode.EMERGENCY_STOP.value
        lines = [
            f"<b style='color:white;background:{COLORS.get(mode, YELLOW)};padding:1px 7px;"
            f"border-radius:4px'>{html.escape(mode.replace('_', ' ') or 'unknown')}</b> "
            f"{html.escape(reason)}"
        ]
        holders = moment.report.values.get(STOP_HOLDERS, "none")
        since = self._hold.since
        if since is not None:
            lines.append("<b>This panel holds the emergency stop.</b>")
        if stopped and holders != "none":
            lines.append(f"Held by {html.escape(holders)}.")
        elif stopped and since is None:
            lines.append("Nobody holds the stop any more: Resume ends it.")
        if since is not None and not stopped and now - since > LONGEST_CONFIRMATION:
            lines.append(
                "<b style='color:#c92a2a'>The controller does not confirm the stop. Use the "
                "robot's own emergency stop.</b>"
            )
        if moment.age > LONGEST_CONFIRMATION:
            lines.append(f"The newest joint state is {moment.age:.1f} s old.")
        content = "".join(f"<div>{line}</div>" for line in lines)
        _set(self._status, content, f"max-height:{TALLEST_STATUS}em;overflow-y:auto")
        if self._arm is not None:
            answer = html.escape(self._hold.answer_in(mode, now))
            # With a fixed height, so that the buttons above stay where they are.
            _set(self._answer, f"<div>{answer}</div>", f"height:{ANSWER}em;overflow-y:auto")
            if self._release.disabled != (since is None):
                self._release.disabled = since is None


def _set(element: viser.GuiHtmlHandle, content: str, style: str = "") -> None:
    """Shows content that has changed."""
    style = f"font-size:0.85em;padding:2px 8px;overflow-wrap:anywhere;{style}"
    content = f"<div style='{style}'>{content}</div>"
    if element.content != content:
        element.content = content
