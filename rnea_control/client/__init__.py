"""The arm from Python: `with Arm() as arm: arm.go_to(...)`. docs/client.md"""

from rnea_control.client.arm import Arm, ModeAndReason, Pose, Report, State
from rnea_control.client.goal import Goal
from rnea_control.exceptions import Aborted, ArmError, NotThere, Refused, Stopped, TimedOut

__all__ = [
    "Aborted",
    "Arm",
    "ArmError",
    "Goal",
    "ModeAndReason",
    "NotThere",
    "Pose",
    "Refused",
    "Report",
    "State",
    "Stopped",
    "TimedOut",
]
