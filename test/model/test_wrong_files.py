"""What is given in place of a URDF is named for what it is, and other encodings load."""

from __future__ import annotations

import gzip
import struct

import pytest
from robots import example_robot, link, robot

from rnea_control.model import RobotModel, RobotModelError

MJCF = b'<mujoco model="arm"><worldbody><body name="link1"/></worldbody></mujoco>'
SDF = b'<?xml version="1.0"?><sdf version="1.7"><model name="arm"/></sdf>'
DAE = b'<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"/>'
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n"
STL = b"\x00" * 80 + struct.pack("<I12fH", 1, *range(12), 0)
XACRO = b'<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro"><xacro:arm prefix="l"/></robot>'
OTHER_XACRO = XACRO.replace(b":xacro=", b":x=").replace(b"xacro:", b"x:")
UNDECLARED = b'<robot name="r"><link name="a"/><foo:link name="b"/></robot>'
UNNAMED_XACRO = b'<robot name="r"><xacro:include filename="a.xacro"/></robot>'
SRDF = b'<robot name="r"><group name="arm"/></robot>'
PAGE = b"<!DOCTYPE html>\n<html><body/></html>"

# What is in the file, and words of the error.
WRONG_FILES = [
    (b"", "empty"),
    (b"  \n", "empty"),
    (SDF, "<sdf>, a URDF has <robot.* SDF file; convert"),
    (MJCF, "<mujoco>.* MJCF .* convert"),
    (DAE, "<COLLADA>.* mesh"),
    (b"solid link0\nfacet normal 0 0 1\n", "STL mesh"),
    (STL, "binary file, such as a mesh"),
    (LFS, "Git LFS pointer.* git lfs pull"),
    (SRDF, "SRDF .*<group>.* the robot's URDF"),
    (PAGE, "web page.* raw file"),
    (b"<launch><node pkg='a'/></launch>", "<launch>.* launch file"),
    (gzip.compress(b"<robot/>", mtime=0), "gzip"),
    (b"\x89PNG\r\n\x1a\n\x00", "this is a picture; give the robot's URDF"),
    (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", "this is a picture"),
    (XACRO, "<xacro:arm> in line 1 is an unexpanded xacro element; expand it first"),
    (UNNAMED_XACRO.replace(b"<x", b"\n\n<x"), "<xacro:include> in line 3 .* expand it first"),
    (b"\n\n" + UNNAMED_XACRO, "<xacro:include> in line 3 .* expand it first"),
    (OTHER_XACRO, "<xacro:arm> in line 1 .* expand it first"),
    (UNDECLARED, "prefix of <foo:link> is not declared; write <link>"),
    (robot(link("base", mass=-1.0)).encode(), "link 'base'"),
    (b'<Robot name="r"/>', "<Robot>.* case-sensitive"),
    ('<robot name="é"/>'.encode("latin-1"), "not in utf-8 at byte 13"),
    (b'<?xml version="1.0" encoding="klingon"?><robot/>', "XML declaration names .* 'klingon'"),
]


@pytest.mark.parametrize(("content", "words"), WRONG_FILES)
def test_wrong_kind_of_file_is_named(content: bytes, words: str, tmp_path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_bytes(content)
    with pytest.raises(RobotModelError, match=rf"arm\.urdf: .*{words}"):
        RobotModel.from_urdf_file(path)


def test_path_and_text_are_told_apart(tmp_path) -> None:
    path = example_robot("panda")
    from_string, from_file = RobotModel.from_urdf_string, RobotModel.from_urdf_file
    is_path, is_text = "path of a file.*from_urdf_file", "URDF text.*from_urdf_string"
    for load, given, words in (
        *((from_string, text, is_path) for text in ("arm.urdf", str(path), "arm.urdf.xacro")),
        (from_string, "package://arm_description/urdf/arm.urdf", is_path),
        (from_string, path, "PosixPath.*from_urdf_file"),
        (from_string, None, "is a NoneType; it must be"),
        (from_file, path.read_text(), is_text),
        (from_file, "\n<robot name='r'/>", is_text),
        (from_file, b"<robot/>", "path is a bytes.*from_urdf_string"),
        (from_file, path.parent, "directory.* panda.urdf"),
        (from_file, tmp_path, "directory"),
        (from_file, "a\0b", "cannot be read"),
        (from_file, tmp_path / "missing.urdf", r"missing\.urdf: cannot be read: No such file"),
        (from_file, path.parents[1] / "srdf" / "panda.srdf", "panda.srdf: this is an SRDF"),
    ):
        with pytest.raises(RobotModelError, match=words):
            load(given)


ENCODINGS = [("utf-16", "UTF-16"), ("utf-16", None), ("utf-16-le", "UTF-16"), ("utf-16-be", None)]
ENCODINGS += [("utf-8-sig", "UTF-8"), ("latin-1", "ISO-8859-1"), ("cp1252", "windows-1252")]
ENCODINGS += [("shift_jis", "Shift_JIS"), ("utf-8", "UTF-16")]


@pytest.mark.parametrize(("encoding", "declared"), ENCODINGS)
def test_encoding_is_understood(encoding: str, declared: str | None, tmp_path) -> None:
    name = "腕" if encoding == "shift_jis" else "bras_à_7_axes"
    text = f'<robot name="{name}"><link name="a"/></robot>'
    if declared:
        text = f'<?xml version="1.0" encoding="{declared}"?>\n{text}'
    path = tmp_path / "arm.urdf"
    path.write_bytes(text.encode(encoding))
    assert RobotModel.from_urdf_file(path).name == name
    assert RobotModel.from_urdf_string("\n " + text).name == name
