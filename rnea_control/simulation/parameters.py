"""Parameters of the simulated arm; the only place of their declarations.

`python -m rnea_control.simulation.parameters` prints their table in `docs/simulated_arm.md`.
"""

from __future__ import annotations

from rnea_control.parameters.parameter import Parameter, markdown

# fmt: off
PARAMETERS = (
    Parameter("robot_description", str, "",
        "URDF of the robot as text", special=("", "the file that `urdf_file` names")),
    Parameter("urdf_file", str, "",
        "path of the robot's URDF file; not used if `robot_description` is set"),
    Parameter("joints", list[str], [],
        "joints to simulate and publish; all others are locked",
        special=([], "all joints that move")),
    Parameter("rate", float, 1000.0,
        "joint states per second", "Hz", at_least=1.0, at_most=10000.0),
    Parameter("lockstep", bool, False,
        "publish a state, wait for the command that answers it, then step: gives the same numbers "
        "on any machine"),
    Parameter("waits_for_commands", bool, False,
        "in real time: stand still for up to 0.1 s where the controller is late, as on a busy "
        "computer"),
    Parameter("publish_clock", bool, False,
        "publish /clock and stamp the states with simulated time"),
    Parameter("brakes_until_command", bool, True,
        "hold the arm still until the first command arrives"),
    Parameter("command_topic", str, "effort_controller/commands", "topic of the torque commands"),
    Parameter("gravity", list[float], [0.0, 0.0, -9.81],
        "acceleration of gravity in the root link's frame", "m/s^2", at_least=-1000.0,
        at_most=1000.0, length=3),
    Parameter("mass_scale", float, 1.0,
        "model error: factor on all masses and inertias", above=0.0, at_most=1000.0),
    Parameter("payload_mass", float, 0.0,
        "model error: point mass on a link", "kg", at_least=0.0, at_most=1e4),
    Parameter("payload_link", str, "",
        "link that the payload is fixed to", special=("", "the link that the last joint moves")),
    Parameter("payload_position", list[float], [0.0, 0.0, 0.0],
        "position of the payload in the link's frame", "m", at_least=-100.0, at_most=100.0,
        length=3),
    Parameter("joint_friction", float, 0.0,
        "model error: Coulomb friction of every joint", "Nm or N", at_least=0.0, at_most=1e4),
    Parameter("joint_damping", float, 0.0,
        "model error: viscous friction of every joint", "Nm s/rad or N s/m", at_least=0.0,
        at_most=1e4),
    Parameter("joint_armature", float, 0.0,
        "model error: rotor inertia of the actuator of every joint, times the gear ratio squared",
        "kg m^2 or kg", at_least=0.0, at_most=1e4),
    Parameter("position_noise", float, 0.0,
        "standard deviation of the published positions", "rad or m", at_least=0.0, at_most=1e3),
    Parameter("velocity_noise", float, 0.0,
        "standard deviation of the published velocities", "rad/s or m/s", at_least=0.0,
        at_most=1e3),
    Parameter("effort_noise", float, 0.0,
        "standard deviation of the published efforts, as a share of each joint's effort limit",
        at_least=0.0, at_most=1e3),
    Parameter("noise_seed", int, 0,
        "seed of the noise; the same seed gives the same noise", at_least=0),
)
# Parameters of joints that the user names.
PARAMETER_GROUPS = {
    "initial_positions": Parameter("initial_positions.<joint>", float, 0.0,
        "initial position of a joint", "rad or m", at_least=-1e4, at_most=1e4),
    "locked_positions": Parameter("locked_positions.<joint>", float, 0.0,
        "position of a joint that is not in `joints`, and so is locked", "rad or m"),
}
# fmt: on


if __name__ == "__main__":
    print(markdown((*PARAMETERS, *PARAMETER_GROUPS.values()), live=False), end="")
