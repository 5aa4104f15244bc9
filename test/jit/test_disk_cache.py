"""Kernels come from disk when nothing that they are made of has changed, and only then."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from tiny_kernel import PACKAGE, result

from rnea_control.jit import side_by_side


def replace(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert text.count(old) == 1
    (folder / name).write_text(text.replace(old, new))


def test_second_start_compiles_nothing(start, folder: Path) -> None:
    first, second = start(), start()
    assert (first["value"], first["compiled"], len(first["files"])) == (6.0, 1, 1)
    assert (second["value"], second["compiled"], second["said"]) == (6.0, 0, [])
    assert second["files"] == first["files"]
    program = "import sys, tiny; sys.exit('numba.np.linalg' in sys.modules)"  # sets the compiler up
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{PACKAGE.parent}"}
    # Not in the repository, whose sources Python would import.
    subprocess.run([sys.executable, "-c", program], env=environment, cwd=folder, check=True)


def test_changes_in_any_file_take_effect(start, folder: Path) -> None:
    before = start()
    more = ("scaling.py", "by * x", "by * x + 1.0", 9.0), ("tiny.py", "x[0]", "x[1]", 21.0)
    for name, old, new, value in (("numbers_of_it.py", "3.0", "4.0", 8.0), *more):
        times = (folder / name).stat()
        replace(folder, name, old, new)
        os.utime(folder / name, ns=(times.st_atime_ns, times.st_mtime_ns))  # as after a copy
        after = start()
        assert (after["value"], after["compiled"]) == (value, 1)
        assert len(after["files"]) == 1 and after["files"] != before["files"]  # the old is gone
        before = after


RENAMED = {
    "the dispatcher's cache": """
import inspect, textwrap
from numba.core import dispatcher
made, compile_ = dispatcher.Dispatcher.__init__, inspect.getsource(dispatcher.Dispatcher.compile)
def made_with_store(self, *arguments, **options):
    made(self, *arguments, **options)
    self._store = vars(self).pop("_cache")
exec(textwrap.dedent(compile_).replace("self._cache.", "self._store."), vars(dispatcher))
dispatcher.Dispatcher.__init__ = made_with_store
dispatcher.Dispatcher.compile = dispatcher.compile
""",
    "_reduce": "from numba.core.compiler import CompileResult; del CompileResult._reduce",
    "_rebuild": "from numba.core.compiler import CompileResult; del CompileResult._rebuild",
    "dumps": """
import types, numba
from numba.core import pythonapi, serialize
pythonapi.serialize = types.SimpleNamespace(**vars(serialize))  # Numba's own use of it
del serialize.dumps
""",
}


@pytest.mark.parametrize("name", RENAMED)
def test_without_numbas_private_parts_there_is_no_cache(start, folder: Path, name: str) -> None:
    start()
    replace(folder, "numbers_of_it.py", "3.0", "4.0")
    told = start(RENAMED[name])
    (said,) = told["said"]
    assert "compiled at each start" in said and told["value"] == 8.0


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("damage", [lambda data: b"", flipped], ids=["empty", "one bit"])
def test_damaged_file_is_replaced(start, damage: Callable[[bytes], bytes]) -> None:
    (path,) = start()["files"]
    path.write_bytes(damage(path.read_bytes()))
    told = start()
    (said,) = told["said"]
    assert f"{path} is damaged" in said
    assert (told["value"], told["compiled"]) == (6.0, 1)
    assert start()["compiled"] == 0
    # Its checksum is right, but Numba does not take it.
    told = start("""
from numba.core import compiler
def _rebuild(*arguments):
    raise KeyError("of another kind")
compiler.CompileResult._rebuild = _rebuild
""")
    assert told["value"] == 6.0
    assert "cannot be used (KeyError('of another kind'))" in told["said"][0]


def test_kernel_under_the_name_of_another_one_is_not_used(start, folder: Path) -> None:
    (before,) = start()["files"]
    of_another = before.read_bytes()
    replace(folder, "numbers_of_it.py", "3.0", "4.0")
    (path,) = start()["files"]
    assert path != before
    path.write_bytes(of_another)  # whose checksum is correct
    told = start()
    assert (told["value"], told["compiled"]) == (8.0, 1)
    assert any(f"{path} is damaged" in text for text in told["said"])


@pytest.mark.parametrize("place", [os.mkfifo, os.mkdir], ids=["named pipe", "folder"])
def test_what_is_no_file_does_not_hold_up_a_start(
    start, folder: Path, place: Callable[[Path], None], tmp_path: Path
) -> None:
    """Beside a named pipe that nobody writes to, a process would wait for ever."""
    elsewhere = {"HOME": str(tmp_path), "XDG_CACHE_HOME": ""}
    (path,) = start(**elsewhere)["files"]
    path.unlink()
    place(path)
    with deadline():
        told = start(**elsewhere)
        again = start(**elsewhere)
    assert any(f"{path} is not used: it is no regular file" in text for text in told["said"])
    assert (told["value"], told["compiled"], again["value"], again["compiled"]) == (6.0, 1, 6.0, 0)


def test_named_pipe_in_place_of_the_lock_holds_up_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "directories", lambda source: [tmp_path])
    os.mkfifo(tmp_path / side_by_side.LOCK)
    with deadline():
        assert side_by_side._lock() is None


@contextmanager
def deadline() -> Iterator[None]:
    """Fails where a wait would last for ever."""

    def fail(number: int, frame: FrameType | None) -> None:
        pytest.fail("it waits for ever")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(60)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def unwritable(folder: Path) -> dict[str, str]:
    """Makes the folder's cache and the home directory such that nobody can write there."""
    (folder / "__pycache__").write_text("a file in the way")
    return {"HOME": "/dev/null", "XDG_CACHE_HOME": ""}


def test_read_only_package_uses_the_home_but_first_the_users_choice(
    start, folder: Path, tmp_path: Path
) -> None:
    chosen = tmp_path / "chosen"
    told = start(NUMBA_CACHE_DIR=str(chosen))
    assert told["compiled"] == 1 and told["files"] == []
    assert start(NUMBA_CACHE_DIR=str(chosen))["compiled"] == 0
    assert len(list(chosen.glob("tiny_*/tiny.first-*.nbk"))) == 1
    environment = {**unwritable(folder), "HOME": str(tmp_path)}
    assert start(**environment)["compiled"] == 1
    again = start(**environment)
    assert (again["value"], again["compiled"], again["said"]) == (6.0, 0, [])
    assert len(list(tmp_path.glob(".cache/rnea_control/tiny_*/*.nbk"))) == 1


@pytest.mark.parametrize(
    ("what", "how"), [("folder", "world"), ("folder", "owner"), ("file", "group")]
)
def test_what_another_user_could_have_written_is_not_run(
    start, folder: Path, tmp_path: Path, what: str, how: str
) -> None:
    """Nor written to: the next folder takes the kernel."""
    elsewhere = {"HOME": str(tmp_path), "XDG_CACHE_HOME": ""}
    assert start(**elsewhere)["compiled"] == 1
    place = folder / "__pycache__"
    target = place if what == "folder" else next(place.glob("*.nbk"))
    if how == "owner":
        os.chown(target, 65534, 65534)
    else:
        target.chmod(target.stat().st_mode | {"group": 0o020, "world": 0o002}[how])
    second = start(**elsewhere)
    assert second["compiled"] == 1
    words = "belongs to user 65534" if how == "owner" else "others may write to it"
    assert any(words in text for text in second["said"])
    if what == "folder":
        (kept,) = tmp_path.glob(".cache/rnea_control/*/*.nbk")
        assert kept.parent.stat().st_mode & 0o777 == 0o700
    assert start(**elsewhere)["compiled"] == 0


def test_link_in_place_of_a_kernel_is_not_followed_and_none_is_needed(start, folder: Path) -> None:
    (kernel,) = start()["files"]
    kernel.symlink_to(kernel.rename(folder / "elsewhere"))
    assert start()["compiled"] == 1
    shutil.rmtree(folder / "__pycache__")
    told = start(**unwritable(folder))
    (said,) = told["said"]
    assert "cannot be kept on disk" in said and "NUMBA_CACHE_DIR" in said
    assert told["value"] == 6.0


FULL = {
    # No file can be longer than a kernel's head: what was begun is taken away.
    "too large": """
import resource, signal
from rnea_control.jit import kernel
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
""",
    # Nor is there room for the new name.
    "No space left": """
import errno, os
from rnea_control.jit import kernel
def no_space(*arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
os.replace = no_space
""",
}


@pytest.mark.parametrize("words", FULL)
def test_full_disk(start, words: str) -> None:
    told = start(FULL[words], HOME="/dev/null", XDG_CACHE_HOME="")
    (said,) = told["said"]
    assert "cannot be kept on disk" in said and words in said
    assert told["value"] == 6.0 and told["files"] == []


def test_two_starts_at_once(folder: Path, begin, start) -> None:
    """Both wait before the kernel until the other is there as well."""
    gate = """
import pathlib, time, os
from rnea_control.jit import kernel
pathlib.Path(folder, f"here.{os.getpid()}").touch()
while len(list(pathlib.Path(folder).glob("here.*"))) < 2:
    time.sleep(0.001)
"""
    both = [begin(folder, gate), begin(folder, gate)]
    assert [result(each)["value"] for each in both] == [6.0, 6.0]
    told = start()
    assert (told["value"], told["compiled"], told["said"]) == (6.0, 0, [])
    assert len(told["files"]) == 1


# What a process lacks of its kernels is compiled by another one, on all cores.
BEGIN = """
import os
os.environ["PYTHONPATH"] += os.pathsep + folder
from rnea_control.jit.side_by_side import compiled_side_by_side
context = compiled_side_by_side("tiny", tell={tell})
context.__enter__()
"""
SILENT = BEGIN.format(tell="str")


def test_the_process_itself_compiles_nothing(start) -> None:
    first = start(SILENT)
    assert (first["value"], first["compiled"], first["said"]) == (6.0, 0, [])
    assert len([path for path in first["files"] if path.name.startswith("tiny.first-")]) == 1
    assert start()["compiled"] == 0


def test_who_is_told_may_end_it(begin, folder: Path) -> None:
    told = result(begin(folder, BEGIN.format(tell="lambda progress: sys.exit(progress)")))
    assert "SystemExit: 0 of 1 kernels" in told["failure"]


def test_no_other_user_can_hold_up_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may read a file may lock it: the lock of an installation is its owner's alone."""
    monkeypatch.setattr(side_by_side, "directories", lambda source: [tmp_path])
    monkeypatch.setattr(side_by_side.time, "sleep", lambda seconds: pytest.fail("it waits"))
    before = os.umask(0)
    try:
        with side_by_side._lock():
            pass
    finally:
        os.umask(before)
    tmp_path.chmod(0o755)
    readable = [path for path in tmp_path.iterdir() if path.stat().st_mode & 0o077]
    assert not readable
    # An earlier version's, which everybody may read.
    with (tmp_path / "compiling.lock").open("ab") as old:
        fcntl.flock(old, fcntl.LOCK_EX)
        with side_by_side._turn(side_by_side._lock()):
            pass
