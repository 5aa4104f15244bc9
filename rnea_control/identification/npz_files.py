"""Reads and writes recordings as `.npz` files of NumPy."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.recording import Recording

NEEDED = ("time", "q", "effort", "joints")
WANTED = (
    "it must have time (samples,), q, effort, optionally v and commanded (samples, joints), joints "
    "(names), and optionally robot_description (text)"
)


def read_npz(path: Path) -> Recording:
    """A file with the arrays `time`, `q`, `effort`, `joints`, and optionally `v`, `commanded`,
    `robot_description`.

    Raises:
        RecordingError: it is another kind of file, or its arrays do not fit each other.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise RecordingError(
            f"{path} is not a readable .npz file: {error}. {WANTED[0].upper()}{WANTED[1:]}; write "
            "it with numpy.savez, names as an array of strings, without pickled objects"
        ) from error
    missing = [name for name in NEEDED if name not in arrays]
    if missing:
        raise RecordingError(
            f"{path} has {listed(list(arrays)) or 'no arrays'}, but no {listed(missing)}; {WANTED}"
        )
    joints = arrays["joints"]
    if joints.ndim != 1 or joints.dtype.kind not in "US":
        raise RecordingError(
            f"{path}: joints is of {joints.dtype} and shape {joints.shape}; it must be names"
        )
    names = tuple(map(str, joints.astype(str)))
    time = _numbers(path, "time", arrays["time"], None)
    shape = len(time), len(names)
    none = np.full(shape, np.nan)
    columns = [
        _numbers(path, name, arrays.get(name, none), shape)
        for name in ("q", "v", "effort", "commanded")
    ]
    description = str(arrays.get("robot_description", ""))
    return recording_of_table(path, names, time, columns, description)


def write_npz(path: Path, recording: Recording) -> None:
    """Writes a new file, from which `read_npz` gives the same bits.

    Raises:
        RecordingError: it exists already, or cannot be written.
    """
    try:
        with path.open("xb") as file:
            np.savez_compressed(
                file,
                time=recording.time,
                q=recording.q,
                v=recording.v,
                effort=recording.effort,
                commanded=recording.commanded,
                joints=np.array(recording.joints),
                robot_description=np.array(recording.robot_description),
            )
    except OSError as error:
        raise RecordingError(f"{path} cannot be written: {error}") from error


def recording_of_table(
    path: Path,
    joints: tuple[str, ...],
    time: FloatArray,
    columns: list[FloatArray],
    robot_description: str,
) -> Recording:
    """A recording of columns that fit each other; time is counted from the first sample.

    Args:
        columns: q, v, effort and commanded, shape (samples, joints).

    Raises:
        RecordingError: no samples or joints, a joint twice, or times that are not finite.
    """
    if not len(time) or not joints:
        raise RecordingError(f"{path} has {len(time)} samples of {len(joints)} joints; {WANTED}")
    if len(set(joints)) != len(joints):
        raise RecordingError(f"{path} names a joint twice: {listed(joints)}; name each once")
    if not np.isfinite(time).all():
        i = int(np.argmin(np.isfinite(time)))
        raise RecordingError(
            f"{path}: time {i} is {time[i]}; every time must be finite, in seconds"
        )
    q, v, effort, commanded = columns
    return Recording(str(path), joints, time - time[0], q, v, effort, commanded, robot_description)


def _numbers(path: Path, name: str, array: np.ndarray, shape: tuple[int, int] | None) -> FloatArray:
    fits = array.ndim == 1 if shape is None else array.shape == shape
    if not fits or array.dtype.kind not in "fiu":
        wanted = "(samples,)" if shape is None else str(shape)
        raise RecordingError(
            f"{path}: {name} is of {array.dtype} and shape {array.shape}; it must be numbers of "
            f"shape {wanted}"
        )
    return np.ascontiguousarray(array, dtype=np.float64)
