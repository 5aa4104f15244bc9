"""`ToolHandle`: a handle at the tool; while it is held and moved, the tool follows it."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import trimesh
import viser

from rnea_control.array_types import FloatArray
from rnea_control.client import Arm
from rnea_control.dynamics import Workspace, forward_kinematics
from rnea_control.exceptions import RneaControlError
from rnea_control.model import RobotModel

PERIOD = 0.05  # time between two targets [s]
# Time without a movement of the handle after which the stream ends: a browser that hangs, or whose
# connection is lost, does not say that the handle was let go [s].
LONGEST_STILLNESS = 0.3
LARGEST_LEAD = 0.1  # distance of a target from the tool [m]
LARGEST_TURN = 0.3  # turn of a target from the tool [rad]
MOST = 1e6  # largest number that a browser's pose has; larger ones count as this
INVITATION = "hold the handle at the tool, and move it"
FOLLOWS = "the tool follows the handle"
SIZE = 0.2  # length of the axes [m]
MOVED = 1e-4  # change of the tool's pose below which the handle stays


class ToolHandle:
    """The handle.

    Args:
        server: server of the page.
        arm: the arm.

    Attributes:
        words: what the user is to know about the handle.
    """

    def __init__(self, server: viser.ViserServer, arm: Arm) -> None:
        self._arm, self.words = arm, ""
        self._tool = TipPose(arm.model, arm.tip)
        self._lock = threading.Lock()
        self._client: int | None = None  # the browser that holds the handle
        self._pose = np.zeros(7)  # position, and quaternion w, x, y, z
        self._moved_at = 0.0
        self._wake = threading.Event()
        self._controls = server.scene.add_transform_controls(
            "/tool", scale=SIZE, line_width=3.0, depth_test=False, visible=False
        )
        self._controls.on_update(self._note)
        server.on_client_disconnect(self._leave)
        self._ends = False
        self._thread = threading.Thread(target=self._run, name="tool handle", daemon=True)
        self._thread.start()

    @property
    def visible(self) -> bool:
        """True if the handle is shown."""
        return bool(self._controls.visible)

    @visible.setter
    def visible(self, shown: bool) -> None:
        self._client = None
        self._controls.visible = shown
        self.words = INVITATION if shown else ""

    def close(self) -> None:
        """Ends the stream and the thread."""
        self._ends, self._client = True, None
        self._wake.set()
        self._thread.join()

    # In the loop of the browsers' messages, so that they stay in order.

    async def _note(self, event: Any) -> None:
        if event.phase == "start" and self._client is None and self.visible:
            # A handle that is grabbed and not moved commands nothing.
            self._client, self._moved_at = event.client_id, -np.inf
            self._wake.set()
        elif event.client_id != self._client:
            return
        elif event.phase == "end":
            self._client, self.words = None, INVITATION
        elif event.phase == "update":
            pose = np.concatenate([event.target.position, event.target.wxyz])
            with self._lock:
                self._pose, self._moved_at = pose, time.monotonic()

    async def _leave(self, client: viser.ClientHandle) -> None:
        if client.client_id == self._client:
            self._client, self.words = None, INVITATION

    def _run(self) -> None:
        while not self._ends:
            if self._client is None:
                self.words = INVITATION if self.words == FOLLOWS else self.words
                self._wake.wait()
                self._wake.clear()
                continue
            with self._lock:
                pose, moved_at = self._pose.copy(), self._moved_at
            if time.monotonic() - moved_at < LONGEST_STILLNESS:
                try:
                    self._stream(pose)
                    self.words = FOLLOWS
                except RneaControlError as error:
                    self._client, self.words = None, f"the tool does not follow: {error}"
            elif self.words == FOLLOWS:
                self.words = INVITATION
            time.sleep(PERIOD)

    def _stream(self, pose: FloatArray) -> None:
        tool = self._tool.at(self._arm.state.positions)
        position, wxyz = led(tool, pose)
        self._arm.stream_pose(position, wxyz[[1, 2, 3, 0]])

    def show(self, positions: FloatArray) -> None:
        """Keeps the handle at the tool unless it is held; joint positions, shape (nv,)."""
        if self._client is not None or not self.visible or not np.isfinite(positions).all():
            return
        tool = self._tool.at(positions)
        now = np.concatenate([self._controls.position, self._controls.wxyz])
        if np.abs(tool - now).max() > MOVED:
            self._controls.position, self._controls.wxyz = tool[:3], tool[3:]


class TipPose:
    """Forward kinematics of a link; may be called by several threads.

    Args:
        model: model of the arm.
        link: name of the link.
    """

    def __init__(self, model: RobotModel, link: str) -> None:
        self._model, self._link = model, model.link_names.index(link)

    def at(self, positions: FloatArray) -> FloatArray:
        """Position [m] and quaternion w, x, y, z at joint positions, shape (7,)."""
        poses = np.zeros((len(self._model.link_names), 4, 4))
        forward_kinematics(self._model, Workspace(self._model), positions, poses)
        pose = poses[self._link]
        return np.concatenate([pose[:3, 3], trimesh.transformations.quaternion_from_matrix(pose)])


def led(tool: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Position [m] and quaternion w, x, y, z on the way from the tool to a target, at most
    LARGEST_LEAD and LARGEST_TURN away.

    Args:
        tool: position and quaternion of the tool, shape (7,).
        target: position and quaternion of the target, shape (7,); any numbers.
    """
    target = np.clip(target, -MOST, MOST)
    way = target[:3] - tool[:3]
    length = float(np.linalg.norm(way))
    position = tool[:3] + way * min(1.0, LARGEST_LEAD / max(length, LARGEST_LEAD))
    size = float(np.linalg.norm(target[3:]))
    if not 0.5 < size < 2.0:
        return position, tool[3:].copy()
    goal = target[3:] / size
    half = float(np.clip(abs(goal @ tool[3:]), 0.0, 1.0))
    turn = 2.0 * float(np.arccos(half))
    share = min(1.0, LARGEST_TURN / max(turn, LARGEST_TURN))
    return position, trimesh.transformations.quaternion_slerp(tool[3:], goal, share)
