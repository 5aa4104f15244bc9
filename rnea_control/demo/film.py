"""A film of a recorded motion, drawn by MuJoCo where it can without a window, else as lines."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import mujoco
import numpy as np
from PIL import Image

from rnea_control.array_types import FloatArray
from rnea_control.demo.recording import Recording
from rnea_control.demo.robots import DemoRobot
from rnea_control.demo.scene import Scene
from rnea_control.demo.shapes import Shape, shapes
from rnea_control.demo.skeleton import bones, link_poses, skeleton_frames

SIZE = (400, 300)
FRAMES_PER_SECOND = 12.5  # GIF counts in hundredths of a second
COLORS = 32

# What MuJoCo may draw with where there is no window; each is tried in a process of its own, as a
# driver may crash it, and for no longer than this, [s].
BACKENDS = ("egl", "osmesa")
LONGEST_DRAWING = 300.0


def film(path: Path, robot: DemoRobot, recording: Recording) -> str:
    """Writes a film of a recording, in real time.

    Args:
        path: of the film, .gif or .mp4.
        robot: that was recorded.
        recording: its motion.

    Returns:
        what it was drawn with.
    """
    count = max(int(recording.time[-1] * FRAMES_PER_SECOND), 1)
    times = np.arange(count) / FRAMES_PER_SECOND
    rows = np.clip(np.searchsorted(recording.time, times), 0, len(recording.time) - 1)
    poses = link_poses(robot.model, recording.measured[rows])
    frames, objections = drawn_by_mujoco(shapes(robot.path), robot.model.link_names, poses)
    how = "MuJoCo"
    if frames is None:
        frames = skeleton_frames(poses, bones(robot.path, robot.model), SIZE)
        how = f"matplotlib, as MuJoCo cannot draw without a window here ({'; '.join(objections)})"
    (_write_gif if path.suffix.lower() == ".gif" else _write_mp4)(path, frames)
    return how


def drawn_by_mujoco(
    shapes: Sequence[Shape],
    links: Sequence[str],
    poses: FloatArray,
    backends: Sequence[str] = BACKENDS,
) -> tuple[FloatArray | None, list[str]]:
    """Pictures of a motion, shape (n, height, width, 3), bytes; None where no backend works. With
    them what was wrong with the backends that do not, a sentence each.

    Args:
        shapes, links, poses: as for `Scene`.
        backends: values of MUJOCO_GL to try; one that is set already is the only one.
    """
    set_already, objections = os.environ.get("MUJOCO_GL"), []
    for backend in [set_already] if set_already else backends:
        os.environ["MUJOCO_GL"] = backend  # the new process reads it
        try:
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                frames = pool.submit(render, shapes, links, poses).result(LONGEST_DRAWING)
                return frames, objections
        except Exception as error:  # whatever the driver does: there is another way
            objections.append(f"{backend}: {error!r}")
        finally:
            if set_already is None:
                del os.environ["MUJOCO_GL"]
    return None, objections


def render(shapes: Sequence[Shape], links: Sequence[str], poses: FloatArray) -> FloatArray:
    """What `drawn_by_mujoco` runs in a process of its own."""
    scene = Scene(shapes, links, poses)
    width, height = SIZE
    frames = np.zeros((len(poses), height, width, 3), dtype=np.uint8)
    with mujoco.Renderer(scene.model, height, width) as renderer:
        for pose, frame in zip(poses, frames, strict=True):
            scene.place(pose)
            renderer.update_scene(scene.data, scene.camera)
            frame[:] = renderer.render()
    return frames


def _write_gif(path: Path, frames: FloatArray) -> None:
    # One palette for all frames: what does not move then is the same in all, and costs nothing.
    sample = np.concatenate(frames[:: max(len(frames) // 8, 1)])
    palette = Image.fromarray(sample).quantize(COLORS)
    images = [Image.fromarray(frame).quantize(palette=palette, dither=0) for frame in frames]
    images[0].save(
        path,
        save_all=True,
        append_images=images[1:],
        duration=round(1000.0 / FRAMES_PER_SECOND),
        loop=0,
        optimize=True,
    )


def _write_mp4(path: Path, frames: FloatArray) -> None:
    _, height, width, _ = frames.shape
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"]
    given += ["-r", str(FRAMES_PER_SECOND), "-i", "-"]
    command = ["ffmpeg", "-y", "-loglevel", "error", *given, "-pix_fmt", "yuv420p", str(path)]
    subprocess.run(command, input=frames.tobytes(), check=True)
