"""`FaultyArm`: a simulated arm whose states, effort controller and mechanics can be broken while it
runs."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message
from recording import Recording
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.simulation.mujoco_arm import MujocoArm
from rnea_control.simulation.simulated_arm import COMMANDS, SimulatedArm
from rnea_control.simulation.urdf_for_mujoco import ModelErrors

# Commands that wait to be applied; the last one of a period counts.
QUEUE = 50
# How much of the speed brakes leave after each millisecond.
BRAKING = 0.9
# How stiff a hard stop is: MuJoCo's time constant [s] and damping ratio.
HARD_STOP = (0.004, 1.0)


@dataclass
class State:
    """What is published."""

    stamp: int
    names: list[str]
    q: np.ndarray
    v: np.ndarray
    effort: np.ndarray

    def of(self, joints: Sequence[int]) -> State:
        """Of some of the joints, in this order."""
        names, numbers = [self.names[i] for i in joints], (self.q, self.v, self.effort)
        return State(self.stamp, names, *(values[joints] for values in numbers))


StateFault = Callable[[State], State | None]


class FaultyArm(SimulatedArm):
    """See the file. Its time goes on by `advance`; `publish_state` publishes what the faults leave.

    Args:
        folder: where the recording goes.
        parameters: of the simulated arm.
        payload: mass [kg] and position [m] of a payload that can be dropped or attached.

    Attributes:
        clean: whether no state fault is in force, so that an answer is to be expected.
    """

    def __init__(
        self, folder: Path, parameters: dict[str, object], payload: tuple[float, list[float]]
    ) -> None:
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        super().__init__(parameter_overrides=overrides)
        self.recording = Recording(folder, self.model.nv, create=True)
        for subscription in list(self.subscriptions):
            if subscription.msg_type is Float64MultiArray:
                topic = subscription.topic_name
                self.destroy_subscription(subscription)
        qos = COMMANDS.__class__(
            depth=QUEUE, reliability=COMMANDS.reliability, durability=COMMANDS.durability
        )
        self._subscription = RawSubscription(self, Float64MultiArray, topic, qos)
        self._state_faults: dict[str, tuple[int, StateFault]] = {}
        self._offset = 0
        self._published: State | None = None
        self._rng = np.random.default_rng(12)
        self._push_until, self._push_torque = 0, np.zeros(self.model.nv)
        self._signs = np.ones(self.model.nv)
        self._braking = False
        self._ignoring = False
        self._free_ranges = self._physics._physics.jnt_range.copy()
        self._solref = self._physics._physics.jnt_solref.copy()
        self._bodies = self._make_bodies(parameters, payload)

    def _make_bodies(self, parameters: dict, payload: tuple[float, list[float]]) -> dict:
        """The bodies' inertias without and with the payload."""
        made, xml = {}, parameters["robot_description"]
        for loaded in (False, True):
            load = {"payload_mass": payload[0] * loaded, "payload_position": tuple(payload[1])}
            errors = ModelErrors(mass_scale=float(parameters.get("mass_scale", 1.0)), **load)
            physics = MujocoArm(xml, self.model, self.period, {}, errors)._physics
            names = "body_mass", "body_inertia", "body_ipos", "body_iquat"
            made[loaded] = {name: getattr(physics, name).copy() for name in names}
        return made

    # Requests.

    def state_fault(self, kind: str, periods: int = 10**9, **arguments: object) -> None:
        """Breaks the states for so many periods; the kinds are the methods below."""
        fault = getattr(self, f"_{kind}")(**arguments)
        self._state_faults[kind] = (self.ticks + periods, fault)

    def push(self, joint: int, torque: float, periods: int) -> None:
        """An external torque on a joint, [Nm], for so many periods."""
        self._push_torque[:] = 0.0
        self._push_torque[joint] = torque
        self._push_until = self.ticks + periods

    def reverse(self, joint: int) -> None:
        """From now on the torque of a joint has the wrong sign."""
        self._signs[joint] = -1.0

    def block(self, joint: int, room: float) -> None:
        """A hard stop on both sides of a joint, `room` [rad] away."""
        physics, q = self._physics._physics, self.q[joint]
        i = self._joint_id(joint)
        physics.jnt_range[i] = q - room, q + room
        physics.jnt_solref[i] = HARD_STOP

    def free(self, joint: int) -> None:
        """Takes the hard stop away."""
        i = self._joint_id(joint)
        self._physics._physics.jnt_range[i] = self._free_ranges[i]
        self._physics._physics.jnt_solref[i] = self._solref[i]

    def load(self, loaded: bool) -> None:
        """Attaches the payload, or drops it."""
        for name, values in self._bodies[loaded].items():
            getattr(self._physics._physics, name)[:] = values

    def deactivate(self, brakes: bool) -> None:
        """The effort controller takes no more commands: the last torque stays, or brakes close."""
        self._ignoring = True
        self._braking = brakes

    def activate(self) -> None:
        """The effort controller takes commands again, and brakes open."""
        self._ignoring = self._braking = False
        self.effort_controller.active = True

    def shift_stamps(self, nanoseconds: int) -> None:
        """All later stamps are by so much later."""
        self._offset += nanoseconds

    def _joint_id(self, joint: int) -> int:
        return self._physics._physics.joint(self.model.joint_names[joint]).id

    # Faults of the states.

    def _frozen_stamp(self) -> StateFault:
        last = self._published
        return lambda state: last

    def _frozen_values(self) -> StateFault:
        q, v = self.q, self.v
        return lambda state: replace(state, q=q, v=v)

    def _delayed(self, by: int) -> StateFault:
        waiting: deque[State] = deque()

        def fault(state: State) -> State | None:
            waiting.append(state)
            return waiting.popleft() if len(waiting) > by else None

        return fault

    def _dropped(self, share: float) -> StateFault:
        return lambda state: None if self._rng.random() < share else state

    def _jumping(self, joint: int, by: float) -> StateFault:
        jump = np.zeros(self.model.nv)
        jump[joint] = by
        return lambda state: replace(state, q=state.q + jump)

    def _missing(self, joint: int) -> StateFault:
        return lambda state: state.of([i for i in range(len(state.names)) if i != joint])

    def _shuffled(self) -> StateFault:
        return lambda state: state.of(self._rng.permutation(len(state.names)))

    def _jittering_stamps(self, by: float) -> StateFault:
        def shift() -> int:
            return round(1e9 * by * self._rng.uniform(-1.0, 1.0))

        return lambda state: replace(state, stamp=state.stamp + shift())

    # Each period.

    @property
    def clean(self) -> bool:
        return not self._state_faults and not self._ignoring

    @property
    def command(self) -> np.ndarray:
        """The command in force, shape (nv,), [Nm]."""
        return self.effort_controller._command

    def stamp(self) -> int:
        return super().stamp() + self._offset

    def publish_state(self) -> int:
        """Publishes what the faults leave of the state; returns its stamp, 0 if nothing is left."""
        names = list(self.model.joint_names)
        state: State | None = State(self.stamp(), names, self.q, self.v, self.torque)
        for kind, (until, fault) in list(self._state_faults.items()):
            if self.ticks >= until:
                del self._state_faults[kind]
            elif state is not None:
                state = fault(state)
        if state is None:
            return 0
        self._published = state
        message = JointState(name=state.names)
        message.header.frame_id = "base_link"
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(state.stamp, 10**9)
        message.position = array("d", state.q)
        message.velocity = array("d", state.v)
        message.effort = array("d", state.effort)
        if self._time_publisher is not None:
            self._time.clock = message.header.stamp
            self._time_publisher.publish(self._time)
        self._state_publisher.publish(message)
        return state.stamp

    def take(self, timeout: float, wall: Callable[[], float]) -> bool:
        """Takes the next command, and says whether there was one."""
        taken = self._subscription.take(timeout)
        if taken is None:
            return False
        values = np.array(deserialize_message(taken.data, Float64MultiArray).data)
        nv = self.model.nv
        torque = values if len(values) == nv else np.full(nv, np.nan)
        publisher = taken.publisher or b""
        self.recording.add_command((self.ticks, wall(), publisher, len(values), torque))
        self.commands_received += 1
        if not self._ignoring:
            fault = self.effort_controller.receive(values)
            if fault is not None:
                self.get_logger().error(fault, throttle_duration_sec=1.0)
        return True

    def advance(self) -> None:
        """Lets a period pass."""
        if self._braking:
            self.ticks += 1
            data, physics = self._physics._data, self._physics
            v = data.qvel[physics._velocity_index] * BRAKING ** (1e3 * self.period)
            data.qvel[physics._velocity_index] = v
            data.qpos[physics._position_index] += self.period * v
            return
        step = self._physics.step
        push = self._push_torque * (self.ticks < self._push_until)
        self._physics.step = lambda torque: step(self._signs * torque + push)
        try:
            super().advance()
        finally:
            del self._physics.step

    def destroy_node(self) -> None:
        self._subscription.destroy()
        super().destroy_node()
