"""The tab Arm: where each joint is between its limits, and its share of the effort limit."""

from __future__ import annotations

import html

import numpy as np
import viser

from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units
from rnea_control.panel.arm_scene import ArmScene, effort_shares, torque_color, torques
from rnea_control.panel.moment import Moment

PERIOD = 0.1  # time between two updates of the table [s]
NEAR = 0.1  # rest of the range at which a joint counts as near to a limit
DEGREES = 180.0 / np.pi

STYLE = (
    "<style>.rp{border-collapse:collapse;width:calc(100% - 10px);font-size:0.8em;"
    "font-variant-numeric:tabular-nums}.rp td,.rp th{padding:1px 5px;text-align:right;"
    "font-weight:normal;white-space:nowrap}.rp td:first-child,.rp th:first-child{text-align:left}"
    ".rp th{opacity:0.65}.rp .w{width:38%}.rb{position:relative;height:9px;border-radius:4px;"
    "background:rgba(128,128,128,0.25);min-width:60px}.rb i{position:absolute;top:0;height:9px;"
    "border-radius:4px}</style>"
)


class ArmTab:
    """The joints as a table.

    Args:
        gui: user interface of the page, in whose present container the tab is made.
        model: model of the arm.
        scene: the arm in three dimensions.
    """

    def __init__(self, gui: viser.GuiApi, model: RobotModel, scene: ArmScene) -> None:
        self._model, self._scene, self._shown_at = model, scene, -np.inf
        self._table = gui.add_html("")
        self._force = gui.add_html("")
        gui.add_markdown(
            "Gray: measured. Blue, transparent: desired. Orange: preview of a goal. The color of a "
            "link is the torque of its joint over the effort limit, from gray to red."
        )
        if scene.remarks:
            gui.add_markdown(f"*{html.escape(scene.remarks)}*")

    def show(self, moment: Moment, now: float) -> None:
        """Shows a moment; `now` is the steady clock [s]."""
        if now - self._shown_at < PERIOD:
            return
        self._shown_at = now
        self._table.content = joint_table(self._model, moment)
        force = self._scene.force
        words = "not known"
        if np.isfinite(force).all():
            words = f"{np.linalg.norm(force):.0f} N ({', '.join(f'{x:.0f}' for x in force)})"
        self._force.content = (
            f"<div style='font-size:0.85em;padding:4px 8px'>external force at "
            f"{html.escape(self._scene.tip)}: {words}</div>"
        )


def joint_table(model: RobotModel, moment: Moment) -> str:
    """Positions, limits and torques of all joints, as HTML."""
    shares, values = effort_shares(model, moment), torques(moment)
    rows = []
    for j, name in enumerate(model.joint_names):
        unit = units(model, j)
        turns = unit.position == "rad"
        at = moment.positions[j] * (DEGREES if turns else 1e3)
        lower, upper, q = model.lower[j], model.upper[j], moment.positions[j]
        place, left = "", "no limit"
        if np.isfinite([lower, upper, q]).all() and upper > lower:
            part = float(np.clip((q - lower) / (upper - lower), 0.0, 1.0))
            rest = min(q - lower, upper - q) * (DEGREES if turns else 1e3)
            color = "#e12828" if min(part, 1.0 - part) < 0.5 * NEAR else "#2878dc"
            style = f"left:calc({100 * part:.1f}% - 4px);width:8px;background:{color}"
            place = f"<i style='{style}'></i>"
            left = f"{rest:.0f}{'°' if turns else ' mm'}"
        share = shares[j]
        bar = ""
        if np.isfinite(share):
            width = 50.0 * min(abs(share), 1.0)
            start = 50.0 - (width if share < 0.0 else 0.0)
            tint = "rgb({},{},{})".format(*torque_color(abs(share)))
            style = f"left:{start:.1f}%;width:{max(width, 1.0):.1f}%;background:{tint}"
            bar = f"<i style='{style}'></i>"
        torque = f"{values[j]:.1f} {unit.effort}" if np.isfinite(values[j]) else "not known"
        rows.append(
            f"<tr><td>{html.escape(name)}</td><td>{at:.1f}{'°' if turns else ' mm'}</td>"
            f"<td><div class='rb'>{place}</div></td><td>{left}</td>"
            f"<td><div class='rb'>{bar}</div></td><td>{torque}</td></tr>"
        )
    heads = ("joint", "position", "in its range", "to limit", "of effort limit", "torque")
    head = "".join(f"<th>{each}</th>" for each in heads)
    return f"{STYLE}<table class='rp'><tr>{head}</tr>{''.join(rows)}</table>"
