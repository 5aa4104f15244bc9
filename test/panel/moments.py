"""A page without a browser, and moments of an arm, for the tests of the page's tabs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import viser

from rnea_control.client.arm import ModeAndReason, Report
from rnea_control.control.controller_state import TERMS
from rnea_control.model import RobotModel
from rnea_control.panel.moment import Moment

URDF = Path(__file__).parents[2] / "urdf" / "seven_axis_arm.urdf"


class Moments:
    """A source whose moments the test makes."""

    def __init__(self) -> None:
        self.description = URDF.read_text()
        self.model = RobotModel.from_urdf_string(self.description)
        self.joint_names = self.model.joint_names

    def moment(self) -> Moment | None:
        return None

    def at(self, time: float, **given: object) -> Moment:
        """A moment of an arm at rest that has gravity torques only; `given` replaces values, and
        torque terms by their names."""
        nv = self.model.nv
        terms = np.zeros((len(TERMS), nv))
        terms[0] = np.linspace(20.0, 2.0, nv)
        for name in TERMS:
            if name in given:
                terms[TERMS.index(name)] = given.pop(name)
        values = {
            "time": time,
            "age": 0.001,
            "positions": np.zeros(nv),
            "velocities": np.zeros(nv),
            "efforts": terms.sum(axis=0),
            "desired": np.zeros(nv),
            "torque_terms": terms,
            "external_torques": np.zeros(nv),
            "mode": ModeAndReason("holding", "at rest"),
            "report": Report(0, "in control", {}, 0.1),
        }
        return Moment(**{**values, **given})


@contextmanager
def headless() -> Iterator[viser.ViserServer]:
    """A page's server without a browser: its elements have their values and contents."""
    server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    try:
        yield server
    finally:
        server.stop()
