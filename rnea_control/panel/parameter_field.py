"""`ParameterField`: a parameter of the running controller on the page."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from viser import GuiApi

from rnea_control.client.live_parameters import Description
from rnea_control.panel.hypertext import block, colored, put

LONGEST = 1000  # characters of a value that a browser may send
CHOICES = "one of "  # beginning of the allowed values of a parameter with choices
BETWEEN = re.compile(r"[\s,]+")  # separators of the elements of an array
LINE = "font-size: 0.7em; margin-top: -0.5em; padding: 0 1.2em 0.5em 1.2em"


class ParameterField:
    """A field with the value in force, or a value that shall be set, and a line below the field:
    meaning and allowed values, or why the controller refuses the value.

    A browser sends every key that is pressed, so a value is set only on request.

    Args:
        gui: elements of the page; the form of the field is open.
        name: full name of the parameter.
        label: label of the field.
        description: the parameter in the words of the controller.
        value: value in force.
        acts: False if the field only shows the value.
        as_text: True for a text field, whatever the type: for `become` of any parameter.

    Attributes:
        name: full name of the parameter.
        element: element of the field.
        line: line below the field.
    """

    def __init__(
        self,
        gui: GuiApi,
        name: str,
        label: str,
        description: Description,
        value: Any,
        acts: bool,
        as_text: bool = False,
    ) -> None:
        self.name, self._description, self._value = name, description, plain_value(value)
        self._refusal = ""
        allowed = description.allowed
        is_choice = allowed.startswith(CHOICES) and not as_text
        self._is_text = as_text or not (is_choice or isinstance(self._value, bool))
        shown: Any = self._shown
        if self._is_text:
            self.element: Any = gui.add_text(label, shown, disabled=not acts)
        elif is_choice:
            choices = dict.fromkeys((*allowed.removeprefix(CHOICES).split(", "), shown))
            self.element = gui.add_dropdown(
                label, tuple(choices), initial_value=shown, disabled=not acts
            )
        else:
            self.element = gui.add_checkbox(label, shown, disabled=not acts)
        self.line = gui.add_html("")
        self._explain()

    @property
    def is_edited(self) -> bool:
        """True if the field does not have the value in force."""
        return bool(self.element.value != self._shown)

    @property
    def wanted(self) -> Any:
        """Value in the field, as a type of ROS. Text that is not of the parameter's type stays
        text: the controller then says which values it allows."""
        entered = self.element.value
        return entered if isinstance(entered, bool) else parsed(entered[:LONGEST], self._value)

    def show(self, value: Any) -> None:
        """Shows the value in force, unless the field is being edited."""
        was_edited, self._value = self.is_edited, plain_value(value)
        if not was_edited:
            self.element.value = self._shown
        self._explain()

    def become(self, name: str, description: Description, value: Any) -> None:
        """Shows another parameter of the same type."""
        self.name, self._description, self._value = name, description, plain_value(value)
        self.go_back()

    def go_back(self, refusal: str = "") -> None:
        """Shows the value in force, and why another value was refused."""
        if self._is_text:
            # A browser leaves out a message if the next message follows within 50 ms: it may show
            # more than was received. And viser sends no value that the server has already.
            self.element.value += " "
        self.element.value = self._shown
        self._refusal = refusal
        self._explain()

    @property
    def _shown(self) -> bool | str:
        """Value in force as in the field."""
        is_switch = isinstance(self._value, bool) and not self._is_text
        return self._value if is_switch else text_of(self._value)

    def _explain(self) -> None:
        """Updates the line below the field."""
        told = self._description
        if self.is_edited:
            self._refusal = ""
            words = colored(f"in force: {text_of(self._value)}", "warn", bold=True)
        elif self._refusal:
            words = colored(self._refusal, "error", bold=True)
        else:
            words = colored(f"{told.meaning}. {told.allowed}".rstrip(" ."), "unknown")
        put(self.line, block(words, style=LINE))


def plain_value(value: Any) -> Any:
    """Value of a parameter as bool, int, float, str, list, or None if it is not set."""
    return value if isinstance(value, bool | int | float | str | None) else list(value)


def text_of(value: Any) -> str:
    """Value of a parameter as text."""
    if isinstance(value, list):
        return ", ".join(map(text_of, value))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def parsed(text: str, like: Any) -> Any:
    """Value of a text.

    Args:
        text: text of a field.
        like: a value of the same type; text stays text if `like` is text.
    """
    words = text.strip()
    if isinstance(like, str):
        return text
    if isinstance(like, bool):
        return {"true": True, "false": False}.get(words.lower(), text)
    if isinstance(like, list):
        elements = [parsed(each, like[0] if like else 0.0) for each in _elements(words)]
        return elements if len(set(map(type, elements))) == 1 else text
    for kind in (int, float) if isinstance(like, int) else (float,):
        with suppress(ValueError):
            return kind(words)
    return text


def _elements(words: str) -> list[str]:
    return [each for each in BETWEEN.split(words.strip("[]")) if each]
