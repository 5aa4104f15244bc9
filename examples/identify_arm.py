"""Plan, record, identify, use: an arm that is not as its URDF says, tracked before and after."""

from pathlib import Path

import numpy as np

from rnea_control.control import Controller, ControllerSettings, Gains, Waypoint
from rnea_control.identification.excitation import Excitation, plan_excitation
from rnea_control.identification.identify import identify
from rnea_control.identification.motion import motion_of
from rnea_control.identification.recording import Recording
from rnea_control.identification.urdf_inertials import with_inertials
from rnea_control.model import RobotModel
from rnea_control.simulation.mujoco_arm import ModelErrors, MujocoArm

PERIOD = 0.001  # time between two states [s]
APPROACH = 2.0  # time to move to the start of the plan [s]
urdf = (Path(__file__).parents[1] / "urdf" / "seven_axis_arm.urdf").read_bytes()
model = RobotModel.from_urdf_string(urdf)
rng = np.random.default_rng(0)

# The true arm: links of other masses, friction and rotors.
links = {link: rng.uniform(0.8, 1.2) * model.link_inertias[link] for link in model.child_links}
hidden = with_inertials(urdf, links, "hidden")
errors = ModelErrors(joint_friction=0.5, joint_damping=0.2, joint_armature=0.1)


def move(known: RobotModel, plan: Excitation) -> tuple[Recording, float]:
    """Recording of a motion under a controller with this model, and the RMS error."""
    arm = MujocoArm(hidden, RobotModel.from_urdf_string(hidden), PERIOD, errors=errors)
    gains = Gains.uniform(known.nv, p=400.0, d=40.0)
    floor = np.full(known.nv, 0.1)  # without it feedback would be weak: the URDF lacks the rotors
    settings = ControllerSettings(gains, friction_compensation=True, feedback_inertia=floor)
    controller = Controller(known, settings)
    controller.hold(0.0, arm.q)
    t = np.arange(0.0, plan.duration + 1e-9, 0.05)
    points = zip(APPROACH + t, *plan.sample(t), strict=True)
    controller.follow(0.0, [Waypoint(*point) for point in points], 0.0)
    rows, tau = [], np.zeros(known.nv)
    for k in range(round((APPROACH + plan.duration) / PERIOD)):
        controller.step(k * PERIOD, arm.q, arm.v, tau)
        rows.append((k * PERIOD, arm.q, tau.copy(), controller.position_error.copy()))
        arm.step(tau)
    time, q, effort, error = map(np.array, zip(*rows, strict=True))
    effort += 0.02 * known.effort_limit * rng.standard_normal(effort.shape)  # the sensors' noise
    q += 1e-5 * rng.standard_normal(q.shape)
    recording = Recording("simulated", known.joint_names, time, q, effort)
    return recording, float(np.sqrt(np.mean(error[time > APPROACH] ** 2)))


recording, _ = move(model, plan_excitation(model, 15.0, seed=1, starts=1, iterations=60))
found = identify(model, motion_of(recording))
better = RobotModel.from_urdf_string(with_inertials(urdf, found.inertias, "identified"))
for name in ("armature", "damping", "friction", "torque_offset"):
    setattr(better, name, getattr(found, name))
print(f"friction found: {found.friction.round(2)} Nm, rotors {found.armature.round(2)} kg m^2")
another = plan_excitation(model, 8.0, seed=2, starts=1, iterations=30)
before, after = (move(robot, another)[1] for robot in (model, better))
print(f"error along another motion: {1e3 * before:.2f} mrad before, {1e3 * after:.3f} mrad after")
