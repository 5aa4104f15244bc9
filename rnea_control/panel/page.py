"""`Page`: the page, made of its tabs."""

from __future__ import annotations

import time
import traceback
from typing import Any, Protocol

import viser

from rnea_control.client import Arm
from rnea_control.panel.arm_scene import ArmScene
from rnea_control.panel.arm_tab import ArmTab
from rnea_control.panel.health_tab import HealthTab
from rnea_control.panel.moment import Moment, Played, Source
from rnea_control.panel.move_tab import MoveTab
from rnea_control.panel.postures import Postures
from rnea_control.panel.stop_bar import StopBar, StopButton, StopHold
from rnea_control.panel.torque_tab import TorqueTab
from rnea_control.panel.tune_tab import TuneTab

# At a width of the page of 800 pixels, the scene is as wide as the bar.
BAR_WIDTH = 330  # [pixels]
TABS_WIDTH = 460  # [pixels]
MARGIN = 5  # distance of STOP and the bar from the edges, and from each other [pixels]
STOP_HEIGHT = 82  # [pixels]
# The names of the tabs stay in view while the content of a tab is scrolled.
SCROLLED = ".mantine-ScrollArea-content"
TABS_STYLE = (
    f"<style>{SCROLLED} [data-dock-strip]{{position:sticky;top:0;z-index:20;"
    "background:var(--mantine-color-body)}"
    f"{SCROLLED} [data-dock-area],{SCROLLED} div:has([data-dock-area])"
    "{overflow:clip !important}</style>"
)
COMPLAINT_PERIOD = 5.0  # shortest time between two reports of an error [s]


class Shows(Protocol):
    """A part of the page; `show` takes less than 10 ms."""

    def show(self, moment: Moment) -> None:
        """Shows a moment."""


class Page:
    """The page. All of its parts are the same for all browsers.

    Args:
        server: server of the page, without content.
        source: source of its moments.
        arm: the arm; None for a recording.
        acts: True if the page has elements that move the arm or change the controller.
        hold: the emergency stop of this panel.
        controller: full name of the controller's node.
        simple: True if collision shapes are drawn where there are any.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        source: Source,
        arm: Arm | None,
        acts: bool,
        hold: StopHold,
        controller: str,
        simple: bool = False,
    ) -> None:
        self._server, self._source = server, source
        self._complained_at = -COMPLAINT_PERIOD
        gui = server.gui
        gui.reset()
        server.scene.reset()
        acting = arm if acts else None
        # At the lower left, as viser's notifications are above.
        bottom = -MARGIN
        if acting is not None:
            stop = gui.add_panel()
            with stop.add_tab("STOP"):
                StopButton(gui, acting, hold)
            stop.float(x=MARGIN, y=bottom, width=BAR_WIDTH)
            stop.expand()  # on a telephone, where panels are folded at first
            bottom -= STOP_HEIGHT + MARGIN
        bar = gui.add_panel()
        with bar.add_tab("Mode"):
            self._bar = StopBar(gui, acting, hold)
            gui.add_html(TABS_STYLE)
            if isinstance(source, Played):
                source.controls(gui)
        bar.float(x=MARGIN, y=bottom, width=BAR_WIDTH)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(TABS_WIDTH)
        tip = arm.tip if arm else source.model.child_links[-1]
        self._scene = ArmScene(server, source.model, source.description, tip, simple)
        self._tabs: list[Shows] = []
        tabs = gui.add_tab_group()
        with tabs.add_tab("Arm"):
            self._arm_tab = ArmTab(gui, source.model, self._scene)
        self._move: MoveTab | None = None
        if acting is not None:
            with tabs.add_tab("Move"):
                postures = Postures(controller, source.joint_names)
                self._move = MoveTab(server, acting, postures)
        with tabs.add_tab("Torque"):
            self._tabs.append(TorqueTab(gui, source))
        if arm is not None:
            with tabs.add_tab("Tune"):
                self._tabs.append(TuneTab(gui, arm, acts))
        with tabs.add_tab("Health"):
            self._tabs.append(HealthTab(gui, source, arm))

    def show(self) -> None:
        """Shows the newest moment; to be called by a single thread."""
        moment, now = self._source.moment(), time.monotonic()
        if moment is None:
            return
        with self._server.atomic():
            self._shown(self._bar.show, moment, now)
            ghost = self._move.ghost if self._move else None
            self._shown(self._scene.show, moment, ghost)
            self._shown(self._arm_tab.show, moment, now)
            if self._move is not None:
                self._shown(self._move.show, moment, now)
            for tab in self._tabs:
                self._shown(tab.show, moment)

    def _shown(self, show: Any, *arguments: Any) -> None:
        """Calls a part's `show`: an error of one part leaves the others, and STOP, alone."""
        try:
            show(*arguments)
        except Exception:
            now = time.monotonic()
            if now - self._complained_at >= COMPLAINT_PERIOD:
                self._complained_at = now
                traceback.print_exc()

    def close(self) -> None:
        """Ends what the page does by itself."""
        if self._move is not None:
            self._move.close()
