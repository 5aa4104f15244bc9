"""The executable `rnea_simulated_arm`: a simulated arm in real time, or in lockstep."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rclpy.executors import Executor, SingleThreadedExecutor

from rnea_control.exceptions import SimulationError
from rnea_control.extras import import_or_exit
from rnea_control.ros.process import build, ros_process, unblocked_output

if TYPE_CHECKING:
    from rnea_control.simulation.simulated_arm import SimulatedArm

LONGEST_DELAY = 0.05  # delay of the arm behind real time above which it stops catching up [s]

# Longest time for which the arm stands still until the command comes that answers a state [s].
LONGEST_PAUSE = 0.1

# Lockstep.
FIRST_RETRY = 0.1  # time without a command after which the state is sent a second time [s]
RETRY = 2.0  # time without a command after which the state is sent once more [s]
QUIET = 0.2  # time without commands after which all answers to a repeated state have arrived [s]


def in_real_time(
    arm: SimulatedArm, executor: Executor, running: Callable[[], bool]
) -> Iterator[int]:
    """Publishes a state and steps the arm once a period of real time.

    Args:
        arm: the arm.
        executor: executor of the arm's node. It takes the commands between the states; at least one
            callback for each state, even if the arm is late.
        running: returns False to end the loop.

    Yields:
        The stamp of each published state, [ns].
    """
    due = time.monotonic()
    arm.start_clock()
    answers = False  # there is a controller, which has answered the state before
    while running():
        before = arm.commands_received
        yield arm.publish_state()
        due += arm.period
        executor.spin_once(timeout_sec=max(due - time.monotonic(), 0.0))
        while (left := due - time.monotonic()) > 0.0:
            executor.spin_once(timeout_sec=left)
        if arm.waits_for_commands and answers:
            end = time.monotonic() + LONGEST_PAUSE
            while arm.commands_received == before and (rest := end - time.monotonic()) > 0.0:
                executor.spin_once(timeout_sec=rest)
            left = due - time.monotonic()
        answers = arm.commands_received > before
        arm.advance()
        if -left > LONGEST_DELAY:
            arm.get_logger().warning(
                f"the simulated arm is {-left:.3f} s behind real time and does not catch up",
                throttle_duration_sec=1.0,
            )
            due = time.monotonic()
            arm.start_clock()


def in_lockstep(
    arm: SimulatedArm, executor: Executor, running: Callable[[], bool]
) -> Iterator[int]:
    """Publishes a state, waits for the command that answers it, and only then steps the arm.

    Args:
        arm: the arm.
        executor: executor of the arm's node.
        running: returns False to end the loop.

    Yields:
        The stamp of each published state, [ns].
    """
    while running():
        retry = RETRY if arm.ticks else FIRST_RETRY
        before = arm.commands_received
        yield arm.publish_state()
        sent, sent_at = 1, time.monotonic()
        while arm.commands_received == before:
            executor.spin_once(timeout_sec=retry)
            if not running():
                return
            if arm.commands_received == before and time.monotonic() - sent_at > retry:
                arm.publish_state()
                sent, sent_at = sent + 1, time.monotonic()
        if sent > 1:
            _await_quiet(arm, executor)
        arm.advance()


def _await_quiet(arm: SimulatedArm, executor: Executor) -> None:
    """Waits for all answers to a repeated state, so that none is taken for the answer to the next
    state."""
    received, since = arm.commands_received, time.monotonic()
    while time.monotonic() - since < QUIET:
        executor.spin_once(timeout_sec=QUIET)
        if arm.commands_received != received:
            received, since = arm.commands_received, time.monotonic()


def main() -> int:
    """Runs the simulated arm until SIGINT or SIGTERM. Returns the exit status: 0, or 1 for a wrong
    parameter or a missing extra."""
    node = import_or_exit("rnea_control.simulation.simulated_arm", "rnea_simulated_arm", "sim")
    with unblocked_output(), ros_process() as running:
        arm = build(node.SimulatedArm)
        executor = SingleThreadedExecutor()
        executor.add_node(arm)
        states = in_lockstep if arm.lockstep else in_real_time
        arm.get_logger().info(
            f"simulating {arm.model.name!r} with {arm.model.nv} joints at {1.0 / arm.period:g} Hz, "
            f"{'in lockstep' if arm.lockstep else 'in real time'}"
        )
        try:
            for _ in states(arm, executor, running):
                pass
        except SimulationError as error:
            arm.get_logger().fatal(error.with_code)
            return 1
        finally:
            arm.destroy_node()
    return 0


if __name__ == "__main__":
    sys.exit(main())
