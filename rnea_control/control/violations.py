"""Texts about a motion that violated one of its bounds (motion_watch.py), was blocked, or could not
be arrested (arrest.py): actor, value, limit, and possible cause."""

from __future__ import annotations

from rnea_control.control import layout
from rnea_control.control.layout import Finding
from rnea_control.exceptions import distinct
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

STANDS = 0.02  # velocity below which a joint does not move [rad/s] or [m/s]
DEGREES = 57.3  # degrees in a radian
STOPPED_SHARE = 0.05  # part of the way by positions below which velocities are zero
NOTABLE = 0.1  # part of the effort limit above which an external torque is reported

DRIVER = "a person, a wrong payload, or a torque with the wrong sign?"


def contradiction(name: str, by_position: float, by_velocity: float) -> str:
    """The error in the velocities of a joint, from the distances that it has moved by its positions
    and by its velocities, [rad] or [m]."""
    if abs(by_velocity) < STOPPED_SHARE * abs(by_position):
        return f"the velocity of {name} is zero while its position changes"
    ratio = by_position / by_velocity
    if ratio < -STOPPED_SHARE:
        return f"the velocity of {name} has the other sign than the change of its position"
    if abs(ratio * DEGREES - 1.0) < 0.3:
        return f"the velocity of {name} is in degrees, its position in radians"
    if abs(ratio) < STOPPED_SHARE:
        return f"the position of {name} stands still while its velocity says that it moves"
    return (
        f"the position of {name} changes {ratio:.2g} times as fast as its velocity says: is a gear "
        "ratio, a unit or the clock of the stamps wrong, or is the velocity late?"
    )


def violation(model: RobotModel, finding: Finding) -> str:
    """Text about a violated bound, a blocked joint or an arrest in vain, by a step's finding."""
    found, j = int(finding.kind), int(finding.joint)
    value, bound = float(finding.excess), float(finding.allowed)
    name, unit, size = model.joint_names[j], units(model, j), abs(value)
    if found == layout.CONTRADICTED:
        return contradiction(name, value, bound)
    is_, most = distinct(size, bound, digits=3)
    if found == layout.TOO_FAST:
        return f"{name} moves at {is_} {unit.velocity}, more than {most} by motion_bounds"
    if found == layout.RUNAWAY:
        return (
            f"{name} is {is_} {unit.velocity} off its desired velocity, more than {most}: does it "
            "obey its torque, and its velocity come in time?"
        )
    if found == layout.DRIVEN:
        return f"something drives {name} with {is_} {unit.effort}, more than {most}: {DRIVER}"
    if found == layout.POWERED:
        where = f"most of it at {name}"
        return f"something drives the arm with {is_} W, more than {most}, {where}: {DRIVER}"
    if found == layout.COLLIDED:
        where = f"act on {name} from outside"
        return f"collision? {is_} {unit.effort} {where}, more than {most}"
    if found == layout.BLOCKED:
        return f"something is in the way of {name}: {resistance(model, finding)}"
    if size == 0.0:
        return f"{name} shakes with little feedback as well; the controller has let go of the arm"
    return (
        f"braking does not help: {name} moves at {size:.2f} of its velocity limit, and moved at "
        f"{bound:.2f} before; the controller has let go of the arm"
    )


def resistance(model: RobotModel, finding: Finding) -> str:
    """Torque on a joint beyond the model's, and whether the joint moves, in words."""
    j = int(finding.joint)
    external, velocity = finding.external_torque, finding.moving_at
    stands = "does not move although" if abs(velocity) < STANDS else "has slowed down though"
    more = f"{abs(external):.3g} {units(model, j).effort} more than the model asks for"
    return f"it {stands} {more} were applied"


def evidence(model: RobotModel, finding: Finding) -> str:
    """Text about the external torque at the joint of a finding; empty if the torque is small."""
    j, external = int(finding.joint), float(finding.external_torque)
    if not abs(external) > NOTABLE * model.effort_limit[j]:
        return ""
    if external * finding.moving_at > 0.0:
        what = f"{abs(external):.3g} {units(model, j).effort} drive it from outside"
        return f"; {what}: {DRIVER}"
    return f"; {resistance(model, finding)}"
