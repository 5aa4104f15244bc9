"""Stability margins of the disturbance observer: the largest bandwidth of a joint whose inertia is
from 0.7 to 2.5 times that of its model. Prints the table of docs/tuning.md.

    python benchmark/observer_margins.py
"""

from __future__ import annotations

from table import Table

from rnea_control.control.observer_margin import MOST_INERTIA, largest_bandwidth

MOST = 1000.0  # largest bandwidth of the search [rad/s]
GAINS = (100.0, 20.0), (400.0, 40.0), (900.0, 60.0)  # p [1/s^2], d [1/s]
RATES = 1000, 500, 250  # rates of the states [Hz]
DELAYS = 0.001, 0.002, 0.004, 0.008, 0.016  # times until torques act [s]
DEFAULT_DEAD_TIME = 0.001  # dead time that is not told [s]


def margin(p: float, d: float, rate: float, delay: float) -> str:
    """The largest bandwidths with the dead time told, and with its default [rad/s]."""
    period = 1.0 / rate
    if delay < period:
        return ""
    told, untold = (
        largest_bandwidth(MOST, p, d, 1.0, MOST_INERTIA, delay, dead_time, period)
        for dead_time in (delay, DEFAULT_DEAD_TIME)
    )
    return f"{told:.0f} / {untold:.0f}"


def main() -> None:
    columns = "p, d", "states", *(f"{1e3 * delay:.0f} ms" for delay in DELAYS)
    table = Table("Largest bandwidths [rad/s]", columns)
    for p, d in GAINS:
        for rate in RATES:
            margins = (margin(p, d, rate, delay) for delay in DELAYS)
            table.rows.append((f"{p:.0f}, {d:.0f}", f"{rate} Hz", *margins))
    print(table.markdown())


if __name__ == "__main__":
    main()
