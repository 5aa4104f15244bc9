"""Cases of the demo: two control laws, each with an arm that equals its URDF and with an arm that
differs."""

from __future__ import annotations

from dataclasses import dataclass

from rnea_control.control import ControlLaw

# Parameters of rnea_simulated_arm for the arm that differs from the URDF of the controller.
OTHER_ARM = {
    "mass_scale": 1.1,  # factor on all masses and inertias
    "joint_armature": 0.1,  # rotor inertia at each joint [kg m^2] or [kg]
}
LAW_NAMES = {
    ControlLaw.pd_gravity: "PD with gravity compensation",
    ControlLaw.computed_torque: "computed torque",
}


@dataclass(frozen=True)
class Case:
    """Control law and model of a run."""

    law: ControlLaw
    exact: bool  # True if the arm equals its URDF

    @property
    def law_name(self) -> str:
        """Name of the law in sentences."""
        return LAW_NAMES[self.law]

    @property
    def model_name(self) -> str:
        """Name of the controller's model in sentences."""
        return "exact model" if self.exact else "wrong model"

    @property
    def title(self) -> str:
        """Name of the run in the picture and in sentences."""
        return f"{self.law_name}, {self.model_name}"

    @property
    def errors(self) -> dict[str, float]:
        """Parameters of the simulated arm by which it differs from its URDF."""
        return {} if self.exact else OTHER_ARM


CASES = tuple(Case(law, exact) for exact in (True, False) for law in LAW_NAMES)
# Case whose positions, torques and film are shown.
SHOWN = Case(ControlLaw.computed_torque, exact=True)
