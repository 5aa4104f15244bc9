"""`Configured`: all parts of the controller while it is configured, around a `ControlLoop`."""

from __future__ import annotations

import time
from contextlib import ExitStack

from lifecycle_msgs.msg import State

from rnea_control.control import Controller, Mode, Supervisor
from rnea_control.control.belief import MOVING
from rnea_control.exceptions import listed
from rnea_control.loop.handover import Handover, HandoverTimes
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.delay_watch import DelayWatch
from rnea_control.node.description_watch import DescriptionWatch
from rnea_control.node.interfaces import (
    EMERGENCY_STOP,
    MODE,
    PARAMETERS_IN_FORCE,
    lacking,
    loop_inputs,
    opened,
)
from rnea_control.node.model_watch import ModelWatch
from rnea_control.node.parameters import InForce
from rnea_control.node.python_ticks import LoopSettings
from rnea_control.node.sentinel_link import SENTINEL, SentinelLink
from rnea_control.node.state_topics import StateTopics
from rnea_control.node.stream_watch import StreamWatch
from rnea_control.node.trajectory_action import TrajectoryAction
from rnea_control.node.trajectory_input import TrajectoryInput
from rnea_control.parameters.settings import payload_doubt
from rnea_control.ros.arm_node import CLOCK, ArmNode
from rnea_control.ros.conventions import mode_event
from rnea_control.ros.effort_command import LAST_WORDS, EffortCommand
from rnea_control.ros.effort_controller import EffortController
from rnea_control.ros.middleware import longest_discovery
from rnea_control.ros.node_parameters import handover_times, parameters_in_force
from rnea_control.ros.presence import ANSWER
from rnea_control.ros.publishers import described, participant, publisher_names, publishers_of
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.retry import Chores

# Time between checks that a moving arm has come to rest [s].
HALT_POLL = 0.005

MODE_NUMBERS = {mode: number for number, mode in enumerate(Mode)}
NO_CLOCK = "use_sim_time is true, and nothing has come on /clock"


class Configured:
    """The control loop with the parts that connect it to ROS.

    Args:
        node: node of the controller.
        given: settings of the controller.
        action: server of the action; None if it is not served.

    Attributes:
        loop: control loop.
        command: publisher of the loop's torques.
        trajectories: passes trajectories to the loop.
        state_topics: publisher of the controller's state.
        effort_controller: state of the controller that takes the commands.
        sentinel: link to the sentinel.
        model_watch: check of the model, once a second.
        stream_watch: report of streams of targets, once a second.
        delay_watch: measurement of the delay of the torques, once a second.
        description: check of the published robot description.
        chores: work that is due once a second.

    Raises:
        RneaControlError: a parameter has an invalid value, or the robot does not fit this
            controller. Everything made so far is destroyed then.
    """

    _payload_doubt = ""

    def __init__(self, node: ArmNode, given: InForce, action: TrajectoryAction | None) -> None:
        self._node, self._parameters, self._released = node, node.parameters, False
        self._rivals = ""  # the message about other publishers that was logged last
        with ExitStack() as undo:  # destroys the parts in reverse order
            self._build(given, action, undo)
            self._undo = undo.pop_all()

    def _build(self, given: InForce, action: TrajectoryAction | None, undo: ExitStack) -> None:
        node, parameters, values = self._node, self._parameters, given.values
        topic, look = parameters["command_topic"], self.look_for_listeners
        reliability = parameters["command_reliability"]
        self.command = EffortCommand(node, topic, reliability, given.model.nv, look)
        undo.callback(self.command.destroy)
        joints, manager = given.model.joint_names, parameters["controller_manager"]
        self.effort_controller = EffortController(node, topic, joints, manager, look, undo)
        self.description = DescriptionWatch(node, given.description, look, undo)
        simulated = node.clock.ros_time_is_active
        times = handover_times(parameters, simulated)
        self.loop = ControlLoop(
            Controller(given.model, given.controller),
            self.command,
            Handover(HandoverTimes.of_controller(*times, simulated, ANSWER, longest_discovery())),
            LoopSettings.of(values, simulated=simulated),
            node.get_logger(),
            node.clock,
        )
        self.loop.rivals = self.rivals
        self.sentinel = SentinelLink(node, self.loop.arm, self.command.topic, undo)
        node.enter_real_time(values, undo)
        self._open_interfaces(action, undo)
        self._tell_sentinel()
        self._hear_states(undo)
        self.delay_watch = DelayWatch(self.loop)
        self.stream_watch = StreamWatch(self.loop)
        self.model_watch = ModelWatch(self.loop, lambda: parameters["payload.link"] or None)
        self.chores = self._made_chores()
        self._warn_of_payload(given)
        undo.callback(self.loop.await_cause)
        undo.callback(self._publish_changes)
        undo.callback(self.deactivate, "the controller was cleaned up or shut down")
        self.loop.warm_up()

    def _open_interfaces(self, action: TrajectoryAction | None, undo: ExitStack) -> None:
        """Creates the topics and services of interfaces.py, and connects the action."""
        node, parameters, loop = self._node, self._parameters, self.loop
        loop.controller.speed_scaling = parameters["speed_scaling.initial_scaling_factor"]
        self.trajectories = TrajectoryInput(loop)
        self.state_topics = StateTopics(node, loop, parameters["state_publish_rate"])
        made = opened(node, self, undo)
        self._modes, self._in_force = made[MODE], made[PARAMETERS_IN_FORCE]
        undo.callback(self.state_topics.stop)
        if words := lacking():
            alone = "" if action else ", and the action: trajectories come by topic only"
            node.get_logger().warning(words + alone, once=True)
        if action is not None:
            action.connect(self.trajectories, parameters["action_monitor_rate"])
            undo.callback(action.disconnect)

    def _hear_states(self, undo: ExitStack) -> None:
        """Connects the loop with states, emergency stops and the sentinel's mode."""
        node = self._node
        self._wake = wake = node.until(undo, "guard_condition", self.tell)
        (states, *beside), kinds = loop_inputs()
        heard = RawSubscription(node, *states, *beside, visible=True)
        undo.callback(heard.destroy)
        self.loop.arm_loop.hear(heard, wake, kinds)
        undo.callback(self.loop.arm_loop.end)

    def resume(self) -> str:
        """Ends what keeps the arm from motion; returns a status message or raises
        ControllerError."""
        if self.loop.supervisor.mode is Mode.GUARDED:
            return self.sentinel.take_back()
        return self.loop.call(lambda it: it.resume(self._stop_publishers()))

    def _stop_publishers(self) -> dict[bytes, str] | None:
        """Names of the publishers of the emergency stop, by their GIDs; None if not known."""
        return self.loop.arm_loop.heard.publishers_of(EMERGENCY_STOP)

    @property
    def stop_holders(self) -> list[str]:
        """Names of the nodes that hold the emergency stop."""
        if self.loop.supervisor.mode is not Mode.EMERGENCY_STOP:
            return []
        return self.loop.supervisor.stop_holders(self._stop_publishers())

    def reset_fault(self) -> str:
        """Ends a fault; returns a status message or raises ControllerError."""
        self.loop.judge_braking()
        return self.loop.call(Supervisor.reset_fault)

    def _publish_changes(self) -> None:
        """Publishes the changes of the mode since the last call."""
        changes = self.loop.changes
        while changes:
            old, new, reason = changes[0]
            before, after = (State(id=MODE_NUMBERS[mode], label=mode.value) for mode in (old, new))
            now = self._node.now()
            if not self._node.publish_or_log(self._modes, mode_event(now, before, after, reason)):
                return  # the next call tries again
            changes.popleft()

    def release(self) -> None:
        """Destroys all parts, after stopping a running loop."""
        self._undo.close()
        self._released = True

    def activate(self) -> str:
        """Answers states from now on; returns the reason if that is refused, otherwise ""."""
        self.look_for_listeners()
        if self._parameters["require_sentinel"] and not self.sentinel.await_it():
            return "require_sentinel is true, and no rnea_sentinel runs"
        self.effort_controller.begin()
        self.loop.start(self.sentinel.label)
        self.sentinel.look()
        self.loop.arm_loop.heard.take(0.0)  # drops a state that came while the loop was inactive
        real_time = self._node.real_time
        self.loop.arm_loop.begin("control loop", real_time)
        log = self._node.get_logger()
        log.info(f"real time: {real_time}")
        if real_time.denied:
            log.warning(
                f"real time: the system denies {', '.join(real_time.denied.values())}; "
                "docs/realtime.md says how to allow it. To run without it, set the parameters to "
                "0, [-1], false and -1"
            )
        log.info(
            "active: waiting for joint_states to hold the measured position. "
            f"{self.loop.arm_loop.heard.name} subscribes to them (ros2 node info)"
        )
        return ""

    def deactivate(self, reason: str) -> None:
        """Brings a moving arm to rest, sends the last command, and logs the effect of that."""
        loop = self.loop
        if not loop.running:
            return
        while loop.halt(reason):
            loop.attend()  # waiting for rest is no hang of the interpreter
            time.sleep(HALT_POLL)
        self.loop.arm_loop.end()
        if loop.stop(reason):
            guarded = self.sentinel.guards
            words = LAST_WORDS["guarded" if guarded else self._parameters["last_command"]]
            self._node.get_logger().info(words)
            speed = loop.arm_loop.speed
            if speed > MOVING and not guarded:
                self._node.get_logger().warning(
                    f"the arm was still moving, at up to {speed:.2g} rad/s or m/s, and "
                    "nothing brakes it now; bring it to rest before you deactivate the controller"
                )

    def put_in_force(self, given: InForce) -> None:
        """Applies changed parameters to the running controller."""
        self.loop.change(given.model, given.controller)
        self._warn_of_payload(given)
        self._changed = True
        self._wake.trigger()  # one message to the sentinel, however many parameters change at once

    def _warn_of_payload(self, given: InForce) -> None:
        """Logs doubts about the payload, once."""
        doubt, before = payload_doubt(given.values, given.model), self._payload_doubt
        self._payload_doubt = doubt
        if doubt and doubt != before:
            self._node.get_logger().warning(doubt)

    def _tell_sentinel(self) -> None:
        """Publishes the parameters in force for the sentinel."""
        name, parameters = self._node.get_fully_qualified_name(), self._parameters
        joints, simulated = parameters["joints"], self._node.clock.ros_time_is_active
        event = parameters_in_force(name, parameters, joints, simulated)
        self._changed = not self._node.publish_or_log(self._in_force, event)

    def look_for_listeners(self) -> None:
        """Passes to the supervisor whether the commands are applied, or what the loop waits for."""
        if self._released:
            return
        self.effort_controller.find()
        loop, topic, listening = self.loop, self.command.topic, False
        loop.supervisor.misfit = self.misfit
        subscribed = self.command.listeners(without=(SENTINEL, self._node.get_name())) > 0
        if not subscribed:
            gone = self.effort_controller.manager_gone
            words = f"for a subscription to {topic}" + f", as {self.effort_controller}" * gone
        elif not self.effort_controller.takes_commands:
            words = f"as {self.effort_controller} and takes no commands"
        elif not self.effort_controller.has_told:
            words = f"for the joints that {self.effort_controller.name} commands"
        elif loop.supervisor.listening:
            return
        else:
            words, listening = f"for joint_states; {topic} has a subscription now", True
        with loop.arm_loop.paused():
            loop.supervisor.hear_listeners(listening, words)

    @property
    def misfit(self) -> str:
        """Why the hardware does not fit the model; empty if it does, as far as it has reported."""
        return self.effort_controller.objection or self.description.difference

    def rivals(self) -> str:
        """Message about several publishers of a topic that only one node may publish: states,
        commands or, in simulated time, the clock. Empty without rivals."""
        node = self._node
        states, clock = (node.resolve_topic_name(name) for name in ("joint_states", CLOCK))
        shared = [states] if self.loop.arm_loop.system_time else [states, clock]
        if all(node.count_publishers(topic) <= 1 for topic in (self.command.topic, *shared)):
            return ""  # the usual case, without the slower query of names
        if found := self._other_commanders():
            return found
        for topic in shared:
            names = sorted(publisher_names(node, topic))  # may have the same name twice
            if len(names) > 1:
                by = " and ".join(names)
                return (
                    f"{topic} is published by {by}; only one node may publish it: stop the others"
                )
        return ""

    def _other_commanders(self) -> str:
        """Message about publishers of commands besides this node and the sentinel; empty without.

        A publisher is identified by its GID. Processes that were dead at the start of this process,
        and are still listed, do not count.
        """
        node, topic = self._node, self.command.topic
        own, sentinel = self.command.gid, self.sentinel.participant
        others, full_name = publishers_of(node, topic), node.get_fully_qualified_name()
        if own not in others:  # not discovered yet, or with another GID in the graph (Cyclone DDS)
            own = next((gid for gid, name in others.items() if name == full_name), b"")
        others.pop(own, None)
        of_sentinel = node.resolve_topic_name(SENTINEL)
        known = {*node.presence.dead, *([] if sentinel is None else [sentinel])}
        found = [
            described(name, gid)
            for gid, name in others.items()
            if participant(gid) not in known and (sentinel is not None or name != of_sentinel)
        ]
        if not found:
            return ""
        return (
            f"{topic} is published by {listed([full_name, *sorted(found)])}; only {full_name} "
            "and its sentinel may publish it: stop the others"
        )

    def _log_rivals(self) -> None:
        """Logs other publishers of states or commands if they have changed."""
        before, self._rivals = self._rivals, self.rivals()
        if self._rivals and self._rivals != before:
            self._node.get_logger().error(self._rivals)

    def remind(self) -> None:
        """Logs what an active controller waits for."""
        log, taker = self._node.get_logger(), self.effort_controller
        if not self.loop.running:
            return
        if self.loop.without_clock:
            log.error(f"{NO_CLOCK}; is the bridge of the clock running?")
        elif self.loop.now is None:
            publishers = self.loop.arm_loop.heard.publishers()
            why = self.loop.supervisor.reason if publishers else "for joint_states"
            log.info(f"still waiting {why}; joint_states has {publishers} publisher(s)")
        elif not taker.takes_commands:
            remedy = "; activate it, or set activate_effort_controller"
            if taker.was_active:
                remedy = "; it was active before: activate it by hand"
            elif self._parameters["activate_effort_controller"]:
                remedy = ", and is activated as soon as the controller commands a gravity torque"
            log.warning(f"the commands are not applied: {taker}{remedy}")
        elif self.command.listeners() == 0:
            cause = f": {taker}" if taker.manager_gone else "; is the effort controller active?"
            log.warning(f"{self.command.topic} has no subscription{cause}")

    def tell(self) -> None:
        """Logs and publishes the news of the loop."""
        self.loop.attend()
        self._publish_changes()
        self.stream_watch.note_publisher()
        if self._changed:
            self._tell_sentinel()
        if self.loop.supervisor.mode is Mode.POWERLESS:
            self._take_power_off()
        self.loop.explain()
        streaming = self.loop.running and self.loop.supervisor.streaming
        if streaming and self._parameters["activate_effort_controller"]:
            self.effort_controller.activate()

    def _take_power_off(self) -> None:
        """Deactivates the effort controller, which closes the brakes of most arms."""
        taker = self.effort_controller
        if self._parameters["power_down"] == "damp":
            return
        if taker.takes_commands and not taker.deactivate():
            self._node.get_logger().error(
                "the controller has let go of the arm, and there is no controller_manager to "
                f"deactivate {taker.name or 'the effort controller'}: engage the brakes, cut the "
                "power",
                throttle_duration_sec=1.0,
            )

    def _made_chores(self) -> Chores:
        """Checks of everything around the loop that may have changed."""
        work = {
            "the check of the effort controller": self.effort_controller.look,
            "the check of subscriptions to the commands": self.look_for_listeners,
            "the check of the sentinel": self.sentinel.look,
            "the check of other publishers": self._log_rivals,
            "the check of the model": self.model_watch.look,
            "the report of streams": self.stream_watch.look,
            "the measurement of the delay": self.delay_watch.look,
            "the check of the brakes": self.loop.judge_braking,
            "the check of the observer": self.loop.judge_robustness,
            "publishing the state": self.state_topics.look_for_listeners,
            "the priority of new threads": self._node.real_time.housekeeping,
            "the report of events": self.tell,
        }
        return Chores(work, self._node.note_failure)
