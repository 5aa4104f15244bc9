"""How the functions of a saved robot are called from C."""

from __future__ import annotations

from collections.abc import Collection

from rnea_control.compiled.programs import ALGORITHMS, BODIES, sizes
from rnea_control.model import RobotModel


def c_header(robot: str, model: RobotModel, algorithms: Collection[str]) -> str:
    """The header of a robot's functions.

    Args:
        robot: what their names begin with.
        model: the robot.
        algorithms: which functions there are.
    """
    guard = f"{robot.upper()}_H"
    joints = ", ".join(model.joint_names)
    lines = [
        f"/* {model.name}: {model.nv} velocities: {joints}. SI units. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"/* `{BODIES}`: what may change, as in the RobotModel's `bodies`; NULL if nothing may. */",
    ]
    shapes = {key: "".join(f"[{size}]" for size in shape) for key, shape in sizes(model).items()}
    for algorithm in algorithms:
        rule = ALGORITHMS[algorithm]
        inputs = [f"const double {name}{shapes[size]}" for name, size in rule.inputs.items()]
        shape = "".join(f"[{size}]" for size in rule.shape(model))
        arguments = ", ".join([*inputs, f"const double *{BODIES}", f"double {rule.output}{shape}"])
        lines.append(f"void {robot}_{algorithm}({arguments});")
    return "\n".join([*lines, "", "#ifdef __cplusplus", "}", "#endif", "#endif", ""])
