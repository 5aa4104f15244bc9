"""Breaks one thing after the other while the arm is in full motion; rows.py says how it is
judged."""

from __future__ import annotations

import math
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from bench import ACTION, LATCHED, NAME, PAYLOAD_POSITION, SENTINEL, FaultBench
from dds import Process, action_process, controller, wait_for
from fast_motion import LEG, panda, path, there_and_back
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from measures import WINDOW
from rows import Bound, Row, Window
from std_msgs.msg import Bool
from surroundings import LOG_BLOCKED, disk_full

from rnea_control.control import Waypoint
from rnea_control.dynamics import Workspace, crba

# When the speed is largest, in periods after the motion's start; until its end and a bit.
FULL_SPEED = 500
MOTION = round(2000 * LEG)
SETTLED = MOTION + 500
# How long the arm is watched after a fault, in periods.
AFTER = 1600
# A stop takes up to 1.06 s; the fault must be found first.
STOP = 1200
ELBOW, WRIST = 3, 6


def _window(bench: FaultBench, fault: int, end: int) -> Window:
    bench.until(end)
    return Window(fault, end, there_and_back().positions)


# Processes.


def kill_controller(bench: FaultBench) -> Window:
    bench.move(FULL_SPEED)
    fault = bench.kill_controller()
    return _window(bench, fault, fault + AFTER)


def stop_controller(bench: FaultBench) -> Window:
    bench.move(FULL_SPEED)
    bench.arm.ask("patience", on=False)
    fault = bench.signal(bench.controller, signal.SIGSTOP)
    bench.until(fault + 600)
    bench.signal(bench.controller, signal.SIGCONT)
    return _window(bench, fault, fault + 600 + AFTER)


def kill_sentinel(bench: FaultBench) -> Window:
    begin = bench.move(FULL_SPEED)
    fault = bench.signal(bench.sentinel, signal.SIGKILL)
    return _window(bench, fault, begin + SETTLED)


def stop_sentinel(bench: FaultBench) -> Window:
    begin = bench.move(FULL_SPEED)
    fault = bench.signal(bench.sentinel, signal.SIGSTOP)
    bench.until(fault + 600)
    bench.signal(bench.sentinel, signal.SIGCONT)
    return _window(bench, fault, begin + SETTLED + 500)


def kill_both(bench: FaultBench) -> Window:
    bench.move(FULL_SPEED)
    bench.signal(bench.sentinel, signal.SIGKILL)
    fault = bench.kill_controller()
    return _window(bench, fault, fault + 300)


def interrupt(number: int) -> Callable:
    """A signal to end."""

    def run(bench: FaultBench) -> Window:
        bench.move(FULL_SPEED)
        bench.arm.ask("patience", on=False)
        fault = bench.signal(bench.controller, number)
        return _window(bench, fault, fault + AFTER)

    return run


def deactivate_node(bench: FaultBench) -> Window:
    bench.move(FULL_SPEED - 20)
    bench.arm.ask("patience", on=False)
    fault = bench.arm.ticks
    transition = Transition(id=Transition.TRANSITION_DEACTIVATE)
    bench.call(ChangeState, "change_state", transition=transition)
    return _window(bench, fault, fault + AFTER)


def kill_hardware(bench: FaultBench) -> Window:
    """The arm that comes back is held by its brakes until it gets a command, and stands where the
    motion would have ended."""
    bench.move(FULL_SPEED)
    bench.arm.kill()
    bench.executor.spin_once(timeout_sec=0.5)
    bench.start_arm()
    bench.until_held()
    bench.run(1000)
    first = int(bench.commands["tick"][0])
    return Window(first + WINDOW, bench.arm.ticks, np.array([bench.robot.start]))


# The process that serves the action.


def _action_process(bench: FaultBench, last: int = 0) -> int:
    """Another one than the last."""
    controller = bench.controller.process.pid
    wait_for(lambda: action_process(controller) not in (0, last))
    return action_process(controller)


def kill_action(by_action: bool) -> Callable:
    """Twice; it is served again afterwards."""

    def run(bench: FaultBench) -> Window:
        begin = bench.move(FULL_SPEED - 200, by_action)
        first = _action_process(bench)
        bench.arm.wait(begin + FULL_SPEED)
        fault = bench.arm.ticks
        assert fault < begin + 2 * FULL_SPEED, "the machine is too busy: killed too late"
        os.kill(first, signal.SIGKILL)
        second = _action_process(bench, first)
        os.kill(second, signal.SIGKILL)
        window = _window(bench, fault, fault + MOTION)
        _action_process(bench, second)
        bench.follow(there_and_back())
        return window

    return run


def emergency_stop(hangs: bool) -> Callable:
    """Of a motion by the action, whose process may hang."""

    def run(bench: FaultBench) -> Window:
        button = bench.node.create_publisher(Bool, f"{NAME}/emergency_stop", LATCHED)
        wait_for(button.get_subscription_count, bench.spin)
        begin = bench.move(FULL_SPEED - 200, by_action=True)
        if hangs:
            os.kill(_action_process(bench), signal.SIGSTOP)
        bench.arm.wait(begin + FULL_SPEED)
        fault = bench.arm.ticks
        button.publish(Bool(data=True))
        return _window(bench, fault, fault + AFTER)

    return run


# States.


def _break_states(
    bench: FaultBench, kind: str, periods: int, goes_on: bool, **how: object
) -> Window:
    begin = bench.move(FULL_SPEED - 100)
    fault = bench.arm.ask("state_fault", at=begin + FULL_SPEED, kind=kind, periods=periods, **how)
    end = begin + SETTLED if goes_on else fault + max(periods, 0) + AFTER
    return _window(bench, fault, end)


def states(kind: str, periods: int, goes_on: bool = False, **how: object) -> Callable:
    return lambda bench: _break_states(bench, kind, periods, goes_on, **how)


def lasting(kind: str, **how: object) -> Callable:
    """A fault of the states from full speed on, for good."""

    def run(bench: FaultBench) -> Window:
        begin = bench.move(FULL_SPEED - 100)
        fault = bench.arm.ask("state_fault", at=begin + FULL_SPEED, kind=kind, **how)
        return _window(bench, fault, fault + AFTER)

    return run


def throughout(kind: str, **how: object) -> Callable:
    """A fault of the states from before the motion to its end."""

    def run(bench: FaultBench) -> Window:
        fault = bench.arm.ask("state_fault", kind=kind, **how)
        bench.run(100)
        begin = bench.move(FULL_SPEED)
        return _window(bench, fault, begin + SETTLED)

    return run


def disturbed(kind: str, periods: int) -> Callable:
    """Another process publishes for so many periods, from full speed on."""

    def run(bench: FaultBench) -> Window:
        bench.arm.ask("patience", on=False)
        with bench.disturber(kind) as process:
            bench.run(300)
            bench.move(FULL_SPEED)
            process.stdin.write("go\n")
            process.stdin.flush()
            fault = bench.arm.ticks
            bench.run(periods)
        return _window(bench, fault, bench.arm.ticks + AFTER)

    return run


# Clocks.


def jump(seconds: float) -> Callable:
    def run(bench: FaultBench) -> Window:
        begin = bench.move(FULL_SPEED - 100)
        nanoseconds = round(1e9 * seconds)
        fault = bench.arm.ask("shift_stamps", at=begin + FULL_SPEED, nanoseconds=nanoseconds)
        return _window(bench, fault, fault + AFTER)

    return run


def pause(bench: FaultBench) -> Window:
    begin = bench.move(FULL_SPEED - 100)
    fault = bench.arm.ask("pause", at=begin + FULL_SPEED, seconds=1.0)
    return _window(bench, fault, begin + SETTLED)


def simulated_time(bench: FaultBench) -> Window:
    """In which missing states would be no fault; none come for 1 s after the attempt."""
    begin = bench.move(FULL_SPEED - 200)
    attempt = bench.arm.ticks
    bench.refused(use_sim_time=True)
    fault = bench.arm.ask("state_fault", at=begin + FULL_SPEED, kind="silent", periods=1000)
    return _window(bench, attempt, fault + 1000 + AFTER)


# The effort controller.


def effort_controller_away(periods: int, brakes: bool) -> Callable:
    def run(bench: FaultBench) -> Window:
        begin = bench.move(FULL_SPEED - 100)
        fault = bench.arm.ask("deactivate", at=begin + FULL_SPEED, brakes=brakes)
        bench.arm.ask("activate", at=fault + periods)
        return _window(bench, fault, fault + periods + AFTER)

    return run


# The mechanics.


def undisturbed(bench: FaultBench) -> Window:
    begin = bench.move(FULL_SPEED)
    return _window(bench, begin, begin + SETTLED)


def push(joint: int, torque: float, periods: int) -> Callable:
    how = {"joint": joint, "torque": torque, "periods": periods}

    def run(bench: FaultBench) -> Window:
        begin = bench.move(FULL_SPEED - 100)
        fault = bench.arm.ask("push", at=begin + FULL_SPEED, **how)
        return _window(bench, fault, begin + SETTLED)

    return run


def hard_stop(bench: FaultBench) -> Window:
    begin = bench.move(FULL_SPEED - 100)
    fault = bench.arm.ask("block", at=begin + FULL_SPEED, joint=ELBOW, room=0.02)
    bench.arm.ask("free", at=fault + 1500, joint=ELBOW)
    return _window(bench, fault, fault + 1500 + AFTER)


def payload(loaded: bool) -> Callable:
    """2 kg dropped, or attached."""

    def run(bench: FaultBench) -> Window:
        if not loaded:
            bench.arm.ask("load", loaded=True)
            bench.run(300)
        begin = bench.move(FULL_SPEED - 100)
        fault = bench.arm.ask("load", at=begin + FULL_SPEED, loaded=loaded)
        return _window(bench, fault, begin + SETTLED)

    return run


def kill_controller_with_payload(bench: FaultBench) -> Window:
    """That it was told of while it held the arm."""
    bench.arm.ask("load", loaded=True)
    bench.set(payload__mass=2.0)
    bench.run(1000)
    return kill_controller(bench)


def guided(do: str, **how: object) -> Callable:
    """Under gravity_compensation, which follows no motion: at rest."""

    def run(bench: FaultBench) -> Window:
        if do == "load":
            bench.arm.ask("load", loaded=True)
            bench.run(300)
        fault = bench.arm.ask(do, **how)
        bench.until(fault + AFTER)
        return Window(fault, fault + AFTER, np.array([bench.robot.start]))

    return run


# Trajectories.


def _to(position: np.ndarray, duration: float = 1.0):
    zero = np.zeros(7)
    return path([Waypoint(duration, position, zero, zero)])


def refused(bench: FaultBench) -> Window:
    """Half a radian beyond every upper limit."""
    begin = bench.send(_to(panda().model.upper + 0.5))
    bench.run(1500)
    return Window(begin, begin + 1200, np.array([bench.robot.start]))


def to_the_limit(bench: FaultBench) -> Window:
    """A motion that the checks let pass, to 1 mrad before the upper limit of two joints and the
    lower limit of one."""
    model = panda().model
    goal = bench.robot.start.copy()
    goal[1], goal[5] = model.lower[1] + 1e-3, model.lower[5] + 1e-3
    goal[3] = model.upper[3] - 1e-3
    motion = _to(goal, 2.0)
    begin = bench.send(motion)
    bench.until(begin + 3000)
    return Window(begin, begin + 3000, motion.positions)


def absurd(bench: FaultBench) -> Window:
    """Settings that no arm bears, one after the other."""
    joint = bench.model.joint_names[ELBOW]
    begin = bench.move(FULL_SPEED)
    fault = bench.arm.ticks
    bench.refused(
        **{
            f"gains__{joint}__p": 1e5,
            f"gains__{joint}__d": 2000.0,
            "payload__mass": 50.0,
            "gravity": [0.0, 0.0, -981.0],
            f"feedback_inertia__{joint}": 100.0,
        }
    )
    return _window(bench, fault, begin + SETTLED)


# Load.


def storm(bench: FaultBench) -> Window:
    """Gains, payload, gravity, friction and the effort limit change as fast as they can be set."""
    begin = bench.send(there_and_back(), lead=500)
    rng = np.random.default_rng(3)
    count = 0
    while bench.arm.ticks < begin + SETTLED:
        joint = rng.choice(bench.model.joint_names)
        tilt = rng.uniform(-1.0, 1.0, 2)
        gravity = [*tilt.tolist(), -float(np.sqrt(9.81**2 - tilt @ tilt))]
        choice = count % 5
        if choice == 0:
            bench.set(**{f"gains__{joint}__p": float(rng.uniform(100.0, 900.0))})
        elif choice == 1:
            bench.set(**{f"gains__{joint}__d": float(rng.uniform(20.0, 60.0))})
        elif choice == 2:
            bench.set(payload__mass=float(rng.uniform(0.0, 2.0)))
        elif choice == 3:
            bench.set(gravity=gravity)
        else:
            bench.set(**{f"friction__{joint}__coulomb": float(rng.uniform(0.0, 1.0))})
        count += 1
    bench.remarks.append(f"{count / (1e-3 * (SETTLED + 500)):.0f} changes a second")
    return _window(bench, begin, begin + SETTLED)


def spoiled(before: Callable[[str], str]) -> dict:
    """Options of a bench whose controller starts in spoiled surroundings."""

    def start(parameters: dict) -> Process:
        folder = tempfile.mkdtemp()
        return controller(parameters, before=before(str(Path(folder) / "full")))

    return {"controller_process": start}


def _law(law: str) -> dict:
    """Parameters for a law, with the stiffness that computed_torque has at the start posture."""
    robot = panda()
    M = np.zeros((7, 7))
    crba(robot.model, Workspace(robot.model), robot.start, M)
    inertia = np.ones(7) if law == "computed_torque" else M.diagonal()
    gains = {
        joint: {"p": float(400.0 * m), "d": float(40.0 * m)}
        for joint, m in zip(robot.model.joint_names, inertia, strict=True)
    }
    return {"control_law": law, "gains": gains}


def _payload_and_law(law: str, mass: float = 2.0) -> dict:
    """The controller knows of the payload that the arm has."""
    if mass == 0.0:
        return _law(law)
    link = {"mass": mass, "center_of_mass": list(PAYLOAD_POSITION)}
    return {"payload_mass": mass, "payload": link, **_law(law)}


_LAWS = ("computed_torque", "feedforward_pd", "pd", "gravity_compensation")
_PUSH = {"joint": ELBOW, "torque": 5.0, "periods": 200}
# What little friction every arm has, [Nm] at each joint.
_FRICTION = {"arm": {"joint_friction": 0.5}}
_GOES_ON = Bound(astray=0.05, goal=0.01)
# Nothing but a machine that gets busy can disturb it.
_GOES_ON_AS_EVER = Bound(astray=0.02, goal=0.002)
_STOPS = Bound(rest=STOP)
# From full speed, along the path.
_STOPS_AT_ONCE = Bound(astray=0.02, rest=300)
# While nothing is measured for a second, the error of the model, here its friction, adds up.
_STOPS_BY_THE_MODEL = Bound(rest=STOP + 300, speed=1.3)
_WITHIN = Bound()
# The flags of what a row needs.
_NEEDS = {"sentinel": SENTINEL, "action": ACTION}


def _row(key: str, title: str, run: Callable, bound: Bound, *flags: str, **options: object) -> Row:
    says = options.pop("says", "")
    needs = tuple(_NEEDS[flag] for flag in flags if flag in _NEEDS)
    return Row(key, title, run, bound, options, says, "quick" in flags, needs)


_PROCESSES = (
    _row("undisturbed", "nothing", undisturbed, Bound(astray=0.005, goal=0.002)),
    _row(
        "kill_controller",
        "controller killed (kill -9)",
        kill_controller,
        Bound(rest=1000, silence=20),
        "quick",
        "sentinel",
    ),
    _row(
        "stop_controller",
        "controller stopped for 0.6 s (SIGSTOP, SIGCONT)",
        stop_controller,
        # It may wake between its check and publishing, and send one command.
        Bound(rest=STOP, silence=20, handovers=3),
        "quick",
        "sentinel",
    ),
    _row("kill_sentinel", "sentinel killed", kill_sentinel, _GOES_ON, "sentinel"),
    _row(
        "stop_sentinel",
        "sentinel stopped for 0.6 s (SIGSTOP, SIGCONT)",
        stop_sentinel,
        _GOES_ON,
        "sentinel",
    ),
    _row("kill_both", "both killed", kill_both, Bound(speed=math.inf, beyond=math.inf), "sentinel"),
    _row("interrupt", "controller told to end (SIGINT)", interrupt(signal.SIGINT), _STOPS),
    _row("terminate", "controller told to end (SIGTERM)", interrupt(signal.SIGTERM), _STOPS),
    _row("deactivate_node", "controller deactivated (lifecycle)", deactivate_node, _STOPS, "quick"),
    _row(
        "kill_hardware",
        "hardware killed, and started again elsewhere",
        kill_hardware,
        Bound(astray=0.02),
    ),
)

_ACTION = (
    _row(
        "kill_action",
        "the action's process killed twice, goal by topic",
        kill_action(by_action=False),
        _GOES_ON_AS_EVER,
        "action",
    ),
    _row(
        "kill_action_with_goal",
        "the action's process killed twice, goal by action",
        kill_action(by_action=True),
        # A process without real-time priority takes its time to die.
        Bound(astray=0.02, rest=600),
        "action",
    ),
    _row("emergency_stop", "emergency stop", emergency_stop(hangs=False), _STOPS_AT_ONCE, "action"),
    _row(
        "emergency_stop_hanging",
        "emergency stop while the action's process hangs (SIGSTOP)",
        emergency_stop(hangs=True),
        _STOPS_AT_ONCE,
        "action",
    ),
)

_STATES = (
    _row("silent_short", "no states for 50 ms", states("silent", 50, True), _GOES_ON),
    # Longer, an arm without any friction falls from its unstable equilibrium.
    _row("silent", "no states for 0.3 s, no friction", states("silent", 300), _STOPS, "quick"),
    _row(
        "silent_long",
        "no states for 1 s",
        states("silent", 1000),
        _STOPS_BY_THE_MODEL,
        **_FRICTION,
    ),
    _row(
        "frozen",
        "the same state again and again, 1 s",
        states("frozen_stamp", 1000),
        _STOPS_BY_THE_MODEL,
        **_FRICTION,
    ),
    _row(
        "frozen_values",
        "values frozen, stamps go on, 1 s",
        states("frozen_values", 1000),
        _STOPS_BY_THE_MODEL,
        **_FRICTION,
    ),
    _row("delayed", "states 20 ms late", throughout("delayed", by=20), _GOES_ON),
    _row("dropped", "10 % of the states lost", throughout("dropped", share=0.1), _GOES_ON),
    _row(
        "nan_short",
        "NaN in one joint, 5 states",
        states("not_finite", 5, True, joint=ELBOW, value=math.nan),
        _GOES_ON,
    ),
    _row(
        "nan",
        "NaN in one joint, 1 s",
        states("not_finite", 1000, joint=ELBOW, value=math.nan),
        _STOPS_BY_THE_MODEL,
        **_FRICTION,
    ),
    _row(
        "jumping_short",
        "a joint jumps by 1 rad, 5 states",
        states("jumping", 5, True, joint=ELBOW, by=1.0),
        _GOES_ON,
    ),
    _row(
        "jumping",
        "a joint jumps by 1 rad, for good",
        lasting("jumping", joint=ELBOW, by=1.0),
        Bound(astray=0.2, rest=300),
        says="blind: .*jump",
        **_FRICTION,
    ),
    _row(
        "missing",
        "a joint is missing, 1 s",
        states("missing", 1000, joint=ELBOW),
        _STOPS_BY_THE_MODEL,
        **_FRICTION,
    ),
    _row("shuffled", "joints in another order each time", throughout("shuffled"), _GOES_ON),
    _row(
        "duplicate",
        "a second publisher of joint_states, with another arm's, 1 s",
        disturbed("duplicate", 1000),
        _GOES_ON,
        says="disturber_duplicate",
    ),
)

_COMMANDS = (
    _row(
        "second_commander",
        "a second commander publishes zeros, 1 s",
        disturbed("zeros", 1000),
        # Every other torque is the other's.
        Bound(rate=math.inf, speed=math.inf, beyond=math.inf),
        says="disturber_zeros",
    ),
    _row(
        "away",
        "effort controller deactivated for 0.3 s, keeps the torque",
        effort_controller_away(300, brakes=False),
        # The arm falls meanwhile, and what was commanded in vain comes at once when it ends.
        Bound(rate=math.inf, speed=math.inf, beyond=math.inf, rest=300 + STOP),
    ),
    _row(
        "braked",
        "effort controller deactivated for 0.5 s, brakes close",
        effort_controller_away(500, brakes=True),
        Bound(rest=500 + STOP),
    ),
)

_MODEL = (
    _row("heavy", "masses 30 % larger", undisturbed, Bound(astray=0.15), arm={"mass_scale": 1.3}),
    _row("light", "masses 30 % smaller", undisturbed, Bound(astray=0.15), arm={"mass_scale": 0.7}),
    *(
        row
        for law in _LAWS[:3]
        for row in (
            _row(
                f"dropped_{law}",
                f"2 kg dropped, {law}",
                payload(False),
                Bound(astray=0.3),
                **_payload_and_law(law),
            ),
            _row(
                f"push_{law}",
                f"5 Nm at the elbow for 0.2 s, {law}",
                push(**_PUSH),
                Bound(astray=0.3, goal=0.01 if law != "pd" else 0.3),
                **_law(law),
            ),
            _row(
                f"hard_stop_{law}",
                f"elbow blocked for 1.5 s, {law}",
                hard_stop,
                # The blow itself makes the wrist faster for a moment.
                Bound(speed=1.3, rest=1500 + STOP),
                **_law(law),
            ),
        )
    ),
    _row(
        "kill_controller_with_payload",
        "controller killed, that was told of 2 kg while it held them",
        kill_controller_with_payload,
        Bound(astray=0.02, rest=500, silence=20),
        "quick",
        "sentinel",
        payload={"center_of_mass": list(PAYLOAD_POSITION)},
    ),
    _row("attached", "2 kg attached", payload(True), Bound(astray=0.3)),
    # The model gives the wrist so little inertia that limits hardly hold it.
    _row(
        "push_wrist",
        "5 Nm at the wrist for 0.2 s",
        push(WRIST, 5.0, 200),
        Bound(rate=75.0, speed=math.inf, beyond=math.inf, rest=2000),
    ),
    *(
        _row(
            f"{key}_gravity_compensation",
            f"{what}, gravity_compensation, at rest",
            run,
            bound,
            **_payload_and_law("gravity_compensation", mass),
        )
        for key, what, run, bound, mass in (
            ("push", "5 Nm at the elbow for 0.2 s", guided("push", **_PUSH), Bound(rest=1000), 0.0),
            # The model's payload lifts the arm, as fast as the damping allows.
            ("dropped", "2 kg dropped", guided("load", loaded=False), Bound(), 2.0),
        )
    ),
)

_INPUTS = (
    _row(
        "refused",
        "a trajectory beyond the limits",
        refused,
        Bound(astray=0.001),
        says="outside its limits",
    ),
    _row(
        "to_the_limit", "a trajectory to 1 mrad before the limits", to_the_limit, Bound(astray=0.2)
    ),
    _row("forward", "stamps jump by +10 s", jump(10.0), _STOPS),
    _row("backward", "stamps jump by -10 s", jump(-10.0), _STOPS),
    _row(
        "jittering",
        "stamps jump by up to 10 s either way each time, 1 s",
        states("jittering_stamps", 1000, by=10.0),
        _STOPS,
    ),
    _row(
        "pause",
        "simulated time pauses for 1 s",
        pause,
        Bound(astray=0.005, goal=0.002),
        arm={"publish_clock": True},
        use_sim_time=True,
    ),
    _row(
        "simulated_time",
        "use_sim_time set to true, refused; then no states for 1 s",
        simulated_time,
        _STOPS_BY_THE_MODEL,
        **_FRICTION,
    ),
    _row(
        "absurd", "absurd gains, payload, gravity, inertia, all refused", absurd, _GOES_ON_AS_EVER
    ),
    _row(
        "requests",
        "requests and messages that callbacks cannot take, 20 a second, 1 s",
        disturbed("requests", 1000),
        _GOES_ON_AS_EVER,
        "quick",
        "sentinel",
        says=r"(?s)rnea_controller\]: request refused.*rnea_sentinel\]: request refused",
    ),
    _row("storm", "gains, payload, gravity, friction change", storm, Bound(astray=0.3)),
    _row(
        "garbage",
        "100 garbage messages a second on every input, 1 s",
        disturbed("garbage", 1000),
        _WITHIN,
    ),
    _row("disk_full", "disk and console full", undisturbed, _GOES_ON, **spoiled(disk_full)),
    _row("log_blocked", "console blocked", undisturbed, _GOES_ON, **spoiled(lambda _: LOG_BLOCKED)),
)

ROWS = (*_PROCESSES, *_ACTION, *_STATES, *_COMMANDS, *_MODEL, *_INPUTS)
