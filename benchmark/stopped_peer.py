"""Time that a publisher waits for another publisher that is stopped, as by SIGSTOP or a debugger.

Two processes publish on one topic to a third. The first process is repeatedly stopped for `STOP` at
random moments; the second reports calls of its own `publish` that took longer than `LONG`.

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
STOP = 0.3  # length of a stop [s]
RUNS = (0.02, 0.05)  # range of the time between two stops [s]
LONG = 0.1  # duration from which a call of `publish` is reported [s]
START = 3.0  # time for the discovery of all processes [s]
BUSY = 0.0005  # period of the publisher that is stopped [s]
CALM = 0.002  # period of the other publisher [s]
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
