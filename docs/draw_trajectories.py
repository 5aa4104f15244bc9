"""Draws the pictures of docs/trajectories.md from the controller itself: no ROS, no stored data.

python docs/draw_trajectories.py [folder]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # files, no window
import matplotlib.pyplot as plt
import numpy as np

from rnea_control.control import (
    Act,
    Controller,
    ControllerSettings,
    EndKind,
    Gains,
    MotionRequest,
    TrajectorySettings,
    Waypoint,
    Waypoints,
)
from rnea_control.dynamics import Workspace, forward_dynamics
from rnea_control.model import RobotModel

PERIOD = 0.001
# Time from the arrival of a trajectory to its takeover, as in the node [s].
LEAD = 0.005
ARROW = {"arrowstyle": "->", "linewidth": 0.8}
OLD, NEW, THIRD = "tab:gray", "tab:blue", "tab:orange"

LINK = """
  <link name="link{n}"><inertial>
    <origin xyz="0.2 0 0"/><mass value="4"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.06" iyz="0" izz="0.06"/>
  </inertial></link>
  <joint name="joint{n}" type="revolute">
    <parent link="link{before}"/><child link="link{n}"/>
    <origin xyz="{x} 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="6" effort="{effort}"/>
  </joint>"""


def arm(*efforts: float) -> RobotModel:
    """A horizontal arm with a joint for each of these effort limits [Nm]."""
    links = [
        LINK.format(n=n, before=n - 1, x=0.4 * (n > 1), effort=effort)
        for n, effort in enumerate(efforts, start=1)
    ]
    urdf = f'<robot name="arm"><link name="link0"/>{"".join(links)}</robot>'
    return RobotModel.from_urdf_string(urdf)


@dataclass
class Run:
    """Recording of a controller: desired and measured states and torques over time.

    Attributes:
        time: shape (n,), [s].
        desired: position, velocity and acceleration, shape (n, 3, nv).
        measured: position, shape (n, nv).
        torque: shape (n, nv), [Nm].
        scaling: shape (n,).
    """

    time: np.ndarray
    desired: np.ndarray
    measured: np.ndarray
    torque: np.ndarray
    scaling: np.ndarray


def run(
    model: RobotModel,
    start: list[float],
    duration: float,
    events: dict[float, Callable[[Controller, float], object]],
    **rules: object,
) -> Run:
    """Moves a simulated arm, with what happens at some times; `rules` are trajectory settings."""
    settings = ControllerSettings(
        Gains.uniform(model.nv, 400.0, 40.0),
        trajectories=replace(TrajectorySettings.default(model.nv), **rules),
    )
    controller, workspace = Controller(model, settings), Workspace(model)
    q, v = np.array(start), np.zeros(model.nv)
    tau, a = np.zeros(model.nv), np.zeros(model.nv)
    controller.hold(0.0, q)
    pending, rows = sorted(events.items()), []
    for k in range(round(duration / PERIOD)):
        t = k * PERIOD
        controller.step(t, q, v, tau)
        rows.append((t, controller.desired.copy(), q.copy(), tau.copy(), controller.speed_scaling))
        while pending and pending[0][0] <= t + 1e-9:
            pending.pop(0)[1](controller, t)
        forward_dynamics(model, workspace, q, v, tau, a)
        v += PERIOD * a
        q += PERIOD * v
    return Run(*(np.array(column) for column in zip(*rows, strict=True)))


def follow(points: list[Waypoint], start: float | None = None, stream: bool = False) -> Callable:
    """The event that a trajectory arrives; `start` by the run's time, None for now."""

    def event(controller: Controller, t: float) -> None:
        waypoints = Waypoints.of(points, controller.model.nv)
        request = MotionRequest(waypoints, start, is_stream=stream)
        controller.adopt(controller.plan(request, controller.situation(t), LEAD))

    return event


def at_rest(*points: tuple[float, float]) -> list[Waypoint]:
    """Waypoints of one joint: time and position, at rest."""
    return [Waypoint(time, [position], [0.0]) for time, position in points]


def draw_replacement(path: Path) -> None:
    """One trajectory replaced by another that starts later, now, and in the past."""
    model, now = arm(100.0), 1.0
    old = at_rest((0.8, 1.0), (1.6, 0.4), (2.4, 1.0))
    new = at_rest((0.5, 0.2), (1.1, 1.4), (1.7, 0.8))
    figure, axes = plt.subplots(2, 3, figsize=(11.0, 4.8), sharex=True, sharey="row")
    figure.set_layout_engine("constrained")
    untouched = run(model, [0.0], 3.5, {0.0: follow(old, 0.0)})
    for column, (title, stamp) in enumerate(
        (("stamp: 0.5 s ahead", 1.5), ("stamp 0: now", None), ("stamp: 0.7 s ago", 0.3))
    ):
        result = run(model, [0.0], 3.5, {0.0: follow(old, 0.0), now: follow(new, stamp)})
        start = now if stamp is None else stamp
        due = np.array([start + point.time for point in new])
        positions = np.array([point.position[0] for point in new])
        position, velocity = axes[:, column]
        for row, axis in enumerate((position, velocity)):
            axis.plot(untouched.time, untouched.desired[:, row, 0], color=OLD, ls="--")
            axis.plot(result.time, result.desired[:, row, 0], color=NEW, linewidth=2.0)
            axis.axvline(now, color="black", linewidth=0.8)
            axis.axvline(start, color=THIRD, linestyle=":", linewidth=1.5)
            axis.grid(alpha=0.3)
            axis.margins(x=0.0)
        passed = due <= now
        position.plot(due[~passed], positions[~passed], "o", color=THIRD)
        position.plot(due[passed], positions[passed], "x", color=THIRD, markersize=8)
        position.set_title(title)
        velocity.set_xlabel("time, s")
    axes[0, 0].set_ylabel("desired position, rad")
    axes[1, 0].set_ylabel("desired velocity, rad/s")
    handles = [
        plt.Line2D([], [], color=NEW, linewidth=2.0, label="followed"),
        plt.Line2D([], [], color=OLD, ls="--", label="the old trajectory alone"),
        plt.Line2D([], [], color="black", linewidth=0.8, label="the new one arrives"),
        plt.Line2D([], [], color=THIRD, ls=":", label="its start"),
        plt.Line2D([], [], color=THIRD, ls="", marker="o", label="its points"),
        plt.Line2D([], [], color=THIRD, ls="", marker="x", label="point that has passed"),
    ]
    save(figure, path, handles)


def draw_scaling(path: Path) -> None:
    """A motion slowed down and stopped on its way, beside the same one at full speed."""
    model = arm(100.0)
    points = at_rest((0.8, 1.0), (1.6, 0.2), (2.4, 1.0))
    factors = {0.6: 0.4, 2.0: 0.0, 2.8: 1.0}

    def scale(factor: float) -> Callable:
        return lambda controller, t: setattr(controller, "speed_scaling", factor)

    begin = {0.0: follow(points, 0.0)}
    events = begin | {time: scale(factor) for time, factor in factors.items()}
    full, scaled = run(model, [0.0], 4.6, begin), run(model, [0.0], 4.6, events)
    figure, axes = plt.subplots(3, 1, figsize=(8.0, 5.6), sharex=True, height_ratios=(1, 1.6, 1.6))
    figure.set_layout_engine("constrained")
    times, steps = [0.0, *factors, 4.6], [1.0, *factors.values(), 1.0]
    axes[0].step(times, steps, where="post", color=THIRD, linestyle=":")
    axes[0].plot(scaled.time, scaled.scaling, color=NEW, linewidth=2.0)
    for row, axis in enumerate(axes[1:]):
        axis.plot(full.time, full.desired[:, row, 0], color=OLD, ls="--")
        axis.plot(scaled.time, scaled.desired[:, row, 0], color=NEW, linewidth=2.0)
    for axis, label in zip(
        axes, ("scaling factor", "desired\nposition, rad", "desired\nvelocity, rad/s"), strict=True
    ):
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
        axis.margins(x=0.0)
    axes[-1].set_xlabel("time, s")
    handles = [
        plt.Line2D([], [], color=NEW, linewidth=2.0, label="scaled"),
        plt.Line2D([], [], color=OLD, ls="--", label="the same at full speed"),
        plt.Line2D([], [], color=THIRD, ls=":", label="factor on ~/speed_scaling_input"),
    ]
    save(figure, path, handles)


def draw_upsampling(path: Path) -> None:
    """Overlapping chunks of a 10 Hz policy, with and without upsampling."""
    model, period, ahead = arm(100.0), 0.1, 8
    arrivals = [0.0, 0.4, 0.8, 1.2]

    def wish(time: np.ndarray | float) -> np.ndarray:
        return 0.6 * (1.0 - np.cos(2.0 * np.asarray(time)))

    def chunk(time: float) -> list[Waypoint]:
        due = period * np.arange(1, ahead + 1)
        return [Waypoint(t, [x], None) for t, x in zip(due, wish(time + due), strict=True)]

    events = {time: follow(chunk(time), stream=True) for time in arrivals}
    figure, axes = plt.subplots(3, 1, figsize=(8.0, 6.4), sharex=True)
    figure.set_layout_engine("constrained")
    for enable, color, width in ((False, OLD, 1.2), (True, NEW, 2.0)):
        result = run(model, [0.0], 2.6, events, upsample_positions=enable)
        for row, axis in enumerate(axes):
            if row < 2 or enable:  # between lines the acceleration is infinite
                axis.plot(result.time, result.desired[:, row, 0], color=color, linewidth=width)
    for time in arrivals:
        due = time + period * np.arange(1, ahead + 1)
        axes[0].plot(due, wish(due), "o", color=THIRD, markersize=3.5)
    for axis, label in zip(
        axes, ("position, rad", "velocity, rad/s", "acceleration, rad/s²"), strict=True
    ):
        for time in arrivals:
            axis.axvline(time, color="black", linewidth=0.8)
        axis.set_ylabel(f"desired\n{label}")
        axis.grid(alpha=0.3)
        axis.margins(x=0.0)
    axes[0].annotate("without a next\nchunk it settles", (2.1, 0.93), (2.15, 0.4), arrowprops=ARROW)
    axes[-1].set_xlabel("time, s")
    handles = [
        plt.Line2D([], [], color=THIRD, ls="", marker="o", markersize=3.5, label="points"),
        plt.Line2D([], [], color="black", linewidth=0.8, label="a chunk arrives"),
        plt.Line2D([], [], color=NEW, linewidth=2.0, label="positions_upsampling"),
        plt.Line2D([], [], color=OLD, label="without: lines"),
    ]
    save(figure, path, handles)


def draw_stop(path: Path) -> None:
    """A cancelled motion: a stop along the path, and the measured position held at once."""
    model, cancelled = arm(30.0, 8.0), 0.65
    points = [Waypoint(0.7, [0.7, 1.0], [2.0, 0.0]), Waypoint(1.4, [1.4, 0.0], [0.0, 0.0])]
    begin = {0.0: follow(points, 0.0)}

    def stop(controller: Controller, t: float) -> None:
        controller.finish("cancelled", Act.BRAKES, EndKind.CANCELLED)

    def hold(controller: Controller, t: float) -> None:
        controller.hold(t, controller.snapshot().measured[0])

    whole = run(model, [0.0, 0.0], 1.5, begin)
    along, at_once = (
        run(model, [0.0, 0.0], 1.1, {**begin, cancelled: event}) for event in (stop, hold)
    )
    figure, axes = plt.subplot_mosaic(
        [["path", "velocity"], ["path", "torque"]], figsize=(10.0, 4.8), width_ratios=(1.0, 1.3)
    )
    figure.set_layout_engine("constrained")
    axes["path"].plot(*np.degrees(whole.desired[:, 0]).T, color=OLD, ls="--")
    place = np.degrees(along.measured[round(cancelled / PERIOD)])
    for result, color in ((at_once, THIRD), (along, NEW)):
        axes["path"].plot(*np.degrees(result.measured).T, color=color, linewidth=2.0)
        axes["path"].plot(*np.degrees(result.measured[-1]), "s", color=color)
        axes["velocity"].plot(result.time, result.desired[:, 1, 0], color=color, linewidth=2.0)
        axes["torque"].plot(result.time, result.torque[:, 0], color=color, linewidth=2.0)
    axes["path"].plot(*place, "o", color="black")
    axes["path"].set(xlabel="joint1 as measured, deg", ylabel="joint2 as measured, deg")
    axes["path"].set(xlim=(22.0, 52.0), ylim=(47.0, 62.0))
    axes["velocity"].set_ylabel("joint1, desired\nvelocity, rad/s")
    axes["torque"].set(xlabel="time, s", ylabel="joint1,\ntorque, Nm")
    for limit in (-30.0, 30.0):
        axes["torque"].axhline(limit, color="crimson", linestyle=":")
    for name in ("velocity", "torque"):
        axes[name].axvline(cancelled, color="black", linewidth=0.8)
        axes[name].set_xlim(0.0, 1.1)
    for axis in axes.values():
        axis.grid(alpha=0.3)
    handles = [
        plt.Line2D([], [], color=NEW, linewidth=2.0, label="stop along the path"),
        plt.Line2D([], [], color=THIRD, linewidth=2.0, label="measured position held at once"),
        plt.Line2D([], [], color=OLD, ls="--", label="the path"),
        plt.Line2D([], [], color="black", marker="o", linewidth=0.8, label="cancelled"),
        plt.Line2D([], [], color="black", ls="", marker="s", label="end"),
        plt.Line2D([], [], color="crimson", ls=":", label="effort limit"),
    ]
    save(figure, path, handles)


def save(figure: plt.Figure, path: Path, handles: list[plt.Line2D]) -> None:
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)


PICTURES = {
    "trajectory_replacement.png": draw_replacement,
    "speed_scaling.png": draw_scaling,
    "positions_upsampling.png": draw_upsampling,
    "stop.png": draw_stop,
}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name, draw in PICTURES.items():
        draw(folder / name)
        print(folder / name)


if __name__ == "__main__":
    main()
