"""The files of config/robots: only known parameters, and a robot in MuJoCo that holds and moves.

Few of their descriptions are in example-robot-data. ROBOT_DESCRIPTIONS=FOLDER names a folder with
others, `fr3.urdf` and so on by the names in `ROBOTS`, expanded from the makers' xacro
(docs/robots.md says which).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from robot_bench import FOLDER, Bench, Robot, given, written

from rnea_control.control import EndKind, Mode
from rnea_control.simulation.urdf_for_mujoco import ModelErrors

FRANKA = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)
UR = (0.0, -1.2, 1.5, -1.8, -1.57, 0.0)
KUKA = (0.0, 0.6, 0.0, -1.2, 0.0, 0.9, 0.0)
KINOVA = (0.0, 0.26, 3.14, -2.27, 0.0, 0.96, 1.57)
OPENARM = (0.3, 0.3, 0.2, 1.0, 0.2, 0.2, 0.2)

ROBOTS = [
    Robot("simulated_panda", "panda", FRANKA, 1000.0, False),
    Robot("franka_fer", "panda", FRANKA, 1000.0, True),
    Robot("franka_fr3", "fr3", FRANKA, 1000.0, True),
    Robot("franka_fr3", "fr3_hand", FRANKA, 1000.0, True),
    Robot("ur_e_series", "ur5_robot", UR, 500.0, True),
    Robot("ur_e_series", "ur3e", UR, 500.0, True),
    Robot("ur_e_series", "ur5e", UR, 500.0, True),
    Robot("ur_e_series", "ur10e", UR, 500.0, True),
    Robot("ur_e_series", "ur16e", UR, 500.0, True),
    Robot("kuka_lbr", "iiwa7", KUKA, 500.0, True),
    Robot("kuka_lbr", "iiwa14", KUKA, 500.0, True),
    Robot("kuka_lbr", "med7", KUKA, 500.0, True),
    Robot("kuka_lbr", "med14", KUKA, 500.0, True),
    Robot("kinova_gen3", "gen3", KINOVA, 1000.0, False),
    Robot("kinova_gen3", "gen3_2f85", KINOVA, 1000.0, False),
    Robot("openarm", "openarm", OPENARM, 500.0, False),
    Robot("openarm", "openarm_without_hand", OPENARM, 500.0, False),
]
CONFIGURATIONS = sorted(path.stem for path in FOLDER.glob("*.yaml"))
NEVER_RAN = "never ran on this hardware; loaded, holds gravity and tracks a motion in simulation"

each_robot = pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: f"{r.configuration}-{r.name}")
each_file = pytest.mark.parametrize("configuration", CONFIGURATIONS)


def test_every_configuration_has_a_robot() -> None:
    assert sorted({robot.configuration for robot in ROBOTS}) == CONFIGURATIONS


@each_file
def test_first_line_says_whether_it_ran_on_hardware(configuration: str) -> None:
    first = (FOLDER / f"{configuration}.yaml").read_text(encoding="utf-8").splitlines()[0]
    expected = "never for a real Panda" if configuration == "simulated_panda" else NEVER_RAN
    assert first.startswith("# ")
    assert expected in first


@each_file
def test_parameters_are_known_and_allowed(configuration: str) -> None:
    parameters = given(configuration)
    assert parameters.unknown() == []
    assert parameters.faults() == []


@each_file
def test_what_is_said_of_one_joint_is_said_of_all(configuration: str) -> None:
    values = written(configuration)
    joints = set(values["joints"])
    said: dict[str, set[str]] = {}
    for name in values:
        for joint in joints & set(name.split(".")):
            said.setdefault(name.replace(joint, "<joint>"), set()).add(joint)
    assert said.keys() >= {"gains.<joint>.p", "gains.<joint>.d"}
    assert all(of == joints for of in said.values()), said


@each_robot
def test_holds_and_tracks(robot: Robot, report: Callable[[str], None]) -> None:
    """As described, but that torques act a period late, and that rotors of which nobody has
    published anything are there all the same."""
    bench = Bench(robot)
    bench.run(2.0)
    held = float(np.abs(bench.arm.q - bench.start).max())
    assert bench.supervisor.mode is Mode.HOLDING, bench.supervisor.reason
    motion = bench.move()
    assert motion.ending is not None
    assert motion.ending.kind is EndKind.REACHED, motion.ending.text
    report(
        f"{robot.configuration}, {robot.name}: holds within {1e3 * held:.2f} mrad, "
        f"tracks within {1e3 * bench.furthest:.2f} mrad"
    )
    assert held < 1e-3
    assert bench.furthest < 5e-3


@pytest.mark.parametrize("rotors", [0.2, 3.0])
@each_robot
def test_first_motion_of_an_arm_that_is_not_as_described(
    robot: Robot, rotors: float, report: Callable[[str], None]
) -> None:
    """Masses a tenth off, other rotors, friction that nobody compensates: with soft gains the arm
    is off, but it arrives, nothing gives up, and it comes to rest."""
    if robot.configuration == "simulated_panda":
        pytest.skip("its arm is as described")
    bench = Bench(robot, ModelErrors(mass_scale=1.1), rotors=rotors, friction=True)
    bench.run(2.0)
    motion = bench.move()
    assert motion.ending is not None
    assert motion.ending.kind is EndKind.REACHED, motion.ending.text
    assert bench.controller.gave_way == 0, bench.controller.gave_way_reason
    speed = float(np.abs(bench.arm.v).max())
    report(
        f"{robot.configuration}, {robot.name}, rotors times {rotors}, masses and "
        f"friction off: tracks within {1e3 * bench.furthest:.0f} mrad"
    )
    assert bench.furthest < 0.15
    assert speed < 0.01


@each_robot
def test_simulation_tells_who_compensates_gravity(robot: Robot) -> None:
    """The other way round, every arm leaves its place."""
    bench = Bench(robot)
    bench.arm.compensates = not bench.arm.compensates
    bench.run(1.0)
    assert np.abs(bench.arm.q - bench.start).max() > 2e-3
