"""A stream of joint targets, followed by three filters: ours, an exponential one, and a new
time-optimal motion for each target (ruckig). Prints the table of docs/streams.md, and a table of
bandwidths for the rates of targets and states.

The targets are a sine of 0.5 rad and 0.5 Hz, sent 50 times a second, also with 8 ms of jitter and
one of twenty lost; and a step of 0.5 rad. Ours gets positions with stamps, as `target_joint` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from ruckig import InputParameter, Ruckig, Trajectory
from table import Table

from rnea_control.array_types import FloatArray
from rnea_control.control import Controller, ControllerSettings, Gains, stream_intake
from rnea_control.control.stream_intake import StreamIntake, Targets, take_once
from rnea_control.model import RobotModel

PERIOD = 0.001  # period of the control loop [s]
DURATION = 8.0  # duration of a run [s]
STREAM_PERIOD = 0.02  # period of the targets [s]
AMPLITUDE = 0.5  # amplitude of the sine [rad]
FREQUENCY = 0.5  # frequency of the sine [Hz]
JITTER = 0.008  # longest delay of a message [s]
LOST = 0.05  # part of the messages that is lost
FASTEST = 2.0  # largest velocity [rad/s]
MOST = 10.0  # largest acceleration [rad/s^2]
JERK = 200.0  # largest jerk [rad/s^3]
SETTLED = 2.0  # time from which the errors count [s]
OF_SINE = AMPLITUDE * (2.0 * math.pi * FREQUENCY) ** 2 / math.sqrt(2.0)  # RMS acceleration
MOTOR = """<robot name="motor"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="joint" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="100" velocity="2"/></joint></robot>"""


class Sent(NamedTuple):
    """Targets: when each was made, when it arrives, [s], and the position [rad]."""

    made: FloatArray
    arrives: FloatArray
    position: FloatArray


Follower = Callable[[Sent], FloatArray]


def sine(t: FloatArray) -> FloatArray:
    return AMPLITUDE * np.sin(2.0 * math.pi * FREQUENCY * t)


def stream(jitter: float, lost: float, period: float = STREAM_PERIOD) -> Sent:
    rng = np.random.default_rng(3)
    made = np.arange(0.0, DURATION, period)
    made = made[rng.random(len(made)) >= lost]
    arrives = np.maximum.accumulate(made + rng.uniform(0.0, jitter, len(made)))
    return Sent(made, arrives, sine(made))


def step() -> Sent:
    made = np.arange(0.0, DURATION, STREAM_PERIOD)
    return Sent(made, made, np.full(len(made), AMPLITUDE))


def ours(bandwidth: float, period: float = PERIOD, most: float = MOST) -> Follower:
    """Ours, with a period of the states [s] and a largest acceleration [rad/s^2]."""

    def follow(sent: Sent) -> FloatArray:
        model = RobotModel.from_urdf_string(MOTOR)
        bounds = {
            "stream.bandwidth": bandwidth,
            "stream.max_velocity.<joint>": np.array([0.9 * FASTEST if most == MOST else 1e3]),
            "stream.max_acceleration.<joint>": np.array([most]),
            "stream.max_distance": 10.0,
        }
        settings = ControllerSettings(Gains.uniform(1, 400.0, 40.0), more=bounds)
        controller, intake = Controller(model, settings), StreamIntake()
        controller.start(0.0, np.zeros(1))
        controller.arm.takes_streams = True
        targets, tau, i, positions = Targets.zeros(1), np.zeros(1), 0, []
        for t in np.arange(0.0, DURATION, period):
            while i < len(sent.made) and sent.arrives[i] <= t:
                targets[:] = np.nan
                targets.position = sent.position[i]
                stamp = sent.made[i]
                asked = stream_intake.TAKEN, 0, False, (1, 1), t, stamp, t - stamp, True
                take_once(intake.array, controller.arrays, targets, *asked)
                i += 1
            desired = controller.desired
            controller.step(float(t), desired[0].copy(), desired[1].copy(), tau)
            positions.append(float(controller.desired[0, 0]))
        return np.array(positions)

    return follow


def exponential(share: float) -> Follower:
    """CRISP's filter of joint targets: a share of the way to the target in each tick."""

    def follow(sent: Sent) -> FloatArray:
        x, i, y, positions = 0.0, 0, 0.0, []
        for t in np.arange(0.0, DURATION, PERIOD):
            while i < len(sent.made) and sent.arrives[i] <= t:
                y, i = sent.position[i], i + 1
            x += share * (y - x)
            positions.append(x)
        return np.array(positions)

    return follow


def time_optimal(sent: Sent) -> FloatArray:
    planner, wanted, path = Ruckig(1), InputParameter(1), Trajectory(1)
    wanted.max_velocity, wanted.max_acceleration = [FASTEST], [MOST]
    wanted.max_jerk = [JERK]
    state, begin, i, positions = ([0.0], [0.0], [0.0]), math.nan, 0, []
    for t in np.arange(0.0, DURATION, PERIOD):
        if not math.isnan(begin):
            state = path.at_time(t - begin)
        while i < len(sent.made) and sent.arrives[i] <= t:
            wanted.current_position, wanted.current_velocity = state[0], state[1]
            wanted.current_acceleration = state[2]
            wanted.target_position = [float(sent.position[i])]
            planner.calculate(wanted, path)
            begin, i = t, i + 1
        positions.append(state[0][0])
    return np.array(positions)


FOLLOWERS: dict[str, Follower] = {
    "ours, 30 rad/s": ours(30.0),
    "ours, 60 rad/s": ours(60.0),
    "exponential, half of the way a tick": exponential(0.5),
    "exponential, a tenth": exponential(0.1),
    "a time-optimal motion for each target": time_optimal,
}


def row(name: str, follow: Follower) -> tuple[str, ...]:
    times = np.arange(0.0, DURATION, PERIOD)
    settled = times > SETTLED
    cells = [name]
    for sent in (stream(0.0, 0.0), stream(JITTER, LOST)):
        position = follow(sent)
        error = math.sqrt(np.mean((position - sine(times))[settled] ** 2))
        acceleration = np.diff(position, 2)[settled[2:]] / PERIOD**2
        cells += [f"{1e3 * error:.1f}", f"{math.sqrt(np.mean(acceleration**2)) / OF_SINE:.1f}"]
    position = follow(step())
    fastest = np.abs(np.diff(position)).max() / PERIOD
    overshoot = 100.0 * max(position.max() / AMPLITUDE - 1.0, 0.0)
    late = times[np.flatnonzero(np.abs(position - AMPLITUDE) > 0.01 * AMPLITUDE)[-1]]
    return (*cells, f"{fastest:.1f}", f"{overshoot:.1f}", f"{late:.2f}")


# Periods of targets and states [s], and bandwidths as multiples of the inverse period.
RATES = ((0.02, PERIOD, (0.6, 1.2, 2.0, 3.0)), (0.01, PERIOD, (0.6, 1.2, 2.0, 3.0)))
RATES += ((0.002, 0.002, (0.3, 0.6, 1.0)), (0.005, 0.005, (0.3, 0.6, 1.0)))
UNBOUNDED = 1e4  # acceleration that bounds nothing here [rad/s^2]


def rates() -> Table:
    """Bandwidths for the rates of targets and states."""
    rows = []
    for of_targets, of_states, multiples in RATES:
        for multiple in multiples:
            bandwidth = multiple / of_targets
            follow = ours(bandwidth, of_states, UNBOUNDED)
            times = np.arange(0.0, DURATION, of_states)
            settled = times > SETTLED
            accelerations = [
                np.diff(follow(sent), 2)[settled[2:]] / of_states**2
                for sent in (
                    stream(0.0, 0.0, of_targets),
                    stream(0.4 * of_targets, LOST, of_targets),
                )
            ]
            over = 100.0 * max(follow(step()).max() / AMPLITUDE - 1.0, 0.0)
            cells = f"{1e3 * of_targets:g}", f"{1e3 * of_states:g}", f"{bandwidth:.0f}"
            factors = [f"{math.sqrt(np.mean(each**2)) / OF_SINE:.1f}" for each in accelerations]
            rows.append(
                (*cells, f"{multiple:g}", f"{bandwidth * of_states:.2g}", *factors, f"{over:.1f}")
            )
    return Table(
        "Bandwidths for the rates of targets and states",
        (
            *("period of targets [ms]", "of states [ms]", "bandwidth [rad/s]"),
            *("bandwidth x period of targets", "x period of states"),
            *("acceleration", "acceleration, jitter", "overshoot of a step [%]"),
        ),
        rows,
        ["Without bounds of velocity and acceleration; jitter of 0.4 periods, one of 20 is lost."],
    )


def tables() -> list[Table]:
    """Errors, accelerations, and the answer to a step."""
    table = Table(
        "Followers of a stream of joint targets at 50 Hz",
        (
            *("follower", "RMS error [mrad]", "acceleration"),
            *("with jitter [mrad]", "acceleration, jitter"),
            *("step: velocity [rad/s]", "overshoot [%]", "to 1 % [s]"),
        ),
        [row(name, follow) for name, follow in FOLLOWERS.items()],
        ["Accelerations are RMS, as multiples of the sine's. Velocities are the largest ones."],
    )
    return [table, rates()]


if __name__ == "__main__":
    for each in tables():
        print(each.markdown())
