"""A kernel is compiled anew when any kernel source changes, not only its own file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import rnea_control


def test_change_in_another_file_is_not_served_from_the_cache(tmp_path: Path) -> None:
    copy = tmp_path / "rnea_control"
    shutil.copytree(
        Path(rnea_control.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__")
    )
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import numpy as np\n"
        "from robots import two_link_arm\n"
        "from rnea_control.dynamics import Workspace, gravity\n"
        "from rnea_control.model import RobotModel\n"
        "m = RobotModel.from_urdf_string(two_link_arm())\n"
        "print(gravity(m, Workspace(m), np.zeros(2), np.zeros(2))[0])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def run() -> float:
        command = [sys.executable, "-c", script, str(Path(__file__).parents[1])]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, check=True, text=True
        )
        return float(done.stdout)

    first = run()
    assert run() == first  # from the cache
    vector3 = copy / "dynamics" / "vector3.py"
    text = vector3.read_text()
    assert "return (s * a[0], s * a[1], s * a[2])" in text
    vector3.write_text(
        text.replace(
            "return (s * a[0], s * a[1], s * a[2])",
            "return (2 * s * a[0], 2 * s * a[1], 2 * s * a[2])",
        )
    )
    assert run() != first
