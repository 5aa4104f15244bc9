"""The tick without the middleware: from the bytes of a state to those of its command, and what it
allocates."""

from __future__ import annotations

import time
from array import array

import numpy as np
from benchmark_robots import PANDA_JOINTS, START, load
from measuring import CALLS, allocated, medians
from rclpy.clock import ROSClock
from rclpy.logging import get_logger
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from table import Table, show

from rnea_control.control import Controller, ControllerSettings, Gains, Waypoint
from rnea_control.dynamics import Workspace, gravity, rnea
from rnea_control.loop.handover import Handover, HandoverTimes
from rnea_control.loop.state_intake import StateIntake
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.python_ticks import LoopSettings
from rnea_control.ros.effort_command import Command


def tables() -> list[Table]:
    """Times, and allocations."""
    model = load("panda", PANDA_JOINTS)
    controller = Controller(model, ControllerSettings(Gains.uniform(7, 400.0, 40.0)))
    command = Command(7)
    loop = ControlLoop(
        controller,
        command,
        Handover(HandoverTimes.of_controller()),
        LoopSettings(1e9, 1e9),
        get_logger("benchmark"),
        ROSClock(),
    )
    zeros = array("d", bytes(56))
    state = JointState(name=PANDA_JOINTS, position=array("d", START), velocity=zeros)
    state.header.frame_id = "base_link"
    state.header.stamp.sec = 1000
    data = serialize_message(state)
    loop.start()
    loop.ticks.tick(data)
    target = [Waypoint(10.0, np.array(START) + 0.1, np.zeros(7), np.zeros(7))]
    controller.follow(0.0, target, 0.0)
    decoder = StateIntake(PANDA_JOINTS, 0.1)
    q_measured, v_measured = decoder.bits.view(np.float64)

    def bytes_to_bytes() -> bytes:
        decoder.decode(data)
        controller.step(0.0, q_measured, v_measured, command.torque)
        return command.publish()

    functions = {
        "decode": (decoder.decode, (data,)),
        "Controller.step": (controller.step, (0.0, q_measured, v_measured, command.torque)),
        "encode": (command.publish, ()),
        "bytes to bytes": (bytes_to_bytes, ()),
        "record statistics": (loop.arm_loop.record, (time.monotonic(), 0)),
        "ControlLoop.tick": (loop.ticks.tick, (data,)),
    }
    times = medians(functions)
    table = Table("The bare tick, bytes to bytes, panda, 7 joints", ("part", "us"))
    table.rows = [(name, f"{value:.2f}") for name, value in times.items()]
    table.notes.append(
        "Bytes to bytes: decode, step and encode. ControlLoop.tick is that with lock, clocks, "
        "checks of the stamps and statistics."
    )

    ws, tau = Workspace(model), np.zeros(7)
    q, v, a = (row.copy() for row in np.random.default_rng(0).uniform(-1.0, 1.0, (3, 7)))
    functions["rnea"] = (rnea, (model, ws, q, v, a, tau))
    functions["gravity"] = (gravity, (model, ws, q, tau))
    memory = Table(
        f"Allocated over {CALLS} calls",
        ("function", "bytes held", "bytes at the peak", "page faults"),
    )
    for name, (function, arguments) in functions.items():
        counts = allocated(lambda f=function, x=arguments: f(*x))
        memory.rows.append((name, *(str(count) for count in counts.values())))
    memory.notes.append(
        "At the peak: the bytes of the command, and Python's own numbers and slices of an instant."
    )
    return [table, memory]


if __name__ == "__main__":
    show(tables())
