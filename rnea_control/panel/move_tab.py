"""The tab Move: goals by sliders and stored postures, and the handle at the tool."""

from __future__ import annotations

import html
import threading
from typing import Any

import numpy as np
import viser

from rnea_control.array_types import FloatArray
from rnea_control.client import Arm, Goal
from rnea_control.exceptions import RneaControlError
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units
from rnea_control.panel.moment import Moment
from rnea_control.panel.postures import LONGEST_NAME, MOST, Postures
from rnea_control.panel.tool_handle import ToolHandle
from rnea_control.panel.torque_tab import without_common_prefix

SPEED = 20  # share of the velocity limits, at the start of the page [%]
PERIOD = 0.25  # time between two updates of the sliders by the arm [s]
OPENED = "where this page was opened"
DEGREES, MILLIMETERS = 180.0 / np.pi, 1000.0
STEP = 0.1  # of a slider [degrees] or [mm]
ENDLESS = np.pi, 1.0  # range of a slider of a joint without limits [rad], [m]


class MoveTab:
    """Sliders, postures and the handle.

    Args:
        server: server of the page; the tab is made in the present container of its user interface.
        arm: the arm.
        postures: stored postures of the arm.
    """

    def __init__(self, server: viser.ViserServer, arm: Arm, postures: Postures) -> None:
        gui = server.gui
        self._arm, self._postures = arm, postures
        self._goal: Goal | None = None
        self._lock = threading.Lock()  # of a goal that is being sent
        self._follows = True  # the sliders show the arm, until a user moves one
        self._words, self._opened, self._shown_at = "", None, -np.inf
        self._scales, self._lower, self._upper = slider_ranges(arm.model)
        self._add_goal(gui)
        self._add_postures(gui)
        with gui.add_folder("Tool"):
            shown = gui.add_checkbox(
                "Handle at the tool", False,
                hint="The tool follows the handle while it is held and moved, 0.1 m behind at most",
            )  # fmt: skip
            self._followed = gui.add_html("")
        self.handle = ToolHandle(server, arm)
        shown.on_update(lambda event: setattr(self.handle, "visible", bool(event.target.value)))

    def _add_goal(self, gui: viser.GuiApi) -> None:
        model = self._arm.model
        with gui.add_folder("Goal"):
            self._sliders = []
            for j, name in enumerate(without_common_prefix(model.joint_names)):
                unit = "°" if units(model, j).position == "rad" else "mm"
                slider = gui.add_slider(
                    f"{name} [{unit}]", min=float(self._lower[j]), max=float(self._upper[j]),
                    step=STEP, initial_value=float(np.clip(0.0, self._lower[j], self._upper[j])),
                )  # fmt: skip
                slider.on_update(self._preview)
                self._sliders.append(slider)
            self._speed = gui.add_slider(
                "Speed [%]", 1, 100, 1, SPEED, hint="share of the velocity limits, for Go"
            )
            go = gui.add_button("Go", color="green", icon=viser.Icon.PLAYER_PLAY)
            go.on_click(self._go)
            cancel = gui.add_button("Cancel", icon=viser.Icon.PLAYER_STOP,
                hint="ends the motion: the arm brakes and holds")  # fmt: skip
            cancel.on_click(self._cancel)
            back = gui.add_button("Sliders to the arm", icon=viser.Icon.ARROW_BACK_UP)
            back.on_click(lambda _: setattr(self, "_follows", True))
            self._progress = gui.add_progress_bar(0.0)
            self._result = gui.add_html("")
            self._scaling = gui.add_slider(
                "Scaling of trajectories [%]", 0, 100, 1, 100,
                hint="slows down any trajectory, also one under way; 0 pauses it",
            )  # fmt: skip
            self._scaling.on_update(self._scale)
            self._in_force = gui.add_html("")

    def _add_postures(self, gui: viser.GuiApi) -> None:
        with gui.add_folder("Postures"):
            self._known = gui.add_dropdown("Posture", (OPENED,))
            show = gui.add_button("To the sliders", icon=viser.Icon.EYE,
                hint="previews the posture; Go moves the arm")  # fmt: skip
            show.on_click(self._show_posture)
            self._name = gui.add_text("Name", "")
            store = gui.add_button("Store the arm's posture", icon=viser.Icon.DEVICE_FLOPPY)
            store.on_click(self._store)
            remove = gui.add_button("Remove the posture", icon=viser.Icon.TRASH)
            remove.on_click(self._remove)
            self._stored = gui.add_html("")
            self._posture_words = ""
        self._list(self._postures.read())

    # Called by browsers; their values are data, and may be any.

    def _preview(self, event: Any) -> None:
        if event.client is not None:
            self._follows = False

    def _go(self, _: Any) -> None:
        with self._lock:
            try:
                speed = float(np.clip(np.nan_to_num(self._speed.value, nan=1.0), 1, 100)) / 100.0
                self._goal, self._words = None, "is being sent"
                self._goal = self._arm.go_to(self.target(), speed, wait=False)
            except RneaControlError as error:
                self._words = f"not sent: {error}"

    def _cancel(self, _: Any) -> None:
        try:
            self._arm.hold()
        except RneaControlError as error:
            self._words = f"not canceled: {error}"

    def _scale(self, event: Any) -> None:
        if event.client is None:
            return
        try:
            factor = float(event.target.value) / 100.0
            self._arm.scale_speed(factor)
        except RneaControlError as error:
            self._words = f"the scaling stays as it is: {error}"

    def _show_posture(self, _: Any) -> None:
        positions = {OPENED: self._opened, **self._postures.read()}.get(self._known.value)
        if positions is None:
            self._posture_words = "the posture is not known any more"
            return
        self._follows = False
        self._set_sliders(positions)

    def _store(self, _: Any) -> None:
        name = "".join(filter(str.isprintable, self._name.value)).strip()[:LONGEST_NAME]
        postures = self._postures.read()
        if not name or name == OPENED:
            self._posture_words = "give the posture a name first"
        elif len(postures) >= MOST and name not in postures:
            self._posture_words = f"{MOST} postures are stored; remove one first"
        else:
            try:
                postures[name] = self._arm.state.positions
                self._postures.write(postures)
                self._posture_words = f"stored in {self._postures.path}"
            except (RneaControlError, OSError) as error:
                self._posture_words = f"not stored: {error}"
            self._list(postures, name)

    def _remove(self, _: Any) -> None:
        postures = self._postures.read()
        if self._known.value == OPENED or postures.pop(self._known.value, None) is None:
            self._posture_words = "this posture is not stored"
            return
        try:
            self._postures.write(postures)
            self._posture_words = "removed"
        except OSError as error:
            self._posture_words = f"not removed: {error}"
        self._list(self._postures.read())

    def _list(self, postures: dict[str, FloatArray], chosen: str = OPENED) -> None:
        self._known.options = (OPENED, *(name for name in postures if name != OPENED))
        self._known.value = chosen if chosen in postures else OPENED

    # The page's thread.

    @property
    def ghost(self) -> FloatArray | None:
        """Positions of the preview, shape (nv,), [rad] or [m]; None while the sliders show the
        arm."""
        return None if self._follows else self.target()

    def target(self) -> FloatArray:
        """Positions of the sliders within the limits, shape (nv,), [rad] or [m]; NaN for what a
        browser has sent and is no number."""
        model = self._arm.model
        values = np.array([float(slider.value) for slider in self._sliders]) / self._scales
        return np.clip(values, model.lower, model.upper)

    def _set_sliders(self, positions: FloatArray) -> None:
        shown = np.clip(positions * self._scales, self._lower, self._upper)
        for slider, value in zip(self._sliders, shown.tolist(), strict=True):
            if not abs(slider.value - value) < 0.5 * STEP:
                slider.value = round(value, 1)

    def show(self, moment: Moment, now: float) -> None:
        """Shows a moment; `now` is the steady clock [s]."""
        self.handle.show(moment.positions)
        if now - self._shown_at < PERIOD:
            return
        self._shown_at = now
        if np.isfinite(moment.positions).all():
            if self._opened is None:
                self._opened = moment.positions.copy()
            if self._follows:
                self._set_sliders(moment.positions)
        if self._goal is not None:
            ended = self._goal.has_ended
            self._words = self._goal.words if ended else f"moving: {self._goal.words}"
            self._progress.value = 100.0 * float(np.clip(self._goal.progress, 0.0, 1.0))
            if ended:
                self._follows = self._follows or self._goal.failure is None
                self._goal = None
        _set(self._result, self._words)
        scaling = moment.report.values.get("speed scaling", "not known")
        _set(self._in_force, f"scaling in force: {scaling}")
        _set(self._stored, self._posture_words)
        _set(self._followed, self.handle.words)

    def close(self) -> None:
        """Ends the stream of the handle."""
        self.handle.close()


def slider_ranges(model: RobotModel) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scales of the joints' sliders [degrees/rad] or [mm/m], and their lower and upper ends, within
    the position limits [degrees] or [mm]; shape (nv,) each."""
    turns = np.array([units(model, j).position == "rad" for j in range(model.nv)])
    scales = np.where(turns, DEGREES, MILLIMETERS)
    most = np.where(turns, *ENDLESS)
    lower = np.where(np.isfinite(model.lower), model.lower, -most) * scales
    upper = np.where(np.isfinite(model.upper), model.upper, most) * scales
    return scales, np.ceil(lower / STEP) * STEP, np.floor(upper / STEP) * STEP


def _set(element: viser.GuiHtmlHandle, words: str) -> None:
    """Shows words that have changed."""
    content = (
        f"<div style='font-size:0.85em;padding:0 8px;overflow-wrap:anywhere'>{html.escape(words)}"
        "</div>"
    )
    if element.content != content:
        element.content = content
