"""`TuneTab`: gains, payload, friction and disturbance observer of the running controller."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from viser import GuiApi, GuiEvent

from rnea_control.client.arm import Arm
from rnea_control.exceptions import ArmError
from rnea_control.node.parameters import PARAMETERS
from rnea_control.panel.hypertext import block, colored, lines, put
from rnea_control.panel.moment import Moment
from rnea_control.panel.parameter_field import ParameterField, plain_value
from rnea_control.parameters.parameter import JOINT, expand
from rnea_control.parameters.parameter_file import differing, parameter_file
from rnea_control.parameters.table import LOCKED, LOCKED_POSITION
from rnea_control.ros.node_parameters import BUILT_IN

PERIOD = 1.0  # period at which the values in force are read [s]
TIME = "%Y%m%d_%H%M%S"  # in the name of a file
GAINS = ("p", "d", "i", "i_clamp_max", "i_clamp_min", "error_deadband")
FRICTION = ("coulomb", "damping", "offset")
# Parameters by the titles of their forms; the values of a form are set together.
FORMS = {
    "Gains of the joint": (
        *(f"gains.{JOINT}.{each}" for each in GAINS),
        f"feedback_inertia.{JOINT}",
    ),
    "Payload": ("payload.mass", "payload.center_of_mass", "payload.inertia", "payload.link"),
    "Friction and rotor of the joint": (
        "friction_compensation",
        *(f"friction.{JOINT}.{each}" for each in FRICTION),
        f"armature.{JOINT}",
    ),
    "Disturbance observer": ("disturbance_observer.bandwidth", f"disturbance_observer.max.{JOINT}"),
    "Control law": ("control_law", "dead_time"),
}
OPEN = tuple(FORMS)[:2]  # forms that are open at first
ANY = "Any other parameter"
# Parameters of every ROS node, which a file of settings leaves out.
OF_ROS = tuple(name for name in BUILT_IN if name != "use_sim_time")
USAGE = "Enter or the button of a form sets its values, all or none; the units are in brackets."


class TuneTab:
    """Parameters of the running controller, as fields.

    Args:
        gui: elements of the page; the tab is open.
        arm: the arm.
        acts: False if the page only shows.
    """

    def __init__(self, gui: GuiApi, arm: Arm, acts: bool) -> None:
        self._gui, self._arm, self._acts = gui, arm, acts
        self._lock = threading.Lock()  # threads of browsers' callbacks, and the reader
        self._due, self._reader = 0.0, threading.Thread()
        self._names = sorted(arm.parameters)
        self.problem = gui.add_html("")
        if acts:
            put(gui.add_html(""), block(USAGE, style="opacity: 0.7"))
        self.joint = gui.add_dropdown("joint", arm.joint_names)
        self._rows: dict[ParameterField, str] = {}  # fields, and their names with the placeholder
        for title, rows in FORMS.items():
            self._add_form(title, [row for row in rows if self._full_name(row) in self._names])
        self._add_any()
        self.joint.on_update(lambda _: self._do(self._change_joint))
        if acts:
            button = gui.add_button("Write YAML", hint="parameters that differ from the defaults")
            button.on_click(lambda event: self._do(lambda: self._write(event)))
        self.written = gui.add_html("")

    def show(self, moment: Moment) -> None:
        """Has the values in force read, once a second."""
        if (now := time.monotonic()) >= self._due and not self._reader.is_alive():
            self._due = now + PERIOD
            self._reader = threading.Thread(target=self._do, args=(self._refresh,), daemon=True)
            self._reader.start()

    @property
    def fields(self) -> dict[str, ParameterField]:
        """Fields by the full names of their parameters."""
        return {field.name: field for field in (self.any, *self._rows)}

    def set_values(self, fields: Sequence[ParameterField]) -> None:
        """Sets the edited values of some fields, all or none. The controller's words of a refusal
        are below the field that they name, else below the first; the values in force return."""
        with self._lock:
            edited = [field for field in fields if field.is_edited]
            if not edited:
                return
            refusal = ""
            try:
                self._arm.parameters.set({field.name: field.wanted for field in edited})
            except ArmError as error:
                refusal = str(error)
            self._refresh()
            at = next((field for field in edited if f"'{field.name}'" in refusal), edited[0])
            for field in edited:
                field.go_back(refusal if field is at else "")

    def _add_form(self, title: str, rows: Sequence[str]) -> None:
        """Adds a form with a field for each parameter that the controller has."""
        names = {row: self._full_name(row) for row in rows}
        told = self._arm.parameters.describe(names.values())
        values = self._arm.parameters.get(names.values())
        with self._gui.add_form(title, expand_by_default=title in OPEN) as form:
            own = []
            for row, name in names.items():
                label = row.removeprefix(f"{title.lower()}.").replace(f".{JOINT}", "")
                label = label.removeprefix("gains.")
                own.append(
                    ParameterField(self._gui, name, label, told[name], values[name], self._acts)
                )
                self._rows[own[-1]] = row
            if self._acts:
                self._gui.add_button("Set").on_click(lambda _: form.submit())
        form.on_submit(lambda _: self.set_values(own))

    def _add_any(self) -> None:
        """Adds a form with a field for any parameter of the controller."""
        gui, names = self._gui, [name for name in self._names if not name.startswith(OF_ROS)]
        name = names[0]
        told, value = self._arm.parameters.describe([name]), self._arm.parameters[name]
        with gui.add_form(ANY, expand_by_default=False) as form:
            self.chosen = gui.add_dropdown("parameter", names)
            field = ParameterField(gui, name, "value", told[name], value, self._acts, as_text=True)
            self.any = field
            if self._acts:
                gui.add_button("Set").on_click(lambda _: form.submit())
        self.chosen.on_update(lambda _: self._do(self._change_any))
        form.on_submit(lambda _: self.set_values([field]))

    def _full_name(self, row: str) -> str:
        return row.replace(JOINT, self.joint.value)

    def _change_joint(self) -> None:
        """Shows the parameters of another joint."""
        rows = {field: row for field, row in self._rows.items() if JOINT in row}
        self._become({field: self._full_name(row) for field, row in rows.items()})

    def _change_any(self) -> None:
        """Shows the chosen parameter."""
        self._become({self.any: self.chosen.value})

    def _become(self, names: dict[ParameterField, str]) -> None:
        told = self._arm.parameters.describe(names.values())
        values = self._arm.parameters.get(names.values())
        for field, name in names.items():
            field.become(name, told[name], values[name])

    def _refresh(self) -> None:
        """Shows the values in force."""
        values = self._arm.parameters.get(self.fields)
        for field in (self.any, *self._rows):
            field.show(values[field.name])

    def _do(self, action: Callable[[], None]) -> None:
        """Carries out an action, and shows the words of its error."""
        words = ""
        with self._lock:
            try:
                action()
            except (ArmError, KeyError, OSError) as error:
                words = str(error)
        put(self.problem, block(colored(words, "error", bold=True)) if words else block())

    def _write(self, event: GuiEvent[Any]) -> None:
        """Writes the parameters in force that differ from the defaults to a new file in the folder
        of this program, and sends it to the browser."""
        text = self.file_text()
        name = self._arm.controller.rpartition("/")[2]
        path = Path.cwd() / f"{name}_{time.strftime(TIME)}.yaml"
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        put(self.written, block(lines(f"Written: {path}", f"Usage: --params-file {path.name}")))
        if event.client is not None:
            event.client.send_file_download(path.name, text.encode(), save_immediately=True)

    def file_text(self) -> str:
        """Parameter file with the parameters in force that differ from the defaults."""
        arm = self._arm
        names = [name for name in arm.parameters if not name.startswith(OF_ROS)]
        values = {name: plain_value(value) for name, value in arm.parameters.get(names).items()}
        known = expand(PARAMETERS, arm.joint_names)
        known |= {name: LOCKED_POSITION for name in names if name.startswith(LOCKED)}
        # In the order of the table; parameters that it does not know come last.
        order = {name: k for k, name in enumerate(known)}
        found = differing(values, known)
        ordered = dict(sorted(found.items(), key=lambda each: order.get(each[0], len(order))))
        comment = (
            f"Parameters of {arm.controller} that differ from their defaults, as they were in\n"
            f"force on {time.strftime('%Y-%m-%d %H:%M:%S')}. Written by rnea_panel."
        )
        return parameter_file(arm.controller, ordered, comment)
