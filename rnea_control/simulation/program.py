"""What `rnea_simulated_arm` does, once MuJoCo is known to be there."""

from __future__ import annotations

from rclpy.executors import SingleThreadedExecutor

from rnea_control.exceptions import SimulationError
from rnea_control.ros.output import unblocked_output
from rnea_control.ros.process import build, ros_process
from rnea_control.simulation.run import run_in_lockstep, run_in_real_time
from rnea_control.simulation.simulated_arm import SimulatedArm


def main() -> int:
    """Runs the simulated arm until SIGINT or SIGTERM; status 0 then, 1 for a wrong parameter."""
    with unblocked_output(), ros_process() as running:
        arm = build(SimulatedArm)
        executor = SingleThreadedExecutor()
        executor.add_node(arm)
        run = run_in_lockstep if arm.lockstep else run_in_real_time
        arm.get_logger().info(
            f"simulating {arm.model.name!r} with {arm.model.nv} joints at {1.0 / arm.period:g} Hz, "
            f"{'in lockstep' if arm.lockstep else 'in real time'}"
        )
        try:
            run(arm, executor, running)
        except SimulationError as error:
            arm.get_logger().fatal(str(error))
            return 1
        finally:
            arm.destroy_node()
    return 0
