"""Compiled kernels come from disk when nothing that they are made of has changed, and only then;
whatever is wrong with the disk, they work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tiny_kernel import PACKAGE, SOURCES, Start, begin, cached, result


def replace(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert text.count(old) == 1
    (folder / name).write_text(text.replace(old, new))


def test_second_start_compiles_nothing(start: Start) -> None:
    first, second = start(), start()
    assert (first["value"], first["compiled"], len(first["files"])) == (6.0, 1, 1)
    assert (second["value"], second["compiled"], second["said"]) == (6.0, 0, [])
    assert second["files"] == first["files"]
    assert first["compiler"] and not second["compiler"]


def test_texts_and_comments_compile_nothing(start: Start, folder: Path) -> None:
    start()
    replace(folder, "tiny.py", "so many: %d", "as many as %d")
    replace(folder, "tiny.py", "Of an array, scaled", "The first of an array, scaled")
    replace(folder, "numbers_of_it.py", "A comment.", "Another.")
    replace(folder, "scaling.py", "x times by", "x, by times\n    over")
    replace(folder, "scaling.py", "    return", "    # said why\n\n    return")
    assert start()["compiled"] == 0


@pytest.mark.parametrize(
    ("name", "old", "new", "value"),
    [
        ("numbers_of_it.py", "3.0", "4.0", 8.0),
        ("scaling.py", "by * x", "by * x + 1.0", 7.0),
        ("tiny.py", "x[0]", "x[1]", 15.0),
    ],
)
def test_changes_in_any_file_take_effect(
    start: Start, folder: Path, name: str, old: str, new: str, value: float
) -> None:
    before = start()
    times = (folder / name).stat()
    replace(folder, name, old, new)
    os.utime(folder / name, ns=(times.st_atime_ns, times.st_mtime_ns))  # as after a copy
    after = start()
    assert (after["value"], after["compiled"]) == (value, 1)
    assert len(after["files"]) == 1 and after["files"] != before["files"]  # the old one is gone


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
def test_without_numbas_private_parts_there_is_no_cache(
    start: Start, folder: Path, name: str
) -> None:
    start()
    told = start(RENAMED[name])
    (said,) = told["said"]
    assert "compiled at each start" in said and told["value"] == 6.0
    replace(folder, "numbers_of_it.py", "3.0", "4.0")
    assert start(RENAMED[name])["value"] == 8.0


def test_numbas_own_cache_plays_no_part(start: Start, folder: Path) -> None:
    """Its stamp of the sources may have another name."""
    renamed = """
import inspect
from numba.core import caching
source = inspect.getsource(caching.IndexDataCacheFile)
assert "self._source_stamp" in source
exec(source.replace("_source_stamp", "_stamp_of_sources"), vars(caching))
"""
    assert start(renamed)["compiled"] == 1
    again = start(renamed)
    assert (again["compiled"], again["said"]) == (0, [])
    replace(folder, "numbers_of_it.py", "3.0", "4.0")
    assert start(renamed)["value"] == 8.0


def flipped(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


DAMAGES = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "one bit": flipped,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_file_is_replaced(start: Start, name: str) -> None:
    (path,) = start()["files"]
    path.write_bytes(DAMAGES[name](path.read_bytes()))
    told = start()
    (said,) = told["said"]
    assert f"{path} is damaged" in said
    assert (told["value"], told["compiled"]) == (6.0, 1)
    assert start()["compiled"] == 0


def test_file_that_cannot_be_used(start: Start) -> None:
    """Its checksum is right, but Numba does not take it."""
    start()
    prelude = """
from numba.core import compiler
def _rebuild(*arguments):
    raise KeyError("of another kind")
compiler.CompileResult._rebuild = _rebuild
"""
    told = start(prelude)
    assert told["value"] == 6.0
    assert "of another kind" in told["said"][0]


def unwritable(folder: Path) -> dict[str, str]:
    """Makes the folder's cache and the home directory such that nobody can write there."""
    (folder / "__pycache__").write_text("a file in the way")
    return {"HOME": "/dev/null", "XDG_CACHE_HOME": ""}


def test_read_only_package_uses_the_home(start: Start, folder: Path, tmp_path: Path) -> None:
    environment = {**unwritable(folder), "HOME": str(tmp_path)}
    assert start(**environment)["compiled"] == 1
    again = start(**environment)
    assert (again["value"], again["compiled"], again["said"]) == (6.0, 0, [])
    assert len(list(tmp_path.glob(".cache/rnea_control/tiny_*/*.nbk"))) == 1


def test_folder_of_the_users_choice_comes_first(start: Start, folder: Path, tmp_path: Path) -> None:
    chosen = tmp_path / "chosen"
    told = start(NUMBA_CACHE_DIR=str(chosen))
    assert told["compiled"] == 1 and told["files"] == []
    assert start(NUMBA_CACHE_DIR=str(chosen))["compiled"] == 0
    assert len(list(chosen.glob("tiny_*/tiny.first-*.nbk"))) == 1


@pytest.mark.parametrize("what", ["folder", "file"])
@pytest.mark.parametrize("how", ["group", "world", "owner"])
def test_what_another_user_could_have_written_is_not_run(
    start: Start, folder: Path, tmp_path: Path, what: str, how: str
) -> None:
    """Nor written to: the next folder takes the kernel."""
    assert start(HOME=str(tmp_path), XDG_CACHE_HOME="")["compiled"] == 1
    place = folder / "__pycache__"
    target = place if what == "folder" else next(place.glob("*.nbk"))
    if how == "owner":
        os.chown(target, 65534, 65534)
    else:
        target.chmod(target.stat().st_mode | {"group": 0o020, "world": 0o002}[how])
    second = start(HOME=str(tmp_path), XDG_CACHE_HOME="")
    assert second["compiled"] == 1
    words = "belongs to user 65534" if how == "owner" else "others may write to it"
    assert any(words in text for text in second["said"])
    if what == "folder":
        (kept,) = tmp_path.glob(".cache/rnea_control/*/*.nbk")
        assert kept.parent.stat().st_mode & 0o777 == 0o700
    assert start(HOME=str(tmp_path), XDG_CACHE_HOME="")["compiled"] == 0


def test_link_in_place_of_a_kernel_is_not_followed(start: Start, folder: Path) -> None:
    start()
    (kernel,) = (folder / "__pycache__").glob("*.nbk")
    elsewhere = kernel.rename(folder / "elsewhere")
    kernel.symlink_to(elsewhere)
    assert start()["compiled"] == 1


def test_nowhere_to_write(start: Start, folder: Path) -> None:
    told = start(**unwritable(folder))
    (said,) = told["said"]
    assert "cannot be kept on disk" in said and "NUMBA_CACHE_DIR" in said
    assert told["value"] == 6.0


def test_full_disk(start: Start, folder: Path) -> None:
    """No file can be longer than a kernel's head: what was begun is taken away."""
    full = """
import resource, signal
from rnea_control.kernels import kernel
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
"""
    told = start(full, HOME="/dev/null", XDG_CACHE_HOME="")
    (said,) = told["said"]
    assert "cannot be kept on disk" in said and "too large" in said
    assert told["value"] == 6.0 and told["files"] == []


def test_no_space_left(start: Start) -> None:
    """The disk has no room for the new name either."""
    full = """
import errno, os
from rnea_control.kernels import kernel
def no_space(*arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
os.replace = no_space
"""
    told = start(full, HOME="/dev/null", XDG_CACHE_HOME="")
    (said,) = told["said"]
    assert "No space left" in said
    assert told["value"] == 6.0 and told["files"] == []


def test_two_starts_at_once(folder: Path, start: Start) -> None:
    """Both wait before the kernel until the other is there as well."""
    gate = """
import pathlib, time, os
from rnea_control.kernels import kernel
pathlib.Path(folder, f"here.{os.getpid()}").touch()
while len(list(pathlib.Path(folder).glob("here.*"))) < 2:
    time.sleep(0.001)
"""
    both = [begin(folder, gate), begin(folder, gate)]
    assert [result(each)["value"] for each in both] == [6.0, 6.0]
    told = start()
    assert (told["value"], told["compiled"], told["said"]) == (6.0, 0, [])
    assert len(told["files"]) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_two_users() -> None:
    """Another user takes kernels that root has compiled, and keeps those of other sources at home;
    neither disturbs the other."""
    nobody = 65534
    # Loads as root what it needs of Python, which may be installed where others cannot read.
    become = f"""
import os, numba
from rnea_control.kernels import kernel
numba.njit("f8(f8[::1])")(lambda x: 2.0 * x[0])
os.setgid({nobody})
os.setuid({nobody})
"""
    with tempfile.TemporaryDirectory() as name:
        shared, home = Path(name, "tiny"), Path(name, "home")
        Path(name).chmod(0o755)
        for each in (shared, home):
            each.mkdir(mode=0o755)
        for file, text in SOURCES.items():
            (shared / file).write_text(text)
        os.chown(home, nobody, nobody)
        package = Path(shutil.copytree(PACKAGE, Path(name, "package", "rnea_control")))

        def run(prelude: str = "") -> dict:
            more = {"HOME": str(home), "XDG_CACHE_HOME": ""} if prelude else {}
            return result(begin(shared, prelude, package, **more))

        assert run()["compiled"] == 1
        (of_root,) = cached(shared / "__pycache__")
        of_root.chmod(0o600)
        assert (run(become)["compiled"], run(become)["compiled"]) == (1, 0)
        of_root.chmod(0o644)
        replace(shared, "numbers_of_it.py", "3.0", "4.0")
        other = run(become)
        assert (other["value"], other["compiled"], other["said"]) == (8.0, 1, [])
        (of_nobody,) = home.glob(".cache/rnea_control/*/*.nbk")
        assert of_nobody.stat().st_uid == nobody
        replace(shared, "numbers_of_it.py", "4.0", "3.0")
        assert run()["compiled"] == 0
        assert run(become)["compiled"] == 0


@pytest.mark.explores
def test_change_of_the_vector_algebra_changes_the_dynamics(tmp_path: Path) -> None:
    """The same with the package itself, whose kernels may be in its cache already."""
    copy = Path(shutil.copytree(PACKAGE, tmp_path / "rnea_control"))
    script = (
        "import numpy as np\n"
        "from robots import two_link_arm\n"
        "from rnea_control.dynamics import Workspace, gravity\n"
        "from rnea_control.model import RobotModel\n"
        "m = RobotModel.from_urdf_string(two_link_arm())\n"
        "print(gravity(m, Workspace(m), np.zeros(2), np.zeros(2))[0])\n"
    )
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{tests}"}

    def run() -> float:
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            check=True,
            text=True,
        )
        return float(done.stdout)

    first = run()
    replace(
        copy / "kernels",
        "vector3.py",
        "return (s * a[0], s * a[1], s * a[2])",
        "return (2 * s * a[0], 2 * s * a[1], 2 * s * a[2])",
    )
    assert run() != first
