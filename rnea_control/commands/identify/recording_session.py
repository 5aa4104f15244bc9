"""`RecordingSession`: from the first joint state to the last one, with a motion in between; and how
it is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from rclpy.executors import SingleThreadedExecutor
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from rnea_control.commands.identify.live_checks import LiveChecks
from rnea_control.commands.identify.motion_sender import MotionSender
from rnea_control.commands.identify.recorder import Recorder
from rnea_control.exceptions import listed
from rnea_control.identification.recorded_topics import StatesTopic
from rnea_control.messages.cdr import CdrError

# Before and after the motion, [s].
MARGIN = 1.0
# Between two looks at what came, [s].
LOOK = 0.1
# Without joint states for so long it is said; a motion waits so long for its controller, [s].
SILENCE, PATIENCE = 5.0, 20.0
# How long a canceled motion may take to end, [s].
LONGEST_END = 3.0
INTERRUPTED = "interrupted"
# Between two lines, where the output is no terminal, [s].
LINES = 5.0


class RecordingSession:
    """Makes a recording of `joints`, empty for those of the first message; `recorder` has it then,
    however it ends. `running` says whether to go on, until so many signals came."""

    def __init__(
        self,
        recorder: Recorder,
        executor: SingleThreadedExecutor,
        display: RecordingDisplay,
        joints: Sequence[str],
        running: Callable[..., bool],
    ) -> None:
        self._recorder = recorder
        self._executor = executor
        self._display = display
        self._joints = tuple(joints)
        self._running = running
        self._checks: LiveChecks | None = None
        self._described = ""
        self._looked = 0  # at so many messages
        self._started = self._heard = time.monotonic()
        self._silence_said = self._odd_said = False
        self._first: float | None = None
        self._sender: MotionSender | None = None

    def listen(self, seconds: float | None) -> str:
        """Listens for so long, or until a signal; returns why it ended early, or nothing."""
        while self._running() and (seconds is None or self._elapsed < seconds):
            self._step("listening")
            if seconds is not None and time.monotonic() - self._started > seconds + SILENCE + 1.0:
                break
        return INTERRUPTED if seconds is not None and not self._running() else ""

    def move(self, sender: MotionSender) -> str:
        """Has a trajectory followed; returns why that failed, or nothing."""
        self._sender = sender
        while self._running() and not (sender.is_ready and self._elapsed >= MARGIN):
            self._step("waiting" if self._first is None else "before the motion")
            if time.monotonic() - self._started > PATIENCE:
                if self._first is None:
                    return f"no joint states on {self._recorder.states.topic}; nothing was sent"
                return f"no controller on {sender.sought}; is it running and active?"
        if not self._running():
            return f"{INTERRUPTED} before the trajectory was sent"
        sender.start()
        self._display.say(f"sent {sender.duration:.1f} s of trajectory by {sender.way}")
        while self._running() and not sender.ended:
            self._step("moving")
            sender.check()
        if not sender.ended:
            advice = sender.stop()
            self._display.warn(f"{INTERRUPTED}. {advice}" if advice else INTERRUPTED)
            self._step_until(lambda: sender.ended, LONGEST_END)
            sender.failure = sender.failure or INTERRUPTED
        self._step_until(lambda: False, MARGIN)
        return sender.failure

    def summary(self) -> list[str]:
        """What the checks counted."""
        self._look()
        return [] if self._checks is None else self._checks.summary()

    @property
    def _elapsed(self) -> float:
        """Since the first joint state, [s]."""
        return 0.0 if self._first is None else time.monotonic() - self._first

    def _step_until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Until it holds, so much time has passed, or a second signal comes."""
        deadline = time.monotonic() + seconds
        while self._running(2) and not condition() and time.monotonic() < deadline:
            self._step("after the motion")

    def _step(self, phase: str) -> None:
        deadline = time.monotonic() + LOOK
        while (now := time.monotonic()) < deadline:
            self._executor.spin_once(timeout_sec=deadline - now)
        self._recorder.follow_commands()
        self._look()
        while self._sender is not None and self._sender.words:
            self._display.warn(self._sender.words.pop(0))
        self._display.show(phase, self._elapsed, len(self._recorder.states.messages))

    def _look(self) -> None:
        messages, now = self._recorder.states.messages, time.monotonic()
        new = messages[self._looked :]
        self._looked += len(new)
        if new:
            self._heard, self._silence_said = now, False
            self._first = now if self._first is None else self._first
            self._judge([message for _, message in new])
        elif now - self._heard > SILENCE and not self._silence_said:
            self._silence_said = True
            topic, why = self._recorder.states.topic, self._recorder.why_silent()
            self._display.warn(f"no joint states on {topic} for {SILENCE:.0f} s; {why}")

    def _judge(self, messages: list[bytes]) -> None:
        topic, odd = StatesTopic(self._recorder.states.topic), ""
        try:
            for message in messages:
                topic.add(0, message)
            topic.finish()
        except CdrError as error:
            odd = f"{error}; the recording has the message as it came"
        joints = self._joints = self._joints or topic.names
        if not joints:
            odd = odd or "joint_states names no joints: nothing can be identified from it"
        elif not odd:
            self._checks = self._checks or LiveChecks(joints)
            urdf = self._recorder.robot_description
            if urdf != self._described:
                self._described = urdf
                self._checks.know(urdf)
            named, stamps, values = topic.joint_columns(joints)
            for text in self._checks.look(stamps[named], np.ascontiguousarray(values[:, named])):
                self._display.warn(text)
            if not named.any():
                missing = [joint for joint in joints if joint not in topic.names]
                odd = (
                    f"{topic.name} lacks {listed(missing)}; it has {listed(topic.names)}. Is "
                    "--joints right, or --namespace?"
                )
        if odd and not self._odd_said:
            self._odd_said = True
            self._display.warn(odd)


class RecordingDisplay(Progress):
    """A bar with time, messages and rate in a terminal, else a line from time to time; a context
    manager. `seconds` is how long the recording is to be; None if nobody knows."""

    def __init__(self, seconds: float | None, console: Console) -> None:
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[figures]}", markup=False),
            console=console,
            disable=not console.is_terminal,
        )
        self._seconds = seconds
        self._bar = self.add_task("waiting", total=seconds, figures="")
        self._line_at = time.monotonic() + LINES
        self._counts: list[tuple[float, int]] = []

    def show(self, phase: str, seconds: float, messages: int) -> None:
        """Shows what is going on, the time since the first message, [s], and the joint states so
        far."""
        now = time.monotonic()
        self._counts = [*(each for each in self._counts if now - each[0] < 1.0), (now, messages)]
        start, first = self._counts[0]
        rate = (messages - first) / max(now - start, 1e-9)
        figures = f"{seconds:5.1f} s, {messages} joint states, {rate:.0f} Hz"
        done = seconds if self._seconds is None else min(seconds, self._seconds)
        self.update(self._bar, description=phase, completed=done, figures=figures)
        if self.disable and now >= self._line_at:
            self._line_at = now + LINES
            self.say(f"{phase}: {figures.strip()}")

    def say(self, text: str, style: str | None = None) -> None:
        """Prints a line above the bar."""
        self.console.print(text, style=style, soft_wrap=True)

    def warn(self, text: str) -> None:
        """Prints a warning above the bar."""
        self.say(f"warning: {text}", "yellow")
