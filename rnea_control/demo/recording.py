"""One run of the demo: desired and measured positions, torques, and figures of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray


@dataclass(frozen=True)
class Recording:
    """One trajectory under one control law.

    Attributes:
        law: name of the control law.
        time: since the start of the trajectory, shape (n,), [s].
        desired, measured: positions, shape (n, nv), [rad] or [m].
        torque: what reached the joints, shape (n, nv), [Nm] or [N].
        latency: state-to-command latency as the controller reports it.
        sent: how the trajectory was sent.
    """

    law: str
    time: FloatArray
    desired: FloatArray
    measured: FloatArray
    torque: FloatArray
    latency: str
    sent: str = ""

    @property
    def error(self) -> FloatArray:
        """Desired minus measured positions, shape (n, nv)."""
        return self.desired - self.measured

    @property
    def rms(self) -> FloatArray:
        """Root mean square of each joint's error, shape (nv,)."""
        return np.sqrt(np.mean(self.error**2, axis=0))

    @property
    def total_rms(self) -> float:
        """Root mean square of the error over all joints."""
        return float(np.sqrt(np.mean(self.error**2)))

    @property
    def largest(self) -> FloatArray:
        """Each joint's largest error, shape (nv,)."""
        return np.abs(self.error).max(axis=0)

    @property
    def peak_torque(self) -> FloatArray:
        """Each joint's largest torque, shape (nv,)."""
        return np.abs(self.torque).max(axis=0)
