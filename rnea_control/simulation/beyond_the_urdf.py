"""Parameters that describe hardware beyond its URDF, which a simulation of the URDF lacks.

The YAML file of a real arm may declare that firmware compensates gravity, or give the inertia of
the rotors. With these values a simulated arm sags, or its wrist shakes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rnea_control.parameters.parameter import expand
from rnea_control.parameters.table import ROWS

# First parts of the names of these parameters. Their defaults describe the arm of the URDF.
FIRMWARE = ("hardware_compensates_gravity",)
BEYOND_THE_URDF = (
    *FIRMWARE,
    "measured_effort_is_trusted",
    "friction",
    "armature",
    "feedback_inertia",
    "payload",
)


def overrides(
    section: Mapping[str, object], joints: Sequence[str], groups: Sequence[str] = BEYOND_THE_URDF
) -> dict[str, object]:
    """Defaults for a simulation of the URDF, of those parameters for which a YAML file has other
    values.

    Args:
        section: values in the controller's section of the YAML file, by full name.
        joints: joints to control.
        groups: first parts of the names of parameters.
    """
    rows = [row for row in ROWS.values() if row.name.split(".")[0] in groups]
    known = expand(rows, joints)
    return {
        name: row.default
        for name, row in known.items()
        if name in section and section[name] != row.default
    }


def words(section: Mapping[str, object], overridden: Mapping[str, object], simulator: str) -> str:
    """Sentence about the overridden values; empty if there are none."""
    if not overridden:
        return ""
    grouped: dict[str, list[str]] = {}
    for name in overridden:
        grouped.setdefault(name.split(".")[0], []).append(name)
    told = []
    for group, names in grouped.items():
        if len(names) == 1:
            change = f"{section[names[0]]} -> {overridden[names[0]]}"
            told.append(f"{names[0]}: {change}".replace("True", "true").replace("False", "false"))
        else:
            told.append(f"{group}: {len(names)} values -> as the URDF says")
    return (
        f"{simulator} simulates the URDF, without the hardware that these parameters describe, so "
        f"they are overridden: {'; '.join(told)}"
    )
