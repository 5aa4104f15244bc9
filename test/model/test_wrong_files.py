"""What is given in place of a URDF is named for what it is, and other encodings load."""

from __future__ import annotations

import gzip
import re
import struct
import warnings
from collections.abc import Callable

import pytest
from robots import example_robot

from rnea_control.model import RobotModel, RobotModelError, RobotModelWarning


def refused(load: Callable[[], object], words: list[str]) -> None:
    with pytest.raises(RobotModelError) as caught:
        load()
    for word in words:
        assert word in str(caught.value), caught.value


MJCF = '<mujoco model="arm"><worldbody><body name="link1"/></worldbody></mujoco>'
SDF = '<?xml version="1.0"?><sdf version="1.7"><model name="arm"/></sdf>'
DAE = '<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"/>'
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n"
STL = b"\x00" * 80 + struct.pack("<I12fH", 1, *range(12), 0)

# What is in the file, and words of the error.
WRONG_FILES = {
    "empty": (b"", ["empty"]),
    "SDF": (SDF.encode(), ["<sdf>", "SDF file", "convert"]),
    "MJCF": (MJCF.encode(), ["<mujoco>", "MJCF", "convert"]),
    "COLLADA mesh": (DAE.encode(), ["<COLLADA>", "mesh"]),
    "STL mesh": (b"solid link0\nfacet normal 0 0 1\n", ["STL mesh"]),
    "binary STL mesh": (STL, ["binary file", "mesh"]),
    "Git LFS pointer": (LFS.encode(), ["Git LFS pointer", "git lfs pull"]),
    "SRDF": (
        b'<robot name="r"><group name="arm"/></robot>',
        ["SRDF", "<group>", "the robot's URDF"],
    ),
    "web page": (b"<!DOCTYPE html>\n<html><body/></html>", ["web page", "raw file"]),
    "launch file": (b"<launch><node pkg='a'/></launch>", ["<launch>", "launch file"]),
    "gzip": (gzip.compress(b"<robot/>"), ["gzip"]),
    "xacro": (
        b'<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro"><xacro:arm prefix="l"/></robot>',
        ["xacro", "expand it first"],
    ),
    "xacro without its namespace": (
        b'<robot name="r"><xacro:include filename="a.xacro"/></robot>',
        ["xacro", "expand it first"],
    ),
    "capital <Robot>": (b'<Robot name="r"/>', ["<Robot>", "case-sensitive"]),
    "latin-1 undeclared": ('<robot name="é"/>'.encode("latin-1"), ["not in utf-8", "byte 13"]),
    "unknown encoding": (b'<?xml version="1.0" encoding="klingon"?><robot/>', ["'klingon'"]),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_wrong_kind_of_file_is_named(name: str, tmp_path) -> None:
    content, words = WRONG_FILES[name]
    path = tmp_path / "arm.urdf"
    path.write_bytes(content)
    refused(lambda: RobotModel.from_urdf_file(path), ["arm.urdf: ", *words])


def test_real_srdf_is_named() -> None:
    panda = example_robot("panda")
    srdf = panda.parents[1] / "srdf" / "panda.srdf"
    refused(lambda: RobotModel.from_urdf_file(srdf), ["panda.srdf: this is an SRDF"])


def test_path_and_text_are_told_apart(tmp_path) -> None:
    from_string, from_file = RobotModel.from_urdf_string, RobotModel.from_urdf_file
    path = example_robot("panda")
    for text in (
        "arm.urdf",
        str(path),
        "package://arm_description/urdf/arm.urdf",
        "arm.urdf.xacro",
    ):
        refused(lambda text=text: from_string(text), ["path of a file", "from_urdf_file"])
    refused(lambda: from_string(path), ["PosixPath", "from_urdf_file"])
    for text in (example_robot("panda").read_text(), "\n<robot name='r'/>"):
        refused(lambda text=text: from_file(text), ["URDF text", "from_urdf_string"])
    refused(lambda: from_file(b"<robot/>"), ["path is a bytes", "from_urdf_string"])
    refused(lambda: from_file(path.parent), ["directory", "panda.urdf"])
    refused(lambda: from_file(tmp_path), ["directory"])
    refused(lambda: from_file("a\0b"), ["cannot be read"])


ENCODINGS = {
    "UTF-16": ("utf-16", "UTF-16"),
    "UTF-16 undeclared": ("utf-16", None),
    "UTF-16 without its mark": ("utf-16-le", "UTF-16"),
    "UTF-16 big-endian without its mark": ("utf-16-be", None),
    "UTF-8 with a mark": ("utf-8-sig", "UTF-8"),
    "latin-1": ("latin-1", "ISO-8859-1"),
    "windows-1252": ("cp1252", "windows-1252"),
    "Japanese": ("shift_jis", "Shift_JIS"),
    "declared UTF-16 but saved as UTF-8": ("utf-8", "UTF-16"),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_encoding_is_understood(name: str, tmp_path) -> None:
    encoding, declared = ENCODINGS[name]
    robot = "腕" if encoding == "shift_jis" else "bras_à_7_axes"
    text = re.sub(r"<\?xml.*?\?>", "", example_robot("panda").read_text(), flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).replace(
        'name="panda"', f'name="{robot}"'
    )
    if declared:
        text = f'<?xml version="1.0" encoding="{declared}"?>\n{text}'
    path = tmp_path / "arm.urdf"
    path.write_bytes(text.encode(encoding))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        assert RobotModel.from_urdf_file(path).name == robot
        assert RobotModel.from_urdf_string("\n " + text).name == robot
