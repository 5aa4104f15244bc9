"""`SentinelLink`: follows the mode of the sentinel, and requests the arm from it."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack

from lifecycle_msgs.msg import TransitionEvent
from rclpy.client import Client
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from rnea_control.exceptions import ControllerError, plain
from rnea_control.loop.handover import UNHEARD, Phase
from rnea_control.node.shared_arm import FRESH, GIVEN_BACK, SharedArm
from rnea_control.ros.arm_node import STEADY, ArmNode
from rnea_control.ros.attributed_subscription import AttributedSubscription
from rnea_control.ros.conventions import COMMANDS, HELPER, LATCHED
from rnea_control.ros.presence import FROM_SEVERAL
from rnea_control.ros.publishers import UNKNOWN, described, participant, publishers_of
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.retry import Retry

SENTINEL = "rnea_sentinel"
MODE = TransitionEvent, f"{SENTINEL}/mode", LATCHED
# Number of looks in a row, a second apart, without a message of the sentinel after which it counts
# as ended; ten of its heartbeats fit between two looks. Two looks are not enough: this process, or
# its executor, may have been paused between them.
SILENT_LOOKS = 3
# Age at which a node must have discovered a sentinel, on a machine that is not busy [s]. An
# activated controller is older: the discovery of others has ended by then (presence.py).
DISCOVERY = 1.0
# Time for which the followed publisher of the mode must be silent, while another publisher sends,
# before that publisher is followed; ten heartbeats [s].
SILENCE = 1.0
LONGEST_REASON = 500  # characters of a reason that are repeated
# Timeout of a request for the arm; later the sentinel has taken the arm again [s].
LONGEST_ANSWER = 0.1
FIRST_WAIT = 1.0  # wait after the first refused request for such an arm [s]
LONGEST_WAIT = 60.0  # upper bound of the wait between two requests for it [s]
GONE = "rnea_sentinel has ended: the arm is not guarded"


class SentinelLink:
    """The sentinel, as the controller knows it.

    Among several publishers of the sentinel's mode, the first one received is followed. Another
    publisher is followed once the followed one is silent while the other sends for `SILENCE`.

    Args:
        node: node of the controller.
        arm: arm that the sentinel shares.
        command_topic: topic of the commands.
        undo: destroys the link.

    Attributes:
        gone: True if the sentinel was present, and sends no messages any more.
        stranger: message about another active publisher of the sentinel's mode; empty without one.
    """

    def __init__(self, node: ArmNode, arm: SharedArm, command_topic: str, undo: ExitStack) -> None:
        self._node, self._arm, self._topic = node, arm, command_topic
        self._label: str | None = None  # None until its mode is received; "" when it has ended
        self.gone = False
        self._looks = 0  # number of looks since its last message
        self._heard_at = -math.inf
        self._commands: RawSubscription | None = None
        self._followed: bytes | None = None  # GID of the followed publisher
        self._other_since = math.inf  # first message of another publisher since the followed one's
        self.stranger = ""
        kind, topic, _ = MODE
        self._modes = AttributedSubscription(node, kind, topic, FROM_SEVERAL, self._hear, undo)
        undo.callback(arm.follow_sentinel, None)
        # A separate node, spun during requests: a callback that awaits an answer keeps rclpy's
        # executor so busy that the answer is never taken.
        name, namespace = f"{node.get_name()}_asks_sentinel", node.get_namespace()
        self._asking = Node(name, namespace=namespace, **HELPER)
        undo.callback(self._asking.destroy_node)
        create = self._asking.create_client
        self._release, self._give_back = (
            create(Trigger, f"{SENTINEL}/{name}") for name in ("release", "give_back")
        )
        self._asks_back = Retry(FIRST_WAIT, LONGEST_WAIT)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._asking)
        undo.callback(self._executor.shutdown)
        undo.callback(self._listen, False)
        left = max(DISCOVERY - node.age, 0.0)
        self._discovery = node.until(undo, "timer", left, self._discovered, clock=STEADY)

    @property
    def label(self) -> str:
        """Label of its mode; empty without a sentinel, `UNHEARD` while a sentinel may be present
        whose mode was not received yet."""
        if self._label is not None:
            return self._label
        return UNHEARD if self._node.age < DISCOVERY or {SENTINEL, UNKNOWN} & self._seen() else ""

    @property
    def guards(self) -> bool:
        """True if the sentinel guards the arm, by a recent message."""
        fresh = time.monotonic() - self._heard_at < FRESH
        return fresh and self._label == Phase.guarding.value

    @property
    def participant(self) -> bytes | None:
        """Participant of the followed sentinel; None while it is not known."""
        known = self._followed is not None and self._modes.names_participants
        return participant(self._followed) if known else None

    def _seen(self) -> set[str]:
        """Names of discovered nodes with a publisher or subscription of the commands, in this
        namespace; only `SENTINEL` if its mode has a publisher. Names are discovered after
        publishers and subscriptions, and are `UNKNOWN` until then."""
        node = self._node
        if node.count_publishers(f"{SENTINEL}/mode"):
            return {SENTINEL}
        ends = node.get_publishers_info_by_topic, node.get_subscriptions_info_by_topic
        infos = (info for end in ends for info in end(self._topic))
        space = node.get_namespace()
        return {i.node_name for i in infos if i.node_name == UNKNOWN or i.node_namespace == space}

    def is_there(self) -> bool:
        """True if the sentinel's mode is received, or the sentinel is discovered."""
        return self.label not in ("", UNHEARD) or SENTINEL in self._seen()

    def await_it(self) -> bool:
        """Waits until a sentinel is present, or must have been discovered; returns `is_there`."""
        while True:
            there = self.is_there()
            if there or self._node.age >= DISCOVERY:
                return there
            time.sleep(0.01)

    def _discovered(self) -> None:
        """Called when a present sentinel must have been discovered: without one, reports that."""
        self._discovery.cancel()
        if not self.label and self._arm.running:
            self._arm.hear_sentinel("")

    def take_back(self) -> str:
        """Requests the arm for an operator; returns a status message.

        Raises:
            ControllerError: the sentinel does not give the arm.
        """
        self._take_back(self._release, f"{GIVEN_BACK} on request")
        return "the controller holds the arm again"

    def _take_back_after_pause(self) -> None:
        """Requests an arm that was lost by a pause, once the pause is over and the arm at rest."""
        is_back = self._arm.is_back()
        if not (is_back and self._asks_back.is_due() and self._arm.knows_torque()):
            return
        try:
            self._take_back(self._give_back, f"{GIVEN_BACK} after a pause")
        except ControllerError as error:
            self._asks_back.failed()
            self._arm.is_kept_from(str(error))
        else:
            self._asks_back.succeeded()

    def _take_back(self, service: Client, reason: str) -> None:
        """Requests the arm by a service of the sentinel once its torque is known, and waits for the
        answer.

        Raises:
            ControllerError: the sentinel does not give the arm.
        """
        if not service.service_is_ready():
            raise ControllerError("the sentinel does not answer; it may just have ended")
        if self._arm.loop.now is None:  # the arm would be given to a controller that cannot take it
            raise ControllerError("no joint state was received yet; call ~/resume again")
        self._listen(self._arm.listens)
        deadline = time.monotonic() + LONGEST_ANSWER
        while not self._arm.knows_torque():  # after a recent take-over: no torque may step
            if time.monotonic() > deadline:
                raise ControllerError(
                    "no command of the sentinel was received; call ~/resume again"
                )
            time.sleep(0.001)
        asked_at = time.monotonic()
        future = service.call_async(Trigger.Request())
        self._executor.spin_until_future_complete(future, LONGEST_ANSWER)
        answer = future.result()
        if answer is None:
            service.remove_pending_request(future)
            raise ControllerError("the sentinel does not answer; call ~/resume again")
        if not answer.success:
            raise ControllerError(
                f"the sentinel does not give the arm: {plain(answer.message, LONGEST_REASON)}"
            )
        if not self._arm.receive(asked_at, reason):
            raise ControllerError("the arm was given too late; the sentinel takes it again")

    def look(self) -> None:
        """Once a second: checks if the sentinel is present, and if its commands are needed."""
        self._looks += 1
        if self._looks >= SILENT_LOOKS and self._label:
            if self._label != Phase.idle.value:
                self._node.get_logger().error(f"{GONE}; start it again")
                self.gone = True
            self._label = ""
        if not self.label:
            self._arm.hear_sentinel("")
        self._listen(self._arm.listens)

    def _hear(self, event: TransitionEvent, gid: bytes | None) -> None:
        if not self._follows(gid):
            return
        label, reason = plain(event.goal_state.label), plain(event.transition.label, LONGEST_REASON)
        self._label, self._looks, self.gone = label, 0, False
        self._heard_at = time.monotonic()
        if self._arm.running:
            self._arm.hear_sentinel(label, reason)
            self._listen(self._arm.listens)
            if self._label == Phase.commanding.value:
                self._take_back_after_pause()
            else:
                self._asks_back.succeeded()  # the sentinel has no arm to give

    def _follows(self, gid: bytes | None) -> bool:
        """True if the publisher of a mode is the followed sentinel."""
        now = time.monotonic()
        if gid == self._followed:
            self._other_since = math.inf
            return True
        self._other_since = min(self._other_since, now)
        if self._followed is not None and self._label and now - self._other_since < SILENCE:
            name = publishers_of(self._node, self._node.resolve_topic_name(MODE[1])).get(gid, "")
            words = f"{described(name, gid)} publishes {MODE[1]} too, and is ignored: stop it"
            if words != self.stranger:
                self._node.get_logger().error(words)
            self.stranger = words
            return False
        self._followed, self._other_since, self.stranger = gid, math.inf, ""
        self._arm.follow_sentinel(gid)
        return True

    def _may_command(self, publisher: bytes | None) -> bool:
        """True if a command may be the sentinel's, by the GID of its publisher."""
        own = self.participant
        return own is None or publisher is None or participant(publisher) == own

    def _listen(self, wanted: bool) -> None:
        """Lets the loop receive the sentinel's commands while the sentinel has the arm."""
        if wanted and self._commands is None:
            # The loop takes the commands itself, in time: the executor may be busy for long.
            kind, qos = Float64MultiArray, COMMANDS
            self._commands = RawSubscription(self._node, kind, self._topic, qos, own_context=False)
            self._commands.on_failure = self._arm.loop.note_untaken
            self._arm.listen(self._commands.poll, self._may_command)
        elif not wanted and self._commands is not None:
            self._arm.listen(None)
            self._commands.destroy()
            self._commands = None
