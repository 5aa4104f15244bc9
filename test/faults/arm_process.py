"""The process of a `FaultyArm`: `python arm_process.py FOLDER`, with its specification in
FOLDER/arm.json.

It takes requests on stdin, one JSON object a line, and answers each with the number of the period
that it takes effect in. Its time is real time, but never catches up: on a busy machine it runs
slower. While answers are to be expected, a period lasts until the state is answered.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path

import rclpy
from faulty_arm import FaultyArm
from recording import FAULTY, PATIENT

# Below that of the controller, and above all else on the machine, where the system allows it.
PRIORITY = 45
# How long a period may last until its state is answered, [s].
LONGEST_PERIOD = 0.05


class ArmProcess:
    """See the file."""

    def __init__(self, folder: Path) -> None:
        specification = json.loads((folder / "arm.json").read_text())
        self.arm = FaultyArm(folder, specification["parameters"], specification["payload"])
        self._patient = True  # waits for answers
        self._paused_until = 0.0
        self._ended = False
        self._later: list[dict] = []
        self._pending = b""
        os.set_blocking(sys.stdin.fileno(), False)

    def run(self) -> None:
        arm, recording = self.arm, self.arm.recording
        due = time.monotonic()
        arm.start_clock()
        while not (self._ended or recording.full):
            self._obey()
            begin, before = time.monotonic(), arm.commands_received
            due = max(due + arm.period, begin)
            q, v = arm.q, arm.v
            stamp = arm.publish_state()
            expected = self._patient and stamp != 0 and arm.clean and before > 0
            latest = begin + (LONGEST_PERIOD if expected else 0.0)
            while True:
                now = time.monotonic()
                if now >= due and (now >= latest or arm.commands_received > before):
                    break
                answered = arm.commands_received > before
                arm.take(max((due if answered else max(due, latest)) - now, 0.0), time.monotonic)
            while arm.take(0.0, time.monotonic):
                pass
            commands = arm.commands_received - before
            arm.advance()
            flags = FAULTY * (not arm.clean) + PATIENT * expected
            recording.add_period((begin, stamp, commands, flags, q, v, arm.command, arm.torque))
            while time.monotonic() < self._paused_until:
                time.sleep(0.001)
                due = time.monotonic()

    def _obey(self) -> None:
        with contextlib.suppress(BlockingIOError):  # nothing was sent
            data = os.read(sys.stdin.fileno(), 65536)
            self._ended = data == b""
            self._pending += data
        *lines, self._pending = self._pending.split(b"\n")
        self._later += [json.loads(line) for line in lines]
        due = [request for request in self._later if request.get("at", 0) <= self.arm.ticks]
        for request in due:
            self._later.remove(request)
            request.pop("at", None)
            self._do(**request)
            print(self.arm.ticks, flush=True)

    def _do(self, do: str, **arguments: object) -> None:
        if do == "patience":
            self._patient = bool(arguments["on"])
        elif do == "pause":
            self._paused_until = time.monotonic() + float(arguments["seconds"])
        else:
            getattr(self.arm, do)(**arguments)


def main() -> int:
    rclpy.init()
    with contextlib.suppress(PermissionError):  # slower, but as right
        # By turns: threads of Fast DDS spin, and the one that they wait for must get a CPU.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    process = ArmProcess(Path(sys.argv[1]))
    print("ready", flush=True)
    try:
        process.run()
    finally:
        process.arm.destroy_node()
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
