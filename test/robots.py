"""Robots for the tests: those of example-robot-data, small ones written out, and random trees."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from rnea_control.model import Joint, Mimic, RobotModel, RobotModelWarning
from rnea_control.model.joints import POSITIONS
from rnea_control.model.rigid_body import rotation_from_rpy
from rnea_control.model.robot_description import RobotDescription, description_from_urdf

PANDA_JOINTS = tuple(f"panda_joint{i}" for i in range(1, 8))


@cache
def example_robots() -> tuple[Path, ...]:
    """All URDF files; the test, or the file of tests that asks, is skipped where there are none."""
    try:
        files = metadata.files("example-robot-data") or []
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed", allow_module_level=True)
    return tuple(sorted(Path(f.locate()) for f in files if f.suffix == ".urdf"))


def example_robot(name: str) -> Path:
    """The one of this name; where two files have the same, of this folder and name."""
    ends = "/" + name
    (path,) = (path for path in example_robots() if str(path.with_suffix("")).endswith(ends))
    return path


def panda() -> RobotModel:
    """The Panda arm, whose fingers stand, to be changed at will."""
    return load_quietly(example_robot("panda"), PANDA_JOINTS)


def load_quietly(
    path: Path, joints: tuple[str, ...] | None = None, floating_base: bool = False
) -> RobotModel:
    """A robot without its warnings: they are tested elsewhere.

    The file is read once for all tests; each gets a copy that is its own to change.
    """
    return copy.deepcopy(_read(path, joints, floating_base))


@cache
def _read(path: Path, joints: tuple[str, ...] | None, floating_base: bool) -> RobotModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        return RobotModel(read_description(path), joints, floating_base=floating_base)


@cache
def read_description(path: Path) -> RobotDescription:
    return description_from_urdf(path.read_bytes(), str(path))


def link(
    name: str, mass: float = 1.0, com=(0, 0, 0), inertia=(0.1, 0, 0, 0.1, 0, 0.1), rpy=(0, 0, 0)
) -> str:
    """A link with an inertial; the inertia is xx, xy, xz, yy, yz, zz about the center of mass."""
    xx, xy, xz, yy, yz, zz = inertia
    return (
        f'<link name="{name}"><inertial><origin xyz="{_text(com)}" rpy="{_text(rpy)}"/>'
        f'<mass value="{mass!r}"/><inertia ixx="{xx!r}" ixy="{xy!r}" ixz="{xz!r}" iyy="{yy!r}" '
        f'iyz="{yz!r}" izz="{zz!r}"/></inertial></link>'
    )


LIMIT = '<limit lower="-3" upper="3" effort="100" velocity="10"/>'
ZERO = (0, 0, 0)


def joint(
    name, parent, child, kind="revolute", axis=(0, 0, 1), xyz=ZERO, rpy=ZERO, limit=LIMIT, extra=""
) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="{_text(xyz)}" rpy="{_text(rpy)}"/>'
        f'<parent link="{parent}"/><child link="{child}"/><axis xyz="{_text(axis)}"/>'
        f"{limit if kind != 'fixed' else ''}{extra}</joint>"
    )


def robot(*elements: str, name: str = "robot") -> str:
    return f'<robot name="{name}">{"".join(elements)}</robot>'


def two_link_arm(name: str = "two_link_arm") -> str:
    """A planar 2R arm that swings in the vertical x-z plane; its numbers are in `PLANAR`."""
    p = PLANAR
    y = (0, 1, 0)
    return robot(
        link("base"),
        link("upper", p["m1"], (p["r1"], 0, 0), (p["I1"], 0, 0, p["I1"], 0, p["I1"])),
        link("lower", p["m2"], (p["r2"], 0, 0), (p["I2"], 0, 0, p["I2"], 0, p["I2"])),
        joint("shoulder", "base", "upper", axis=y),
        joint("elbow", "upper", "lower", axis=y, xyz=(p["l1"], 0, 0)),
        name=name,
    )


PLANAR = {"m1": 2.0, "m2": 1.5, "l1": 0.4, "r1": 0.22, "r2": 0.17, "I1": 0.03, "I2": 0.02}


def random_tree(seed: int, joints: int, fixed: bool = True) -> str:
    """A tree of `joints` joints of all supported types in random poses, with physical inertias."""
    rng = np.random.default_rng(seed)
    elements = [_random_link(rng, "link0")]
    for i in range(1, joints + 1):
        kinds = ["revolute", "continuous", "prismatic"] + (["fixed"] if fixed else [])
        axis = rng.standard_normal(3) if rng.random() < 0.5 else rng.permutation([0.0, 0.0, 1.0])
        elements.append(_random_link(rng, f"link{i}"))
        links = f"link{rng.integers(i)}", f"link{i}"
        kind, axis = str(rng.choice(kinds)), axis * rng.choice([-1.0, 1.0])
        place = rng.uniform(-0.5, 0.5, 3), rng.uniform(-3.0, 3.0, 3)
        elements.append(joint(f"joint{i}", *links, kind, axis, *place))
    return robot(*elements)


def _random_link(rng: np.random.Generator, name: str) -> str:
    # A cloud of points has a physical inertia.
    points = rng.uniform(-0.2, 0.2, (6, 3))
    masses = rng.uniform(0.1, 1.0, 6)
    com = masses @ points / masses.sum()
    r = points - com
    inertia = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, r, strict=True))
    return link(name, float(masses.sum()), com, tuple(map(float, inertia[np.triu_indices(3)])))


def _text(numbers) -> str:
    return " ".join(repr(float(number)) for number in numbers)


def random_mechanism(
    seed: int, joints: int, types: Sequence[str] = tuple(POSITIONS), mimics: bool = False
) -> tuple[list[Joint], dict[str, np.ndarray]]:
    """Joints of all types in a random tree, and the pseudo-inertias of their links."""
    rng = np.random.default_rng(seed)
    result: list[Joint] = []
    inertias = {"link0": _random_pseudo_inertia(rng)}
    for i in range(1, joints + 1):
        kind = str(rng.choice(types))
        leaders = [joint.name for joint in result if joint.nq == 1]
        follows = mimics and leaders and POSITIONS[kind] == 1 and rng.random() < 0.4
        result.append(
            Joint(
                f"joint{i}",
                kind,
                f"link{rng.integers(i)}",
                f"link{i}",
                np.array(rotation_from_rpy(rng.uniform(-3.0, 3.0, 3))),
                rng.uniform(-0.5, 0.5, 3),
                rng.standard_normal(3),
                rng.standard_normal(3),
                pitch=float(rng.uniform(-0.2, 0.2)) if kind == "helical" else 0.0,
                armature=float(rng.uniform(0.0, 0.3)),
                damping=float(rng.uniform(0.0, 0.5)),
                friction=float(rng.uniform(0.0, 0.5)),
                mimic=Mimic(str(rng.choice(leaders)), *rng.uniform(-2.0, 2.0, 2))
                if follows
                else None,
            )
        )
        inertias[f"link{i}"] = _random_pseudo_inertia(rng)
    return result, inertias


def _random_pseudo_inertia(rng: np.random.Generator) -> np.ndarray:
    points = np.column_stack([rng.uniform(-0.3, 0.3, (6, 3)), np.ones(6)])
    return points.T @ np.diag(rng.uniform(0.1, 1.0, 6)) @ points
