"""`with_observer`: bandwidth of the disturbance observer for a proposal, by the check that the
controller makes of it (control/observer_margin.py). No ROS."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rnea_control.control import ControllerSettings
from rnea_control.control.observer_margin import USUAL, Delays, judge
from rnea_control.identification.tuning.proposal import Proposal
from rnea_control.model import RobotModel
from rnea_control.parameters.table import DEFAULT, OBSERVER

SHARE = 0.5  # part of the largest bandwidth that is proposed
MOST = 40.0  # largest bandwidth that is proposed [rad/s]


def with_observer(
    proposal: Proposal, model: RobotModel, settings: ControllerSettings, period: float
) -> Proposal:
    """The proposal with a bandwidth of the disturbance observer; the default, which each joint has
    for itself, unless all joints allow a larger one.

    Args:
        proposal: other parameters of the controller.
        model, settings: model and settings of the controller.
        period: period of the states, [s].
    """
    tuned, rotors = model.copy(), model.armature.copy()
    p, d = settings.gains.p.copy(), settings.gains.d.copy()
    told = settings.feedback_inertia
    told = np.zeros(model.nv) if told is None else told.copy()
    for name, each in proposal.joints.items():
        j = model.joint_names.index(name)
        rotors[j], p[j], d[j] = each.armature, each.p, each.d
        told[j] = np.nan if each.feedback_inertia == DEFAULT else each.feedback_inertia
    tuned.armature = rotors
    tried = replace(
        settings,
        gains=replace(settings.gains, p=p, d=d),
        dead_time=proposal.dead_time,
        feedback_inertia=told,
        more={**settings.more, OBSERVER: MOST / SHARE},
    )
    found = judge(tuned, tried, Delays(period, proposal.dead_time, proposal.dead_time))
    allowed = SHARE * float(found.bandwidth.min())
    return replace(proposal, observer_bandwidth=allowed if allowed > USUAL else DEFAULT)
