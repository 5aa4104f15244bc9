"""A compiled robot in a program in C: object file and header, and no generator of sources."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from rnea_control.compiled import compile_robot
from rnea_control.dynamics import Workspace, rnea
from rnea_control.model import RobotModel

MAIN = """
#include <stdio.h>
#include "seven_axis_arm.h"

int main(void) {
    const double q[7] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}, v[7] = {1.0}, a[7] = {0.0};
    double tau[7];
    seven_axis_arm_rnea(q, v, a, NULL, tau);
    printf("in C:     ");
    for (int j = 0; j < 7; j++) printf(" %.4f", tau[j]);
    printf("\\n");
}
"""

model = RobotModel.from_urdf_file(Path(__file__).parents[1] / "urdf" / "seven_axis_arm.urdf")
v, tau = np.zeros(7), np.zeros(7)
v[0] = 1.0
rnea(model, Workspace(model), np.full(7, 0.5), v, np.zeros(7), tau)
print("in Python:", " ".join(f"{torque:.4f}" for torque in tau))

with tempfile.TemporaryDirectory() as folder:
    *objects, header = compile_robot(model).save(folder, ["rnea"])
    print(f"written: {', '.join(path.name for path in (*objects, header))}")
    Path(folder, "main.c").write_text(MAIN)
    compiler = shutil.which("cc")
    if compiler is None:
        print("there is no C compiler to go on with")
    else:
        command = [compiler, "-o", "torques", "main.c", *(path.name for path in objects), "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        result = subprocess.run([f"{folder}/torques"], check=True, capture_output=True, text=True)
        print(result.stdout, end="")
