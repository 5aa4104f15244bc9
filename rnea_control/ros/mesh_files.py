"""Files of the meshes that a URDF names."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory

# Folder in which pip puts robots' packages, such as example-robot-data.
OF_PIP = Path("cmeel.prefix", "share")


def mesh_file(name: str, urdf: Path | None = None) -> Path | None:
    """File of a mesh; None if it is not found.

    Args:
        name: name in a URDF: relative to the URDF, or by file:// or package://. Packages are
            searched in the parent folders of the URDF, and among the packages of ROS and pip.
        urdf: file of the URDF; None if only its text is known.
    """
    scheme, separator, rest = name.partition("://")
    if not separator or scheme == "file":
        path = Path(rest) if separator else (urdf.parent / name if urdf else Path(name))
        return path if (urdf or path.is_absolute()) and path.is_file() else None
    package, _, inside = rest.partition("/")
    folders = [] if urdf is None else [parent / package for parent in urdf.resolve().parents]
    # Raised if it is not a ROS package, or without a ROS environment.
    with contextlib.suppress(PackageNotFoundError, ValueError, OSError):
        folders.append(Path(get_package_share_directory(package)))
    folders += [Path(entry) / OF_PIP / package for entry in sys.path if entry]
    return next((f / inside for f in folders if (f / inside).is_file()), None)
