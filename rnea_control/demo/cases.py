"""The runs that the demo compares: two control laws, on an arm that is its URDF and on one that is
not."""

from __future__ import annotations

from dataclasses import dataclass

from rnea_control.control import ControlLaw

# Parameters of rnea_simulated_arm for the arm that is not its URDF. The controller has the URDF.
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
    """One run of the demo."""

    law: ControlLaw
    exact: bool  # the arm is its URDF

    @property
    def law_name(self) -> str:
        """Name of the law in sentences."""
        return LAW_NAMES[self.law]

    @property
    def model_name(self) -> str:
        """How right the controller's model is."""
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
# The run whose positions, torques and film are shown.
SHOWN = Case(ControlLaw.computed_torque, exact=True)
