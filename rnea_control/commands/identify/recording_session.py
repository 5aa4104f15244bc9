"""`RecordingSession`: from the first joint state to the last one, with a motion in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from rclpy.executors import SingleThreadedExecutor
from rich.status import Status

from rnea_control.commands.identify.motion_sender import MotionSender
from rnea_control.commands.identify.recorder import Recorder
from rnea_control.commands.identify.recording_checks import early_faults, faults
from rnea_control.exceptions import RecordingError
from rnea_control.identification.recording import Recording

# Before and after the motion, [s].
MARGIN = 1.0
# Between two looks at what came, [s].
LOOK = 0.1
# The recording is judged when it is so long, and whenever it is twice as long, [s].
FIRST_JUDGEMENT = 1.0
# Without joint states for so long it is said; a motion waits so long for its controller, [s].
SILENCE, PATIENCE = 5.0, 20.0
# How long a canceled motion may take to end, [s].
LONGEST_END = 3.0
INTERRUPTED = "interrupted"


class RecordingSession:
    """Makes a recording, of which `joints` are looked at, all if it is empty; `recorder` has it
    then, however it ends. `running` says whether to go on, until so many signals came; `status` is
    a line of the console that shows how far it is."""

    def __init__(
        self,
        recorder: Recorder,
        executor: SingleThreadedExecutor,
        status: Status,
        joints: Sequence[str],
        running: Callable[..., bool],
    ) -> None:
        self._recorder = recorder
        self._executor = executor
        self._status = status
        self._joints = joints
        self._running = running
        self._said: set[str] = set()
        self._judge_at = FIRST_JUDGEMENT
        self._states = 0  # that were seen
        self._started = self._heard = time.monotonic()
        self._silence_said = False
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
        self._say(f"sent {sender.duration:.1f} s of trajectory by {sender.way}")
        while self._running() and not sender.ended:
            self._step("moving")
            sender.check()
        if not sender.ended:
            advice = sender.stop()
            self._warn(f"{INTERRUPTED}. {advice}" if advice else INTERRUPTED)
            self._step_until(lambda: sender.ended, LONGEST_END)
            sender.failure = sender.failure or INTERRUPTED
        self._step_until(lambda: False, MARGIN)
        return sender.failure

    def conclude(self) -> None:
        """Ends the recording, and says what is wrong with it."""
        self._recorder.stop()
        if self._recorder.states.messages:
            self._judge(faults)

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
            self._warn(self._sender.words.pop(0))
        states, seconds = len(self._recorder.states.messages), self._elapsed
        rate = states / seconds if seconds else 0.0
        self._status.update(f"{phase}: {seconds:.1f} s, {states} joint states, {rate:.0f} Hz")

    def _look(self) -> None:
        now, states = time.monotonic(), len(self._recorder.states.messages)
        if states > self._states:
            self._states, self._heard, self._silence_said = states, now, False
            self._first = now if self._first is None else self._first
        elif now - self._heard > SILENCE and not self._silence_said:
            self._silence_said = True
            topic, remedy = self._recorder.states.topic, self._recorder.where_else()
            self._warn(f"no joint states on {topic} for {SILENCE:.0f} s; {remedy}")
        if self._elapsed >= self._judge_at:
            self._judge_at *= 2.0
            self._judge(early_faults)

    def _judge(self, check: Callable[[Recording], Iterator[str]]) -> None:
        """Says what is wrong, and each thing once."""
        try:
            found = list(check(self._recorder.recording(self._joints)))
        except RecordingError as error:
            found = [str(error)]
        for text in found:
            if text not in self._said:
                self._said.add(text)
                self._warn(text)

    def _warn(self, text: str) -> None:
        self._say(f"warning: {text}", "yellow")

    def _say(self, text: str, style: str | None = None) -> None:
        self._status.console.print(text, style=style, soft_wrap=True)
