"""A policy moves the arm: 20 times a second it receives the positions and answers with targets.

python policy.py 5, for five seconds, beside a running controller
"""

import sys
import time

import numpy as np

from rnea_control.client import Arm, Refused, Stopped

PERIOD = 0.05  # time between two targets [s]
REACH = 0.1  # amplitude [rad]


def policy(home: np.ndarray, seconds: float) -> np.ndarray:
    """Targets of all joints; a stand-in for a learned policy."""
    return home + REACH * np.sin(seconds) * np.eye(len(home))[-1]


with Arm() as arm:
    home, start = arm.state.positions, time.monotonic()
    try:
        while (seconds := time.monotonic() - start) < float(sys.argv[1]):
            arm.stream(policy(home, seconds))
            time.sleep(PERIOD)
    except (Refused, Stopped) as reason:
        print(f"the arm does not follow: {reason}")
    arm.wait()
    print(f"moved by {np.round(arm.state.positions - home, 3)}; {arm.mode}")
