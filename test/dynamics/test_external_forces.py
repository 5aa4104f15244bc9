"""Forces of the world on links: against Pinocchio, and by a lever arm."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import planar_arm
from robots import PLANAR
from states import Case, assert_agree, every_robot

from rnea_control.dynamics import Workspace, rnea, world_to_link_force


@every_robot(60, states=2)
def test_agrees_with_pinocchio(case: Case) -> None:
    for s in case.states:
        tau = rnea(case.model, case.ws, s.q, s.v, s.a, case.zeros(), s.forces)
        assert_agree(tau, case.peer.rnea(s.q, s.v, s.a, s.forces))


@every_robot(40, joints=10)
def test_force_in_the_world_agrees_with_pinocchio(case: Case) -> None:
    s = case.state
    places = case.peer.place_links(s.q)
    for link, force in zip(case.model.link_names, s.forces, strict=True):
        place = places.get(link, pin.SE3.Identity())
        mapped = world_to_link_force(case.model, case.ws, s.q, link, force, np.zeros(6))
        assert_agree(mapped, place.actInv(pin.Force(force)).vector, 1e-13)


def test_force_at_the_tip_of_a_straight_arm() -> None:
    """A force across a straight arm is held by lever arm times force; frames: link frame."""
    model = planar_arm.planar_arm()
    model.gravity = (0.0, 0.0, 0.0)
    zero, tau = np.zeros(2), np.zeros(2)
    forces = np.zeros((3, 6))
    # on the lower link's origin, along its z; positive turns are about +y
    forces[model.link_names.index("lower"), 2] = 10.0
    rnea(model, Workspace(model), zero, zero, zero, tau, forces)
    np.testing.assert_allclose(tau, [10.0 * PLANAR["l1"], 0.0], atol=1e-15)
