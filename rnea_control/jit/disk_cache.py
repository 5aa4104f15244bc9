"""Compiled kernels on disk, one file each, named by their fingerprint: see fingerprint.py.

Numba's own cache checks one source file, and misses changes in other files. The fingerprint covers
everything that a kernel is compiled from, and a file is used only if its checksum is correct, which
covers its name: no stale or misnamed file is used. After any disk error, the kernel is compiled and
used, with a warning.

The code in a file is executed. Therefore a file and its folder must belong to the user or to root,
and must not be writeable for other users; other files are ignored, with a warning.
"""

from __future__ import annotations

import glob
import hashlib
import os
import pickle
import stat
import sys
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import numba

try:
    from numba.core.compiler import CompileResult
    from numba.core.serialize import dumps
except ImportError:  # `keep_on_disk` warns
    CompileResult = dumps = None  # type: ignore[misc, assignment]

# First bytes of a file; a SHA-256 of its name and the remaining bytes follows.
_MAGIC = b"rnea_control kernel 2\n"
_EARLIER = b"rnea_control kernel 1\n"  # of versions whose files are not used any more
_said: set[str] = set()
# Called once, at the first kernel that is not on disk; may write kernels to disk.
at_first_miss: list[Callable[[], None]] = []


class NotOurs(Exception):
    """A file or folder that is writeable for another user, or something else in place of a file."""


def keep_on_disk(dispatcher: Any, stamp: str, variant: str) -> None:
    """Lets a Numba dispatcher load its machine code from disk, and save it there.

    Args:
        dispatcher: dispatcher of a function that is not compiled yet.
        stamp: fingerprint of everything on which the machine code depends.
        variant: signature, processor and similar properties. Files of one function with different
            variants are all kept; of files with the same variant, only the newest.
    """
    private = (
        (dispatcher, "_cache"),
        (CompileResult, "_reduce"),
        (CompileResult, "_rebuild"),
        (sys.modules[__name__], "dumps"),
    )
    missing = [name for owner, name in private if getattr(owner, name, None) is None]
    if missing:
        _say_once(
            "no cache",
            f"Numba {numba.__version__} has no {', '.join(missing)}, by which kernels are kept on "
            "disk: they are compiled at each start",
        )
        return
    dispatcher._cache = DiskCache(dispatcher.py_func, stamp, variant)


class DiskCache:
    """The cache of one kernel, with the methods that a Numba dispatcher calls."""

    def __init__(self, function: FunctionType, stamp: str, variant: str) -> None:
        module = function.__module__.rpartition(".")[2]
        readable = f"{module}.{function.__qualname__}"[:80].replace("<", "").replace(">", "")
        self._name = f"{readable}-{_digest(variant)[:8]}"
        self._file = f"{self._name}.{stamp[:32]}.nbk"
        self._directories = directories(function.__code__.co_filename)

    def load_overload(self, _signature: Any, target_context: Any) -> Any:
        """Loads the kernel, ready to be called; returns None if it is not on disk. Numba's rules
        for compiling, which take a third of a second to set up, are not needed."""
        found = self._load(target_context)
        if found is None and at_first_miss:
            at_first_miss.pop()()
            found = self._load(target_context)
        return found

    def _load(self, target_context: Any) -> Any:
        for path, data in read_sealed(self._directories, self._file):
            try:
                return CompileResult._rebuild(target_context, *pickle.loads(data))
            except Exception as error:  # of any kind: compiling is always possible
                _say_once("unusable", f"{path} cannot be used ({error!r}): compiled anew")
        return None

    def save_overload(self, _signature: Any, result: Any) -> None:
        """Writes a compiled kernel to the first directory that can be written to."""
        try:
            if result.library.has_dynamic_globals or any(not x.can_cache for x in result.lifted):
                return  # the kernel holds addresses of this process
            data = dumps(result._reduce())
        except Exception as error:  # in private parts of Numba: the kernel itself is valid
            _say_once("unsaved", f"{self._name} cannot be kept on disk: {error!r}")
            return
        directory = write_sealed(self._directories, self._file, data)
        if directory is not None:
            self._remove_older(directory)

    def _remove_older(self, directory: Path) -> None:
        """Removes the files of earlier versions of this kernel."""
        for path in directory.glob(f"{glob.escape(self._name)}.*"):
            if not path.name.startswith(self._file):
                with suppress(OSError):  # removed by another process, or another user's file
                    path.unlink()


def directories(source: str) -> list[Path]:
    """Folders for the kernels of a source file, in order of preference."""
    folder = os.path.dirname(os.path.abspath(source))
    own = f"{os.path.basename(folder)}_{_digest(folder)[:16]}"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    found = [Path(folder, "__pycache__")]
    chosen = getattr(numba.config, "CACHE_DIR", "")
    if chosen:
        found.insert(0, Path(chosen, own))
    if os.path.isabs(home):  # a user without a home directory keeps its "~"
        found.append(Path(home, "rnea_control", own))
    return found


def read_sealed(folders: Iterable[Path], file: str) -> Iterator[tuple[Path, bytes]]:
    """Paths and contents of the files with this name and a correct checksum."""
    for folder in folders:
        path = folder / file
        try:
            data = _read(folder, file)
        except NotOurs as reason:
            _say_once("not ours", f"{path} is not used: {reason}")
            continue
        except OSError:  # missing or not readable; a failed save warns with the reason
            continue
        start = len(_MAGIC) + hashlib.sha256().digest_size
        if data[:start] == _head(file, data[start:]):
            yield path, data[start:]
        elif not data.startswith(_EARLIER):
            _say_once("damaged", f"{path} is damaged: its code is compiled again")


def _head(file: str, data: bytes) -> bytes:
    """First bytes of a file. They cover its name: the code of a robot that was copied to the name
    of a different robot's file is not used."""
    return _MAGIC + hashlib.sha256(b"\0".join((file.encode(), data))).digest()


def write_sealed(folders: Iterable[Path], file: str, data: bytes) -> Path | None:
    """Writes a file for `read_sealed` to the first folder that can be written to; returns the
    folder."""
    data = _head(file, data) + data
    reasons = []
    for folder in folders:
        try:
            prepare(folder)
            _write(folder / file, data)
        except NotOurs as error:
            reasons.append(f"{folder}: {error}")
        except OSError as error:
            reasons.append(str(error))
        else:
            return folder
    _say_once(
        "nowhere",
        f"compiled kernels cannot be kept on disk ({'; '.join(reasons)}), so each start "
        "compiles them anew; set NUMBA_CACHE_DIR to a writeable folder",
    )
    return None


def prepare(folder: Path) -> None:
    """Creates a folder for kernels, unless it exists.

    Raises:
        NotOurs: the folder is writeable for another user.
        OSError: the folder cannot be created.
    """
    beside_sources = folder.name == "__pycache__"  # with Python's files in it
    folder.mkdir(mode=0o755 if beside_sources else 0o700, parents=True, exist_ok=True)
    _check_ours(os.stat(folder))


def _check_ours(status: os.stat_result) -> None:
    """Raises NotOurs for a file or folder that is writeable for another user."""
    if status.st_uid not in (os.geteuid(), 0):
        raise NotOurs(f"it belongs to user {status.st_uid}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotOurs(f"others may write to it (mode {stat.S_IMODE(status.st_mode):o})")


def _read(folder: Path, file: str) -> bytes:
    """Content of a file.

    Raises:
        NotOurs: the file or its folder is writeable for another user, or it is no regular file.
        OSError: the file cannot be read.
    """
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:  # the opened file is checked and read, even if the path is replaced meanwhile
        # A named pipe without a writer would keep the process waiting.
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
        try:
            for each in (place, descriptor):
                _check_ours(os.fstat(each))
            check_regular(descriptor)
            with open(descriptor, "rb", closefd=False) as opened:
                return opened.read()
        finally:
            os.close(descriptor)
    finally:
        os.close(place)


def check_regular(descriptor: int) -> None:
    """Raises NotOurs for an opened pipe, folder or device."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise NotOurs("it is no regular file")


def _write(path: Path, data: bytes) -> None:
    """Writes a file that no other process ever sees half written."""
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        # Writeable for this user only, whatever the umask.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(temporary, flags, 0o644), "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _say_once(topic: str, text: str) -> None:
    if topic not in _said:
        _said.add(topic)
        warnings.warn(text, RuntimeWarning, stacklevel=2)
