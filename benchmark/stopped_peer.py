"""How long a publisher waits for another that is stopped, as by SIGSTOP, a debugger or a kill.

Two processes publish on one topic to a third. One of them is stopped for `STOP` again and again, at
any moment, and the other says when its own `publish` took longer than `LONG`.

    python stopped_peer.py [stops of each case]
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

from lost_answers import OUR_PROFILE, PROFILE_VARIABLES, with_profile
from table import Table, show

# Both stay on this computer.
CASES = {
    "shared memory, the default": {
        **dict.fromkeys(PROFILE_VARIABLES, ""),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
    },
    "UDP: our profile": with_profile(OUR_PROFILE),
}
STOPS = 100
# How long one is stopped, between how long it then runs, and what is long for a publish, [s].
STOP, RUNS, LONG = 0.3, (0.02, 0.05), 0.1
# Until all have found each other, [s].
START = 3.0
# Periods of the one that is stopped, and of the other, [s].
BUSY, CALM = 0.0005, 0.002
READER = """
import rclpy
from std_msgs.msg import Float64MultiArray
rclpy.init()
node = rclpy.create_node("reader")
node.create_subscription(Float64MultiArray, "torques", lambda message: None, 1)
rclpy.spin(node)
"""
PUBLISHER = f"""
import sys, time, rclpy
from std_msgs.msg import Float64MultiArray
rclpy.init()
publisher = rclpy.create_node("publisher").create_publisher(Float64MultiArray, "torques", 1)
message = Float64MultiArray(data=[0.0] * 7)
while True:
    before = time.monotonic()
    publisher.publish(message)
    taken = time.monotonic() - before
    if taken > {LONG}:
        print(taken, flush=True)
    time.sleep(float(sys.argv[1]))
"""


def waits(stops: int, environment: dict[str, str]) -> list[float]:
    """The long calls of `publish` of the one that goes on, [s]."""
    with ExitStack() as stack:

        def start(code: str, *arguments: str) -> subprocess.Popen[str]:
            command = [sys.executable, "-c", code, *arguments]
            process = subprocess.Popen(
                command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        start(READER)
        stopped, other = start(PUBLISHER, str(BUSY)), start(PUBLISHER, str(CALM))
        time.sleep(START)
        for _ in range(stops):
            time.sleep(random.uniform(*RUNS))
            stopped.send_signal(signal.SIGSTOP)
            time.sleep(STOP)
            stopped.send_signal(signal.SIGCONT)
        time.sleep(LONG)
        other.kill()
        return [float(line) for line in other.communicate()[0].splitlines()]


def tables(stops: int = STOPS) -> list[Table]:
    """With and without shared memory."""
    table = Table(
        f"While another publisher is stopped for {STOP} s, {stops} times",
        ("transport", f"publish took over {LONG} s", "longest publish"),
    )
    for title, environment in CASES.items():
        found = waits(stops, environment)
        longest = f"{1e3 * max(found):.0f} ms" if found else f"below {1e3 * LONG:.0f} ms"
        table.rows.append((title, str(len(found)), longest))
    return [table]


if __name__ == "__main__":
    show(tables(int(sys.argv[1]) if len(sys.argv) > 1 else STOPS))
