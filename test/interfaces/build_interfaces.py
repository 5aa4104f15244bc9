"""Builds control_msgs, controller_manager_msgs and linear_feedback_controller_msgs into the virtual
environment that runs this file.

A ROS 2 distribution has these packages; the wheels lack them. What of them is used here is defined
again in `definitions/<package>`, field for field, so that the type hashes are those of the package.
Where a distribution differs, `definitions/<package>_<distribution>` goes before it.

The wheels bring the generators, the headers and the libraries. It takes a C and a C++ compiler.
A package goes into one extension module, with the two type supports that rmw_fastrtps_cpp asks for;
it finds the wheels' libraries as the wheels' own messages do.

    python build_interfaces.py [stamp]

touches `stamp` once the packages are installed. Without a compiler it says so and succeeds.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module, metadata
from pathlib import Path

PACKAGES = ("control_msgs", "controller_manager_msgs", "linear_feedback_controller_msgs")
DEFINITIONS = Path(__file__).with_name("definitions")
PREFIX = Path(sys.prefix)
TYPE_SUPPORTS = ["rosidl_typesupport_fastrtps_c", "rosidl_typesupport_introspection_c"]


def target(package: str) -> Path:
    return Path(sysconfig.get_path("platlib")) / package


def extension(package: str) -> str:
    return f"{package}_s__rosidl_typesupport_c.so"


def links(package: str) -> list[Path]:
    """The names by which rosidl_typesupport_c opens a type support, from LD_LIBRARY_PATH."""
    return [PREFIX / "lib" / f"lib{package}__{each}.so" for each in TYPE_SUPPORTS]


def distribution() -> str | None:
    """The ROS 2 distribution: that of the wheels, or of the sourced workspace."""
    for name in ("jazzy", "kilted"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            metadata.version(f"ros-{name}-rclpy")
            return name
    return os.environ.get("ROS_DISTRO")


def missing_tools() -> list[str]:
    missing = [tool for tool in ("gcc", "g++") if shutil.which(tool) is None]
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        missing.append("Python.h (the package python3-dev)")
    return missing


def collect(package: str, folder: Path) -> list[Path]:
    """Puts the definitions of this distribution into `folder`; their paths in there."""
    for source in (DEFINITIONS / package, DEFINITIONS / f"{package}_{distribution()}"):
        if source.is_dir():
            shutil.copytree(source, folder, dirs_exist_ok=True)
    return sorted(path.relative_to(folder) for path in folder.glob("*/*.*"))


def generate(package: str, root: Path, definitions: list[Path]) -> None:
    """Writes what each generator makes of the definitions into a folder of its own in `root`."""
    folder = root / "definitions"
    for path in definitions:
        kind = path.suffix.removeprefix(".")
        convert = getattr(import_module(f"rosidl_adapter.{kind}"), f"convert_{kind}_to_idl")
        convert(folder, package, path, folder / path.parent)

    idl = [path.with_suffix(".idl") for path in definitions]
    described = root / "rosidl_generator_type_description" / package
    installed = {path.parents[1] for path in PREFIX.glob("share/*/*/*.idl")}
    arguments = {
        "package_name": package,
        "idl_tuples": [f"{folder}:{path}" for path in idl],
        "include_paths": [f"{share.name}:{share}" for share in installed],
        "ros_interface_dependencies": [],
        "target_dependencies": [],
    }

    def run(name: str, function: str, *rest: object) -> None:
        resource = PREFIX / "share" / name / "resource"
        output = root / name / package
        (output / "msg").mkdir(parents=True)
        for template in resource.glob("*visibility_control.h.in"):
            text = template.read_text().replace("@PROJECT_NAME@", package)
            text = text.replace("@PROJECT_NAME_UPPER@", package.upper())
            (output / "msg" / template.stem).write_text(text)
        places = {"output_dir": str(output), "template_dir": str(resource)}
        path = root / "arguments.json"
        path.write_text(json.dumps(arguments | places))
        getattr(import_module(name), function)(str(path), *rest)

    run("rosidl_generator_type_description", "generate_type_hash")
    described_at = [f"{path}:{described / path.with_suffix('.json')}" for path in idl]
    arguments["type_description_tuples"] = described_at
    arguments["ros_interface_files"] = [str(folder / path) for path in definitions]
    run("rosidl_generator_c", "generate_c")
    run("rosidl_typesupport_fastrtps_c", "generate_typesupport_fastrtps_c")
    run("rosidl_typesupport_introspection_c", "generate_c")
    run("rosidl_typesupport_c", "generate_c", TYPE_SUPPORTS)
    run("rosidl_generator_py", "generate_py", ["rosidl_typesupport_c"])


def compile_extension(package: str, root: Path) -> Path:
    """Makes one extension module of all sources in `root`; the folder of the package with it."""
    import numpy  # noqa: PLC0415

    folder = root / "rosidl_generator_py" / package
    includes = [
        *root.iterdir(),
        Path(sysconfig.get_path("include")),
        Path(numpy.get_include()),
        PREFIX / "include",
        *(PREFIX / "include").iterdir(),
    ]
    flags = ["-c", "-O1", "-w", "-fPIC", *(f"-I{path}" for path in includes if path.is_dir())]
    # C++ takes longer, so it comes first.
    sources = [*root.rglob("*.cpp"), *root.rglob("*.c")]

    def compile_one(source: Path) -> None:
        compiler = "gcc" if source.suffix == ".c" else "g++"
        subprocess.run([compiler, *flags, source, "-o", f"{source}.o"], check=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, sources))

    # Of these libraries only what is needed; a symbol that is in none fails at the import below.
    names = ("*rosidl_*", "fastcdr", "rcutils")
    libraries = [path for name in names for path in (PREFIX / "lib").glob(f"lib{name}.so")]
    options = ["-shared", "-Wl,--as-needed", "-Wl,-z,now", "-o", folder / extension(package)]
    objects = [f"{source}.o" for source in sources]
    subprocess.run(["g++", *options, *objects, *libraries], check=True)

    (folder / "__init__.py").touch()
    command = [sys.executable, "-c", f"import {package}.{Path(extension(package)).stem}"]
    subprocess.run(command, cwd=folder.parent, check=True)
    return folder


def uninstall(package: str) -> None:
    """Removes what an earlier build has left, which must not be linked to the new one."""
    shutil.rmtree(target(package), ignore_errors=True)
    for link in links(package):
        link.unlink(missing_ok=True)


def install(package: str, folder: Path) -> None:
    ignored = shutil.ignore_patterns("*.c", "*.o", "__pycache__")
    shutil.copytree(folder, target(package), ignore=ignored)
    for link in links(package):
        link.symlink_to(target(package) / extension(package))


def build(package: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        definitions = collect(package, root / "definitions")
        with contextlib.redirect_stdout(io.StringIO()):
            generate(package, root, definitions)
        try:
            install(package, compile_extension(package, root))
        except subprocess.CalledProcessError as error:
            sys.exit(f"{package}: {error.cmd[0]} failed, see above")


def main() -> None:
    if sys.prefix == sys.base_prefix:
        sys.exit("build_interfaces.py is for the virtual environment of the wheels")
    for package in PACKAGES:
        uninstall(package)
    if missing := missing_tools():
        print(
            f"{' and '.join(PACKAGES)} are not built: no {', no '.join(missing)}. Without them "
            "there is no action, no look at controller_manager and no planner's gains, and their "
            "tests are skipped."
        )
        return
    for package in PACKAGES:
        build(package)
    for stamp in sys.argv[1:]:
        Path(stamp).touch()


if __name__ == "__main__":
    main()
