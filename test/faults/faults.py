"""Breaks one thing after the other while the arm is in full motion; rows.py says how it is
judged."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from signal import SIGCONT, SIGINT, SIGKILL, SIGSTOP, SIGTERM
from typing import NamedTuple

import numpy as np
from bench import NAME, PAYLOAD_POSITION, STREAMED_SPEED, FaultBench
from controllers import JOINT_SPACE
from dds import LATCHED, Process, action_process, controller, wait_for
from fast_motion import LEG, READY, TIP, panda, path, there_and_back
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from measures import WINDOW
from rows import Bound, Row, Window
from std_msgs.msg import Bool
from surroundings import LOG_BLOCKED, disk_full

from rnea_control.control import Waypoint
from rnea_control.dynamics import Workspace, crba

Run = Callable[[FaultBench], Window]

# When the speed is largest, and until the end of the motion and a bit, in periods.
FULL_SPEED, SETTLED = 500, round(2000 * LEG) + 500
# How long the arm is watched after a fault, in periods.
AFTER = 1600
# A stop takes up to 1.06 s; the fault must be found first.
STOP = 1200
# An arm that does not obey gets no torque any more.
LET_GO = 250
ELBOW, WRIST = 3, 6


def _window(bench: FaultBench, fault: int, end: int) -> Window:
    bench.until(end)
    return Window(fault, end, there_and_back().positions)


def _at_rest(bench: FaultBench, begin: int, end: int) -> Window:
    bench.until(end)
    return Window(begin, end, np.array([bench.robot.start]))


def undisturbed(bench: FaultBench) -> Window:
    begin = bench.move(FULL_SPEED)
    return _window(bench, begin, begin + SETTLED)


def arm_does(
    do: str, goes_on: bool = False, lasts: int = 0, undo: dict | None = None, **how: object
) -> Run:
    """The arm does something at full speed.

    Args:
        do: a request to its process.
        goes_on: whether the motion is expected to end.
        lasts: for how many periods it has consequences.
        undo: the request that ends them, if they do not by themselves.
        how: arguments of the request.
    """

    def run(bench: FaultBench) -> Window:
        begin = bench.move(FULL_SPEED - 100)
        fault = bench.arm.ask(do, at=begin + FULL_SPEED, **how)
        if undo:
            bench.arm.ask(at=fault + lasts, **undo)
        return _window(bench, fault, begin + SETTLED if goes_on else fault + lasts + AFTER)

    return run


def states(kind: str, periods: int, goes_on: bool = False, **how: object) -> Run:
    """The states are broken from full speed on."""
    return arm_does("state_fault", goes_on, periods, kind=kind, periods=periods, **how)


def throughout(kind: str, **how: object) -> Run:
    """A fault of the states from before the motion to its end."""

    def run(bench: FaultBench) -> Window:
        fault = bench.arm.ask("state_fault", kind=kind, **how)
        bench.run(100)
        begin = bench.move(FULL_SPEED)
        return _window(bench, fault, begin + SETTLED)

    return run


# Processes.


def signalled(who: str, number: int, resumed: int = 0) -> Run:
    """The controller or the sentinel gets a signal, and goes on after so many periods."""

    def run(bench: FaultBench) -> Window:
        begin, process = bench.move(FULL_SPEED), getattr(bench, who)
        if who == "controller":
            bench.arm.ask("patience", on=False)
        fault = bench.signal(process, number)
        if resumed:
            bench.until(fault + resumed)
            bench.signal(process, SIGCONT)
        end = fault + AFTER if who == "controller" else begin + SETTLED
        return _window(bench, fault, end + resumed)

    return run


def pause_while_arming(bench: FaultBench) -> Window:
    """The controller stands still for 30 ms while the sentinel, which was paused too, would not
    take the arm."""
    begin = bench.move(FULL_SPEED - 200)
    bench.arm.ask("patience", on=False)
    woken = bench.signal(bench.sentinel, SIGSTOP) + 600
    bench.until(woken)
    bench.signal(bench.sentinel, SIGCONT)
    bench.until(woken + 100)
    fault = bench.signal(bench.controller, SIGSTOP)
    bench.until(fault + 30)
    bench.signal(bench.controller, SIGCONT)
    return _window(bench, fault, begin + SETTLED)


def kill_both(bench: FaultBench) -> Window:
    bench.move(FULL_SPEED)
    bench.signal(bench.sentinel, SIGKILL)
    bench.arm.ask("patience", on=False)
    fault = bench.signal(bench.controller, SIGKILL)
    return _window(bench, fault, fault + 300)


def stop_all(bench: FaultBench) -> Window:
    """Everything stands still for a second, and the controller is the last to go on."""
    bench.move(FULL_SPEED)
    bench.arm.ask("patience", on=False)
    bench.arm.ask("pause", seconds=1.0)
    for process in (bench.sentinel, bench.controller):
        bench.signal(process, SIGSTOP)
    fault = bench.arm.ask("shift_stamps", nanoseconds=10**9)  # answered when the pause is over
    bench.signal(bench.sentinel, SIGCONT)
    bench.until(bench.arm.ticks + 20)
    bench.signal(bench.controller, SIGCONT)
    return _window(bench, fault, fault + AFTER)


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
    bench.spin(0.5)
    bench.start_arm()
    bench.until_held()
    bench.run(1000)
    first = int(bench.commands["tick"][0])
    return _at_rest(bench, first + WINDOW, bench.arm.ticks)


def disturbed(kind: str, periods: int) -> Run:
    """Another process publishes for so many periods, from full speed on."""

    def run(bench: FaultBench) -> Window:
        bench.arm.ask("patience", on=False)
        with bench.helper("disturber.py", kind) as disturber:
            bench.run(300)
            bench.move(FULL_SPEED)
            disturber.tell("go")
            fault = bench.arm.ticks
            bench.run(periods)
        return _window(bench, fault, bench.arm.ticks + AFTER)

    return run


# The process that serves the action.


def _action_process(bench: FaultBench, last: int = 0) -> int:
    """Another one than the last."""
    controller = bench.controller.process.pid
    wait_for(lambda: action_process(controller) not in (0, last))
    return action_process(controller)


def kill_action(by_action: bool) -> Run:
    """Twice; it is served again afterwards."""

    def run(bench: FaultBench) -> Window:
        begin = bench.move(FULL_SPEED - 200, by_action)
        first = _action_process(bench)
        bench.arm.wait(begin + FULL_SPEED)
        fault = bench.arm.ticks
        assert fault < begin + 2 * FULL_SPEED, "the machine is too busy: killed too late"
        os.kill(first, SIGKILL)
        second = _action_process(bench, first)
        os.kill(second, SIGKILL)
        window = _window(bench, fault, fault + SETTLED - FULL_SPEED)
        _action_process(bench, second)
        bench.follow(there_and_back(), lead=1000)  # on a busy machine, it is known late
        return window

    return run


def emergency_stop(hangs: bool) -> Run:
    """Of a motion by the action, whose process may hang."""

    def run(bench: FaultBench) -> Window:
        button = bench.node.create_publisher(Bool, f"{NAME}/emergency_stop", LATCHED)
        wait_for(button.get_subscription_count, bench.spin)
        begin = bench.move(FULL_SPEED - 200, by_action=True)
        if hangs:
            os.kill(_action_process(bench), SIGSTOP)
        bench.arm.wait(begin + FULL_SPEED)
        fault = bench.arm.ticks
        button.publish(Bool(data=True))
        return _window(bench, fault, fault + AFTER)

    return run


# Streams of joint targets, of poses, and of a planner's gains.

JOINTS, POSES, PLANNER = "streamer.py", "pose_streamer.py", "planner.py"
SETTINGS = "tip_settings_streamer.py"


def _streamed(bench: FaultBench, fault: int, end: int, script: str) -> Window:
    """The joints have a path to leave under joint targets and a planner's gains."""
    bench.until(end)
    return Window(fault, end) if script == POSES else _window(bench, fault, end)


def streamed(
    change: str = "",
    signal: int = 0,
    resumed: int = 0,
    lasts: int = 0,
    goes_on: bool = False,
    disturber: str = "",
    second: str = "",
    script: str = JOINTS,
) -> Run:
    """A stream at full speed is broken.

    Args:
        change: line for the sender.
        signal: signal for the sender.
        resumed: period after the signal in which the sender goes on.
        lasts: period after the change in which the targets are as before.
        goes_on: True if the arm must follow the stream at the end.
        disturber: kind of a process of disturber.py that publishes, too.
        second: name of a second sender of the same script.
        script: of the sender.
    """

    def run(bench: FaultBench) -> Window:
        with ExitStack() as stack:
            if disturber or second:
                other = ("disturber.py", disturber) if disturber else (script, second)
                other = stack.enter_context(bench.helper(*other))
            sender = stack.enter_context(bench.stream(script))
            fault = bench.arm.ticks
            if change:
                sender.tell(change)
            if signal:
                sender.process.send_signal(signal)
            if disturber or second:
                other.tell("go")
            if lasts or resumed:
                bench.until(fault + lasts + resumed)
                sender.tell("as before")
                sender.process.send_signal(SIGCONT)
            window = _streamed(bench, fault, fault + lasts + resumed + 2 * AFTER, script)
            if goes_on and bench.speed(AFTER) < STREAMED_SPEED[script]:
                bench.broken.append("the stream is not followed any more")
        return window

    return run


def beside_poses(
    what: str, change: str = "", signal: int = 0, lasts: int = 0, second: str = ""
) -> Run:
    """What may be set while poses are followed is broken; the poses go on.

    Args:
        what: stiffness or wrench.
        change: line for its sender.
        signal: signal for its sender.
        lasts: period after the change in which the messages are as before.
        second: name of a second sender.
    """

    def run(bench: FaultBench) -> Window:
        with ExitStack() as stack:
            senders = [stack.enter_context(bench.helper(SETTINGS, what))]
            if second:
                senders.append(stack.enter_context(bench.helper(SETTINGS, what, second)))
            stack.enter_context(bench.stream(POSES))
            senders[0].tell("go")
            bench.run(1000)
            fault = bench.arm.ticks
            if change:
                senders[0].tell(change)
            if signal:
                senders[0].process.send_signal(signal)
            if second:
                senders[1].tell("go")
            if lasts:
                bench.until(fault + lasts)
                senders[0].tell("as before")
            bench.until(fault + lasts + 2 * AFTER)
            if bench.speed(AFTER) < STREAMED_SPEED[POSES]:
                bench.broken.append("the poses are not followed any more")
        return Window(fault, fault + lasts + 2 * AFTER)

    return run


def stream_to_the_limit(bench: FaultBench) -> Window:
    with bench.stream() as sender:
        fault = bench.arm.ticks
        sender.tell("limit")
        bench.until(fault + 2 * AFTER)
        return Window(fault, fault + 2 * AFTER)


def stop_in_stream(script: str) -> Run:
    """The emergency stop is pressed and released, and the stream goes on."""

    def run(bench: FaultBench) -> Window:
        button = bench.node.create_publisher(Bool, f"{NAME}/emergency_stop", LATCHED)
        wait_for(button.get_subscription_count, bench.spin)
        with bench.stream(script):
            fault = bench.arm.ticks
            button.publish(Bool(data=True))
            bench.until(fault + AFTER)
            button.publish(Bool(data=False))
            return _streamed(bench, fault, fault + 2 * AFTER, script)

    return run


def kill_controller_in_stream(script: str) -> Run:
    def run(bench: FaultBench) -> Window:
        with bench.stream(script):
            bench.arm.ask("patience", on=False)
            fault = bench.signal(bench.controller, SIGKILL)
            return _streamed(bench, fault, fault + AFTER, script)

    return run


# The mechanics.


def _load(bench: FaultBench) -> None:
    bench.arm.ask("load", loaded=True)
    bench.run(300)


def drop_payload(bench: FaultBench) -> Window:
    _load(bench)
    return arm_does("load", goes_on=True, loaded=False)(bench)


def kill_controller_with_payload(bench: FaultBench) -> Window:
    """That it was told of while it held the arm."""
    _load(bench)
    bench.set(payload__mass=2.0)
    bench.run(1000)
    return signalled("controller", SIGKILL)(bench)


def reversed_elbow(killed: bool) -> Run:
    """The torque of the elbow gets the wrong sign at full speed, and the controller is killed at
    once or not; whoever has the arm then must let go of it."""

    def run(bench: FaultBench) -> Window:
        begin = bench.move(FULL_SPEED - 100)
        bench.arm.ask("patience", on=False)
        fault = bench.arm.ask("reverse", at=begin + FULL_SPEED, joint=ELBOW)
        if killed:
            bench.until(fault)
            bench.signal(bench.controller, SIGKILL)
        bench.until(fault + AFTER)
        commands = bench.commands
        late = commands["torque"][commands["tick"] > fault + LET_GO]
        if len(late) and np.abs(late).max() > 0.0:
            bench.broken.append(f"{np.abs(late).max():.3g} Nm {LET_GO} ms after")
        # What the arm does without a torque and without brakes is not looked at.
        return Window(fault, fault + LET_GO, there_and_back().positions)

    return run


def guided(do: str, **how: object) -> Run:
    """Under gravity_compensation, which follows no motion: at rest."""

    def run(bench: FaultBench) -> Window:
        if do == "load":
            _load(bench)
        fault = bench.arm.ask(do, **how)
        return _at_rest(bench, fault, fault + AFTER)

    return run


# What the controller is asked for.


def refused(bench: FaultBench) -> Window:
    """Half a radian beyond every upper limit."""
    zero = np.zeros(7)
    begin = bench.send(path([Waypoint(1.0, panda().model.upper + 0.5, zero, zero)]))
    return _at_rest(bench, begin, begin + 1200)


def to_the_limit(bench: FaultBench) -> Window:
    """A motion that the checks let pass, to 1 mrad before the upper limit of one joint and the
    lower limit of two."""
    model, goal, zero = panda().model, bench.robot.start.copy(), np.zeros(7)
    goal[[1, 5]] = model.lower[[1, 5]] + 1e-3
    goal[3] = model.upper[3] - 1e-3
    motion = path([Waypoint(2.0, goal, zero, zero)])
    begin = bench.send(motion)
    bench.until(begin + 3000)
    return Window(begin, begin + 3000, motion.positions)


def simulated_time(bench: FaultBench) -> Window:
    """In which missing states would be no fault; none come for 1 s after the attempt."""
    begin = bench.move(FULL_SPEED - 200)
    attempt = bench.arm.ticks
    bench.refused(use_sim_time=True)
    how = {"kind": "dropped", "share": 1.0, "periods": 1000}
    fault = bench.arm.ask("state_fault", at=begin + FULL_SPEED, **how)
    return _window(bench, attempt, fault + 1000 + AFTER)


def absurd(bench: FaultBench) -> Window:
    """Settings that no arm bears, one after the other."""
    joint = bench.model.joint_names[ELBOW]
    settings = {f"gains__{joint}__p": 1e5, f"gains__{joint}__d": 2000.0, "payload__mass": 50.0}
    settings |= {"gravity": [0.0, 0.0, -981.0], f"feedback_inertia__{joint}": 100.0}
    begin = bench.move(FULL_SPEED)
    fault = bench.arm.ticks
    bench.refused(**settings)
    return _window(bench, fault, begin + SETTLED)


def storm(bench: FaultBench) -> Window:
    """Gains, payload, gravity and friction change as fast as they can be set."""
    begin = bench.send(there_and_back(), lead=500)
    rng, count = np.random.default_rng(3), 0
    while bench.arm.ticks < begin + SETTLED:
        joint, tilt = rng.choice(bench.model.joint_names), rng.uniform(-1.0, 1.0, 2)
        changes = (
            (f"gains__{joint}__p", rng.uniform(100.0, 900.0)),
            (f"gains__{joint}__d", rng.uniform(20.0, 60.0)),
            ("payload__mass", rng.uniform(0.0, 2.0)),
            ("gravity", [*tilt.tolist(), -float(np.sqrt(9.81**2 - tilt @ tilt))]),
            (f"friction__{joint}__coulomb", rng.uniform(0.0, 1.0)),
        )
        bench.set(**dict([changes[count % 5]]))
        count += 1
    return _window(bench, begin, begin + SETTLED)


def spoiled(before: Callable[[str], str]) -> dict:
    """Options of a bench whose controller starts in spoiled surroundings."""

    def start(parameters: dict) -> Process:
        folder = tempfile.mkdtemp()
        return controller(parameters, before=before(str(Path(folder) / "full")))

    return {"controller_process": start}


def _law(law: str, mass: float = 0.0) -> dict:
    """Parameters for a law, with the stiffness that computed_torque has at the start posture, and
    for a payload that controller and arm have."""
    robot = panda()
    M = crba(robot.model, Workspace(robot.model), robot.start, np.zeros((7, 7)))
    inertia = np.ones(7) if law == "computed_torque" else M.diagonal()
    gains = {
        joint: {"p": float(400.0 * m), "d": float(40.0 * m)}
        for joint, m in zip(robot.model.joint_names, inertia, strict=True)
    }
    given = {"mass": mass, "center_of_mass": list(PAYLOAD_POSITION)}
    payload = {"payload_mass": mass, "payload": given} if mass else {}
    return {"control_law": law, "gains": gains, **payload}


# Rows by key. Those that pytest runs by default, and with what explores; those of the action.
QUICK = {"silent", "kill_controller_with_payload"}
EXPLORED = {
    "kill_controller",
    "pause_controller",
    "stop_controller",
    "pause_while_arming",
    "stop_all",
    "deactivate_node",
}
EXPLORED |= {"stream_killed", "stream_emergency_stop", "stream_kill_controller"}
EXPLORED |= {"pose_killed", "pose_emergency_stop", "pose_kill_controller"}
EXPLORED |= {"stiffness_huge", "wrench_two", "gains_killed", "gains_garbage"}
EXPLORED |= {"reversed", "kill_controller_reversed", "jumping", "frozen_values", "requests"}
# Packages of messages that may be missing.
NEEDS = dict.fromkeys(
    ("kill_action", "kill_action_with_goal", "emergency_stop", "emergency_stop_hanging"),
    "control_msgs",
)
PLANS = ("killed", "garbage", "huge", "stiff", "two", "storm")
NEEDS |= {f"gains_{which}": "linear_feedback_controller_msgs" for which in PLANS}


class Fault(NamedTuple):
    """A row's key and title; `by` makes the row."""

    key: str
    title: str

    def by(self, run: Run, bound: Bound, says: str = "", **options: object) -> Row:
        key = self.key
        lane = "quick" if key in QUICK else "explores" if key in EXPLORED else "all"
        return Row(key, self.title, run, bound, says, options, lane, NEEDS.get(key, ""))


_PUSH = {"joint": ELBOW, "torque": 5.0, "periods": 200}
_JUMP = {"joint": ELBOW, "by": 1.0}
_NAN = {"joint": ELBOW, "by": math.nan}
_BLOCKED = arm_does(
    "block", lasts=1500, undo={"do": "free", "joint": ELBOW}, joint=ELBOW, room=0.02
)
_PUSHES_WRIST = arm_does("push", goes_on=True, joint=WRIST, torque=5.0, periods=200)
# What little friction every arm has, [Nm] at each joint.
_FRICTION = {"arm": {"joint_friction": 0.5}}
# As far as the arm allows.
_GOES_ON = Bound(astray=0.05, goal=0.01)
# Nothing but a machine that gets busy can disturb it.
_GOES_ON_AS_EVER = Bound(astray=0.02, goal=0.002)
_STOPS = Bound(rest=STOP)
_LETS_GO = Bound(rate=75.0, speed=math.inf, beyond=math.inf)
# From full speed, along the path.
_STOPS_AT_ONCE = Bound(astray=0.02, rest=300)
# While nothing is measured for a second, the error of the model, here its friction, adds up.
_STOPS_BY_THE_MODEL = Bound(rest=STOP + 300, speed=1.3)
_IS_NOT_REVOKED = r"(?s)\A(?!.*revoking)"

_PROCESSES = (
    Fault("undisturbed", "nothing").by(undisturbed, Bound(astray=0.005, goal=0.002)),
    Fault("kill_controller", "controller killed (kill -9)").by(
        signalled("controller", SIGKILL), Bound(rest=1000, silence=20)
    ),
    Fault("pause_controller", "controller stopped for 30 ms (SIGSTOP, SIGCONT)").by(
        signalled("controller", SIGSTOP, resumed=30),
        # It may wake between its check and publishing, and send one command; and it gets the arm
        # back.
        Bound(rest=STOP, silence=20, handovers=4),
        says="gave the arm back to the controller",
    ),
    Fault("stop_controller", "controller stopped for 0.6 s (SIGSTOP, SIGCONT)").by(
        signalled("controller", SIGSTOP, resumed=600),
        Bound(rest=STOP, silence=20, handovers=4),
        says="gave the arm back to the controller",
    ),
    Fault("kill_sentinel", "sentinel killed").by(signalled("sentinel", SIGKILL), _GOES_ON),
    Fault("stop_sentinel", "sentinel stopped for 0.6 s (SIGSTOP, SIGCONT)").by(
        signalled("sentinel", SIGSTOP, resumed=600), _GOES_ON
    ),
    Fault("pause_while_arming", "controller stopped for 30 ms while the sentinel arms").by(
        pause_while_arming, replace(_GOES_ON, silence=50)
    ),
    Fault("stop_all", "controller, sentinel and hardware stopped for 1 s").by(
        stop_all,
        Bound(rest=STOP, silence=100, handovers=4),
        says="gave the arm back to the controller",
    ),
    Fault("kill_both", "both killed").by(kill_both, Bound(speed=math.inf, beyond=math.inf)),
    Fault("interrupt", "controller ended by SIGINT").by(signalled("controller", SIGINT), _STOPS),
    Fault("terminate", "controller ended by SIGTERM").by(signalled("controller", SIGTERM), _STOPS),
    Fault("deactivate_node", "controller deactivated (lifecycle)").by(deactivate_node, _STOPS),
    Fault("kill_hardware", "hardware killed, and started again elsewhere").by(
        kill_hardware, Bound(astray=0.02)
    ),
)

_ACTION = (
    Fault("kill_action", "the action's process killed twice, goal by topic").by(
        kill_action(by_action=False), _GOES_ON_AS_EVER
    ),
    Fault("kill_action_with_goal", "the action's process killed twice, goal by action").by(
        kill_action(by_action=True),
        # A process without real-time priority takes its time to die.
        Bound(astray=0.02, rest=600),
    ),
    Fault("emergency_stop", "emergency stop").by(emergency_stop(hangs=False), _STOPS_AT_ONCE),
    Fault("emergency_stop_hanging", "emergency stop while the action's process hangs (SIGSTOP)").by(
        emergency_stop(hangs=True), _STOPS_AT_ONCE
    ),
)

_STATES = (
    Fault("silent_short", "no states for 50 ms").by(
        states("dropped", 50, True, share=1.0), _GOES_ON
    ),
    # Longer, an arm without any friction falls from its unstable equilibrium.
    Fault("silent", "no states for 0.3 s, no friction").by(
        states("dropped", 300, share=1.0), _STOPS, says=_IS_NOT_REVOKED
    ),
    Fault("silent_long", "no states for 1 s").by(
        states("dropped", 1000, share=1.0),
        _STOPS_BY_THE_MODEL,
        says=_IS_NOT_REVOKED,
        **_FRICTION,
    ),
    Fault("frozen", "the same state again and again, 1 s").by(
        states("frozen_stamp", 1000), _STOPS_BY_THE_MODEL, **_FRICTION
    ),
    Fault("frozen_values", "values frozen, stamps go on, 1 s").by(
        states("frozen_values", 1000), _STOPS_BY_THE_MODEL, **_FRICTION
    ),
    Fault("delayed", "states 20 ms late").by(throughout("delayed", by=20), _GOES_ON),
    Fault("dropped", "10 % of the states lost").by(throughout("dropped", share=0.1), _GOES_ON),
    Fault("nan_short", "NaN in one joint, 5 states").by(
        states("jumping", 5, True, **_NAN), _GOES_ON
    ),
    Fault("nan", "NaN in one joint, 1 s").by(
        states("jumping", 1000, **_NAN), _STOPS_BY_THE_MODEL, **_FRICTION
    ),
    Fault("jumping_short", "a joint jumps by 1 rad, 5 states").by(
        states("jumping", 5, True, **_JUMP), _GOES_ON
    ),
    Fault("jumping", "a joint jumps by 1 rad, for good").by(
        arm_does("state_fault", kind="jumping", **_JUMP),
        Bound(astray=0.2, rest=300),
        says="blind: .*jump",
        **_FRICTION,
    ),
    Fault("missing", "a joint is missing, 1 s").by(
        states("missing", 1000, joint=ELBOW), _STOPS_BY_THE_MODEL, **_FRICTION
    ),
    Fault("shuffled", "joints in another order each time").by(throughout("shuffled"), _GOES_ON),
    Fault("duplicate", "a second publisher of joint_states, with another arm's, 1 s").by(
        disturbed("duplicate", 1000), _GOES_ON, says="disturber_duplicate"
    ),
)

_COMMANDS = (
    Fault("second_commander", "a second commander publishes zeros, 1 s").by(
        disturbed("zeros", 1000),
        # Every other torque is the other's.
        Bound(rate=math.inf, speed=math.inf, beyond=math.inf),
        says="disturber_zeros",
    ),
    Fault("away", "effort controller deactivated for 0.3 s, keeps the torque").by(
        arm_does("deactivate", lasts=300, undo={"do": "activate"}, brakes=False),
        # No controller_manager says why the arm does not obey: it is let go, and falls.
        Bound(rate=math.inf, speed=math.inf, beyond=math.inf),
        says="powerless: .*braking does not help",
    ),
    Fault("braked", "effort controller deactivated for 0.5 s, brakes close").by(
        arm_does("deactivate", lasts=500, undo={"do": "activate"}, brakes=True),
        Bound(rest=500 + STOP),
    ),
)


def _rows_of_law(law: str) -> tuple[Row, ...]:
    push = Bound(astray=0.3, goal=0.01 if law != "pd" else 0.3)
    # The blow itself makes the wrist faster for a moment.
    blow = Bound(speed=1.3, rest=1500 + STOP)
    return (
        Fault(f"dropped_{law}", f"2 kg dropped, {law}").by(
            drop_payload, Bound(astray=0.3), **_law(law, 2.0)
        ),
        Fault(f"push_{law}", f"5 Nm at the elbow for 0.2 s, {law}").by(
            arm_does("push", goes_on=True, **_PUSH), push, **_law(law)
        ),
        Fault(f"hard_stop_{law}", f"elbow blocked for 1.5 s, {law}").by(
            _BLOCKED, blow, **_law(law)
        ),
    )


_MODEL = (
    Fault("heavy", "masses 30 % larger").by(
        undisturbed, Bound(astray=0.15), arm={"mass_scale": 1.3}
    ),
    Fault("light", "masses 30 % smaller").by(
        undisturbed, Bound(astray=0.15), arm={"mass_scale": 0.7}
    ),
    *(row for law in JOINT_SPACE if law.follows_trajectories for row in _rows_of_law(law.name)),
    Fault(
        "kill_controller_with_payload",
        "controller killed after its payload was set to the 2 kg that it held",
    ).by(
        kill_controller_with_payload,
        Bound(astray=0.02, rest=500, silence=20),
        payload={"center_of_mass": list(PAYLOAD_POSITION)},
    ),
    Fault("attached", "2 kg attached").by(
        arm_does("load", goes_on=True, loaded=True), Bound(astray=0.3)
    ),
    # It falls then, as the simulated arm has no brakes.
    Fault("reversed", "the elbow's torque has the wrong sign").by(
        reversed_elbow(killed=False), _LETS_GO, says="powerless: "
    ),
    Fault("kill_controller_reversed", "the same, and the controller is killed").by(
        reversed_elbow(killed=True), _LETS_GO, says="-> powerless"
    ),
    # Without its rotor's inertia the wrist is thrown: no brake slows it, and the arm is let go.
    Fault("push_wrist", "5 Nm at the wrist for 0.2 s").by(
        _PUSHES_WRIST, _LETS_GO, says="powerless: .*braking does not help"
    ),
    Fault("push_wrist_with_rotor", "2 Nm at a wrist with rotors of 0.1 kg m², in the model too").by(
        arm_does("push", goes_on=True, joint=WRIST, torque=2.0, periods=200),
        Bound(rest=2000),
        arm={"joint_armature": 0.1},
        armature={name: 0.1 for name in panda().parameters["joints"]},
    ),
    Fault(
        "push_gravity_compensation", "5 Nm at the elbow for 0.2 s, gravity_compensation, at rest"
    ).by(guided("push", **_PUSH), Bound(rest=1000), **_law("gravity_compensation")),
    # The model's payload lifts the arm, as fast as the damping allows.
    Fault("dropped_gravity_compensation", "2 kg dropped, gravity_compensation, at rest").by(
        guided("load", loaded=False), Bound(), **_law("gravity_compensation", 2.0)
    ),
)

_INPUTS = (
    Fault("refused", "a trajectory beyond the limits").by(
        refused, Bound(astray=0.001), says="outside its limits"
    ),
    Fault("to_the_limit", "a trajectory to 1 mrad before the limits").by(
        to_the_limit, Bound(astray=0.2)
    ),
    Fault("forward", "stamps jump by +10 s").by(
        arm_does("shift_stamps", nanoseconds=10**10), _STOPS
    ),
    Fault("backward", "stamps jump by -10 s").by(
        arm_does("shift_stamps", nanoseconds=-(10**10)), _STOPS
    ),
    Fault("jittering", "stamps jump by up to 10 s either way each time, 1 s").by(
        states("jittering_stamps", 1000, by=10.0), _STOPS
    ),
    Fault("pause", "simulated time pauses for 1 s").by(
        arm_does("pause", goes_on=True, seconds=1.0),
        Bound(astray=0.005, goal=0.002),
        arm={"publish_clock": True},
        use_sim_time=True,
    ),
    Fault("simulated_time", "use_sim_time set to true, refused; then no states for 1 s").by(
        simulated_time, _STOPS_BY_THE_MODEL, **_FRICTION
    ),
    Fault("absurd", "absurd gains, payload, gravity, inertia, all refused").by(
        absurd, _GOES_ON_AS_EVER
    ),
    Fault("requests", "requests and messages that callbacks cannot take, 20 a second, 1 s").by(
        disturbed("requests", 1000),
        _GOES_ON_AS_EVER,
        says=r"(?s)rnea_controller\]: request refused.*rnea_sentinel\]: request refused",
    ),
    Fault("storm", "gains, payload, gravity, friction change").by(storm, Bound(astray=0.3)),
    Fault("garbage", "100 garbage messages a second on every input, 1 s").by(
        disturbed("garbage", 1000), Bound()
    ),
    Fault("disk_full", "disk and console full").by(undisturbed, _GOES_ON, **spoiled(disk_full)),
    Fault("log_blocked", "console blocked").by(
        undisturbed, _GOES_ON, **spoiled(lambda _: LOG_BLOCKED)
    ),
)

# The arm stays on the path of the targets, as all joints follow them alike.
_STREAM_GOES_ON = Bound(astray=0.05)
_STREAM_STOPS = Bound(astray=0.05, rest=300)
_BEGINS_AGAIN = r"(?s)streaming: .*no target has come.*streaming: "

_STREAMS = (
    Fault("stream_killed", "sender of a stream killed (kill -9)").by(
        streamed(signal=SIGKILL), _STREAM_STOPS, says="no longer follows the stream of /streamer"
    ),
    Fault("stream_paused", "sender of a stream stopped for 1 s (SIGSTOP, SIGCONT)").by(
        streamed(signal=SIGSTOP, resumed=1000, goes_on=True), _STREAM_GOES_ON, says=_BEGINS_AGAIN
    ),
    Fault("stream_two", "a second sender of targets, 0.3 rad off").by(
        streamed(disturber="targets", goes_on=True),
        _STREAM_GOES_ON,
        says="of /disturber_targets are ignored, as the arm follows target_joint of /streamer",
    ),
    Fault("stream_jumping", "the targets of a stream jump by 1 rad, for good").by(
        streamed("jump"), _STREAM_STOPS, says="more than stream.max_distance"
    ),
    Fault("stream_nan", "NaN in a stream, 1 s").by(
        streamed("nan", lasts=1000, goes_on=True), _STREAM_GOES_ON, says="a value is not finite"
    ),
    Fault("stream_clock", "stamps of a stream jump by 100 s, and back after 1 s").by(
        streamed("clock", lasts=1000, goes_on=True), _STREAM_GOES_ON
    ),
    Fault("stream_limit", "a stream to 0.3 rad beyond the limit of the elbow, at 1 rad/s").by(
        stream_to_the_limit,
        # The desired motion ends at the limit, and the arm is off it by a tracking error.
        Bound(rest=2 * AFTER, beyond=1e-3),
    ),
    Fault("stream_emergency_stop", "emergency stop, released after 1.6 s; the stream goes on").by(
        stop_in_stream(JOINTS), Bound(astray=0.05, rest=300)
    ),
    Fault("stream_kill_controller", "controller killed in a stream, which goes on").by(
        kill_controller_in_stream(JOINTS),
        Bound(astray=0.05, rest=1000, silence=20),
        says="guarding -> commanding",
    ),
)

# Under cartesian_impedance.
_AT_READY = {
    "arm": {
        f"initial_positions.{name}": value
        for name, value in zip(panda().model.joint_names, READY.tolist(), strict=True)
    },
    "task": {"tip": TIP},
}
_POSES_STOP = Bound(rest=500)


def poses(**how: object) -> Run:
    return streamed(script=POSES, **how)


_POSES = (
    Fault("pose_killed", "sender of poses killed (kill -9)").by(
        poses(signal=SIGKILL),
        _POSES_STOP,
        says="no longer follows the stream of /pose_streamer",
        **_AT_READY,
    ),
    Fault("pose_paused", "sender of poses stopped for 1 s (SIGSTOP, SIGCONT)").by(
        poses(signal=SIGSTOP, resumed=1000, goes_on=True), Bound(), says=_BEGINS_AGAIN, **_AT_READY
    ),
    Fault("pose_two", "a sender of joint positions beside one of poses, 0.3 rad off").by(
        poses(disturber="positions", goes_on=True),
        Bound(),
        says="of /disturber_positions are ignored, as the arm follows target_pose",
        **_AT_READY,
    ),
    Fault("pose_jumping", "target poses jump by 1 m, for good").by(
        poses(change="jump"), _POSES_STOP, says="more than task.max_distance", **_AT_READY
    ),
    Fault("pose_nan", "NaN in target poses, 1 s").by(
        poses(change="nan", lasts=1000, goes_on=True),
        Bound(),
        says="a value is not finite",
        **_AT_READY,
    ),
    Fault("pose_emergency_stop", "emergency stop, released after 1.6 s; the poses go on").by(
        stop_in_stream(POSES), _POSES_STOP, **_AT_READY
    ),
    Fault("pose_kill_controller", "controller killed while poses are followed").by(
        kill_controller_in_stream(POSES),
        Bound(rest=1000, silence=20),
        says="guarding -> commanding",
        **_AT_READY,
    ),
)


def _rows_beside_poses(what: str, bound: Bound, says_huge: str) -> tuple[Row, ...]:
    """Faults of a stiffness or a wrench, while poses are followed."""
    topic = f"target_{what}"
    ignored = rf"{topic}: \d+ message\(s\) of /{what}_streamer are ignored"
    return (
        Fault(f"{what}_killed", f"sender of `{topic}` killed (kill -9)").by(
            beside_poses(what, signal=SIGKILL), bound, **_AT_READY
        ),
        Fault(f"{what}_garbage", f"random bytes on `{topic}`, 1 s").by(
            beside_poses(what, "garbage", lasts=1000), bound, says=ignored, **_AT_READY
        ),
        Fault(f"{what}_huge", f"1e300 on `{topic}`, 1 s").by(
            beside_poses(what, "huge", lasts=1000), bound, says=says_huge, **_AT_READY
        ),
        Fault(f"{what}_two", f"a second sender of `{topic}`").by(
            beside_poses(what, second="second"),
            bound,
            says=rf"of /second are ignored, as the arm follows {topic} of /{what}_streamer",
            **_AT_READY,
        ),
        Fault(f"{what}_storm", f"2000 messages a second on `{topic}`, 1 s").by(
            beside_poses(what, "storm", lasts=1000), bound, **_AT_READY
        ),
    )


_BESIDE_POSES = (
    *_rows_beside_poses("stiffness", Bound(), "do not allow this stiffness"),
    *_rows_beside_poses("wrench", Bound(), ""),
)

_GAINS_STOP = Bound(rest=500)
_GAINS_BEGIN_AGAIN = r"(?s)streaming: .*no message has come.*streaming: "


def planned(**how: object) -> Run:
    return streamed(script=PLANNER, **how)


_GAINS = (
    Fault("gains_killed", "planner killed (kill -9)").by(
        planned(signal=SIGKILL), _GAINS_STOP, says="no longer follows the stream of /planner"
    ),
    Fault("gains_garbage", "random bytes in place of a planner's gains, 1 s").by(
        planned(change="garbage", lasts=1000, goes_on=True), Bound(), says=_GAINS_BEGIN_AGAIN
    ),
    Fault("gains_huge", "a planner's torques of 1e300 Nm, 1 s").by(
        planned(change="huge", lasts=1000, goes_on=True), Bound(), says="a value is beyond 1e12"
    ),
    Fault("gains_stiff", "a planner's gains a million times too large").by(
        planned(change="stiff"), Bound(rest=STOP, speed=1.3)
    ),
    Fault("gains_two", "a second planner, without torques").by(
        planned(second="second", goes_on=True),
        Bound(),
        says="of /second are ignored, as the arm follows control of /planner",
    ),
    Fault("gains_storm", "as many gains as a planner can send, up to 2000 a second, 1 s").by(
        planned(change="storm", lasts=1000, goes_on=True), Bound()
    ),
)

ROWS = (
    *(*_PROCESSES, *_ACTION, *_STATES, *_STREAMS, *_POSES, *_BESIDE_POSES, *_GAINS),
    *(*_COMMANDS, *_MODEL, *_INPUTS),
)
