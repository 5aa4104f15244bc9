"""Second processes of the same names, and messages of others on the topics of controller and
sentinel: every process is real, and a message counts for its publisher."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import rclpy
from dds import ARM, JOINTS, LATCHED, Process, controller, ros, trajectory, wait_for
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.msg import TransitionEvent
from loopback import PROFILE
from rcl_interfaces.msg import ParameterEvent
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Float64MultiArray
from test_sentinel import PARAMETERS, RATE, TIMEOUT, Bench

from rnea_control.ros.middleware import PROFILES

DOMAIN = 95


@pytest.fixture(autouse=True)
def product_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Participants announce themselves as those of a robot do."""
    for variable in PROFILES:
        monkeypatch.setenv(variable, PROFILE)


def sentinel(**changes: object) -> Process:
    return Process("rnea_control.sentinel.executable", {**PARAMETERS, **changes})


@pytest.fixture
def changes() -> dict[str, object]:
    """Of the sentinel's parameters."""
    return {}


@pytest.fixture
def bench(changes: dict[str, object]) -> Iterator[Bench]:
    with (
        ros(DOMAIN),
        Process("rnea_control.simulation.executable", {**ARM, "rate": RATE}) as arm,
        sentinel(**changes) as guard,
    ):
        bench = Bench(arm, guard)
        bench.wait(lambda: bench.states and bench.modes)
        try:
            yield bench
        finally:
            bench.destroy()
        assert guard.stop() in (0, -signal.SIGKILL)
        assert "Traceback" not in guard.output, guard.output


@pytest.fixture
def impostor() -> Iterator[Node]:
    """A node in another participant, with the controller's name."""
    context = Context()
    context.init(domain_id=DOMAIN)
    node = Node("rnea_controller", context=context)
    yield node
    node.destroy_node()
    context.try_shutdown()


def event(label: str, reason: str = "") -> TransitionEvent:
    message = TransitionEvent()
    message.goal_state.label, message.transition.label = label, reason
    return message


def killed_in_motion(bench: Bench, process: Process) -> None:
    """The sentinel takes the arm of a controller that is killed in motion, in time."""
    bench.wait(lambda: bench.trajectories.get_subscription_count() > 0)
    bench.trajectories.publish(trajectory(JOINTS, [(1.0, [1.2, -1.2], [0.0, 0.0])]))
    bench.wait(lambda: bench.speed > 0.8)
    process.process.send_signal(signal.SIGKILL)
    before = len(bench.states)
    bench.commanded()
    assert len(bench.states) - before < 3 * TIMEOUT * RATE
    bench.rests()


# A second start.


def refused(process: Process, words: str) -> None:
    """A process ends by itself, with an error that has these words."""
    wait_for(lambda: process.process.poll() is not None)
    assert process.process.returncode == 1, process.output
    assert words in process.output


def test_second_controller_refuses_to_start_and_says_where_the_first_runs(bench: Bench) -> None:
    with controller(PARAMETERS) as first:
        bench.guarded()
        with controller(PARAMETERS) as second:
            where = f"another /rnea_controller runs: 'process {first.process.pid} on "
            refused(second, where)
            assert "another name or namespace" in second.output
        bench.run(round(RATE))
        assert first.process.poll() is None
        assert bench.modes == ["idle", "arming", "guarding"], bench.sentinel.output
        killed_in_motion(bench, first)


@pytest.mark.explores
def test_second_sentinel_refuses_to_start(bench: Bench) -> None:
    with controller(PARAMETERS) as process:
        bench.guarded()
        with sentinel() as second:
            bench.wait(lambda: second.process.poll() is not None)
            refused(second, f"another /rnea_sentinel runs: 'process {bench.sentinel.process.pid} ")
        assert "idle" not in bench.modes[1:]  # the second one has said nothing
        killed_in_motion(bench, process)


@pytest.mark.explores
def test_controller_starts_again_after_it_was_killed(bench: Bench) -> None:
    """The killed one is still in the graph, for its lease of 20 s."""
    with controller(PARAMETERS) as first:
        bench.guarded()
        first.process.kill()
        first.process.wait()
        with controller(PARAMETERS) as second:
            second.said("guarded: the sentinel commands the arm")
            names = bench.node.get_publishers_info_by_topic("/rnea_controller/process")
            assert len(names) == 2  # the dead one among them
            bench.resume()
            bench.guarded()
            killed_in_motion(bench, second)


@pytest.mark.explores
def test_controller_that_was_stopped_leaves_the_arm_to_one_started_meanwhile(bench: Bench) -> None:
    """As after Ctrl-Z in the terminal of a launch, another launch, and `fg`. It must discover the
    other one first."""
    with controller(PARAMETERS) as first:
        bench.guarded()
        for each in (first, bench.sentinel):
            each.process.send_signal(signal.SIGSTOP)
        with controller(PARAMETERS) as second:
            second.said("holding")
            for each in (first, bench.sentinel):
                each.process.send_signal(signal.SIGCONT)
            bench.run(round(5.0 * RATE))
            assert second.process.poll() is None
            assert "guarded" in first.output
            assert "the sentinel commands no more" not in first.output, first.output


@pytest.mark.explores
def test_of_two_that_start_at_once_one_goes_on(bench: Bench) -> None:
    with controller(PARAMETERS) as one, controller(PARAMETERS) as other:
        both = (one, other)
        wait_for(lambda: any(each.process.poll() is not None for each in both))
        (ended,) = [each for each in both if each.process.poll() is not None]
        assert "another /rnea_controller" in ended.output and ended.process.returncode == 1
        (left,) = [each for each in both if each is not ended]
        bench.guarded()
        left.said("holding")
        bench.run(round(RATE))
        assert left.process.poll() is None, left.output


# Messages of others.


@pytest.mark.explores
@pytest.mark.usefixtures("publishers_are_known")
def test_mode_and_parameters_of_another_change_nothing(bench: Bench, impostor: Node) -> None:
    """They come from a node with the controller's name, before it starts and while it commands."""
    modes = impostor.create_publisher(TransitionEvent, "rnea_controller/mode", LATCHED)
    name = "rnea_controller/parameters_in_force"
    in_force = impostor.create_publisher(ParameterEvent, name, LATCHED)
    wait_for(lambda: modes.get_subscription_count() and in_force.get_subscription_count())

    def lie() -> None:
        values = {"joints": JOINTS, "command_lease": 900.0, "command_timeout": 1000.0}
        values |= {"stiffness": 1e9, "velocity_limit_factor": 1e9}
        changed = [Parameter(k, value=v).to_parameter_msg() for k, v in values.items()]
        for parameters in (changed, changed[1:], []):  # without joints too
            in_force.publish(
                ParameterEvent(node="\x1b[31m\n[FATAL]", changed_parameters=parameters)
            )
        modes.publish(event("powerless", "\x1b[31m\n[FATAL]"))
        modes.publish(event("waiting"))

    lie()
    with controller(PARAMETERS) as process:
        bench.guarded()
        lie()
        bench.run(round(RATE))
        assert bench.modes == ["idle", "arming", "guarding"], bench.sentinel.output
        times = bench.parameters("command_timeout", "stiffness", "velocity_limit_factor")
        assert times == [TIMEOUT, 100.0, 1.5]
        killed_in_motion(bench, process)
    assert "\x1b[31m" not in bench.sentinel.output
    assert not any(line.startswith("[FATAL]") for line in bench.sentinel.output.splitlines())


@pytest.mark.explores
@pytest.mark.usefixtures("publishers_are_known")
def test_second_commander_of_the_same_name_is_told_from_the_first(
    bench: Bench, impostor: Node
) -> None:
    stranger = bench.publisher(impostor)
    with controller(PARAMETERS) as process:
        bench.guarded()

        def named() -> bool:
            stranger.publish(Float64MultiArray(data=[float("nan"), 0.0]))  # moves nothing
            return "a second /rnea_controller (GID " in bench.finding

        bench.wait(named)
        assert bench.modes == ["idle", "arming", "guarding"], bench.sentinel.output
        process.said("is published by /rnea_controller, /rnea_controller (GID ")


@pytest.mark.explores
@pytest.mark.usefixtures("publishers_are_known")
def test_controller_follows_the_sentinel_that_it_heard_first(bench: Bench, impostor: Node) -> None:
    """Another node says that it revokes, commands and has let go, on the sentinel's topic."""
    modes = impostor.create_publisher(TransitionEvent, "rnea_sentinel/mode", LATCHED)
    with controller(PARAMETERS) as process:
        bench.guarded()
        wait_for(lambda: modes.get_subscription_count() > 2)  # node, loop and bench
        bench.modes.clear()
        for label in ("revoking", "commanding", "powerless") * 3:
            modes.publish(event(label, "\x1b[31m\n[FATAL] forged"))
            bench.run(round(0.1 * RATE))
        process.said("publishes rnea_sentinel/mode too, and is ignored")
        assert "guarded" not in process.output and "powerless" not in process.output
        assert "\x1b[31m" not in process.output


@pytest.mark.explores
def test_forged_presence_of_a_dead_process_is_quoted(bench: Bench, impostor: Node) -> None:
    publisher = impostor.create_publisher(DiagnosticStatus, "rnea_controller/process", LATCHED)
    publisher.publish(DiagnosticStatus(message="started", hardware_id="\x1b[31m\n[FATAL] forged"))
    with controller(PARAMETERS) as process:
        refused(process, "another /rnea_controller runs: '\\x1b[31m\\n[FATAL] forged'")
    assert not bench.commands


@pytest.mark.explores
@pytest.mark.parametrize("changes", [{"use_sim_time": True}])
def test_bad_clock_ends_no_loop(bench: Bench) -> None:
    clock = bench.node.create_publisher(Clock, "/clock", 10)
    wait_for(clock.get_subscription_count)
    good, bad = Clock(), Clock()
    good.clock.sec, bad.clock.sec = 1, -1
    bench.commander = bench.hold
    for message in (good, bad, b"", b"\x00\x01\x00\x00\x05"):
        clock.publish(message)
        bench.run(round(0.2 * RATE))
    bench.wait(lambda: "messages were ignored, the last one as /clock" in bench.sentinel.output)
    bench.take()
    assert "has failed" not in bench.sentinel.output


@pytest.mark.explores
def test_stranger_does_not_keep_a_sentinel_from_guarding(bench: Bench) -> None:
    """A publisher of commands with another name comes first."""
    context = rclpy.create_node("panel")
    publisher = bench.publisher(context)
    bench.wait(lambda: publisher.get_subscription_count() > 1)
    publisher.publish(Float64MultiArray(data=[0.0, 0.0]))
    with controller(PARAMETERS) as process:
        bench.guarded()
        killed_in_motion(bench, process)
    context.destroy_node()
