"""Parameter files: what they contain, and that ROS's readers find it there."""

from __future__ import annotations

from pathlib import Path

import yaml

from rnea_control.node.parameters import PARAMETERS
from rnea_control.parameters.parameter import expand
from rnea_control.parameters.parameter_file import differing, parameter_file
from rnea_control.ros.parameter_files import section_of

KNOWN = expand(PARAMETERS, ["a", "b"])
GRAVITY = [0.0, 0.0, -9.81]


def test_only_values_that_differ_from_the_defaults() -> None:
    values = {
        "gains.a.p": 100.0,  # it must be set
        "gains.a.i": 0,
        "gains.a.i_clamp_max": float("inf"),
        "gravity": [*GRAVITY],
        "own_law.stiffness": 3.0,  # its default is not known
        "use_sim_time": None,
    }
    kept = ["gains.a.p", "gains.a.i_clamp_max", "own_law.stiffness"]
    assert list(differing(values, KNOWN)) == kept


def test_file_is_read_as_written(tmp_path: Path) -> None:
    values = {
        "joints": ["a", "b.c"],
        "gains.b.c.p": 1e-5,
        "gains.b.c.i_clamp_max": float("inf"),
        "activation.check": "off",
        "payload.center_of_mass": GRAVITY,
        "gravity": GRAVITY,
        "robot_description": "<robot>\n  <link name='ä'/>\n</robot>\n" * 20,
    }
    path = tmp_path / "file.yaml"
    for node in ("/rnea_controller", "/arm1/rnea_controller"):
        text = parameter_file(node, values, "Two\nlines: &x")
        path.write_text(text, encoding="utf-8")
        assert section_of(node, ["--params-file", str(path)]) == values
        assert text.startswith("# Two\n# lines: &x\n") and "*id" not in text and "&id" not in text
    assert not section_of("/arm2/rnea_controller", ["--params-file", str(path)])
    assert yaml.safe_load(text)["/arm1"]["rnea_controller"]["ros__parameters"]["joints"]
