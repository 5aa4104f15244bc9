"""Reads the text of a URDF, and recognizes files and strings that are something else.

Common mistakes are a path in place of a text, a mesh, an SRDF, or a file that Git LFS has not
fetched. An XML parser answers "invalid token" to each of them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree as ET
from xml.parsers import expat

from rnea_control.exceptions import UrdfFileError, errors_of, plain, quoted

EXPAND = "expand it first: xacro arm.urdf.xacro > arm.urdf"

# First bytes of files that are not URDFs, and the message.
_PAGE = "this is a web page, not a URDF; download the raw file"
_LFS = "this is a Git LFS pointer, not the file itself; fetch it with git lfs pull"
_BEGINNINGS = {
    b"version https://git-lfs": _LFS,
    b"solid ": "this is an STL mesh; give the URDF that names it",
    b"\x1f\x8b": "this file is compressed with gzip; unpack it first",
    b"\x89png": "this is a picture; give the robot's URDF",
    b"\xff\xd8\xff": "this is a picture; give the robot's URDF",
    b"pk\x03\x04": "this is a ZIP archive; unpack it and give the URDF in it",
    b"<!doctype html": _PAGE,
    b"<html": _PAGE,
}

# Root elements of other formats, in lower case, and the message.
_SDF = "this is an SDF file; convert it to a URDF first"
_MJCF = "this is an MJCF file (MuJoCo); convert it to a URDF first"
_OTHER_ROOTS = {
    "robot": "tags are case-sensitive, write <robot>",
    **dict.fromkeys(("sdf", "gazebo"), _SDF),
    **dict.fromkeys(("mujoco", "mujocoinclude"), _MJCF),
    "collada": "this is a COLLADA mesh; give the URDF that names it",
    "html": _PAGE,
    "launch": "this is a launch file; give the robot's URDF",
    "package": "this is a package.xml; give the robot's URDF",
}

# Children of the root element of an SRDF.
_SRDF_TAGS = (
    "group group_state end_effector virtual_joint passive_joint disable_collisions "
    "disable_default_collisions link_sphere_approximation"
)

# First bytes of each encoding: a byte-order mark (UTF-32 before UTF-16, whose mark is a prefix of
# it), or UTF-16 without a mark.
_ENCODINGS = {
    rb"\xff\xfe\x00\x00|\x00\x00\xfe\xff": "utf-32",
    rb"\xff\xfe|\xfe\xff": "utf-16",
    rb"\xef\xbb\xbf": "utf-8-sig",
    rb"[\s<]\x00[^\x00]": "utf-16-le",
    rb"\x00[\s<]\x00": "utf-16-be",
}
_DECLARATION = re.compile(rb"""^<\?xml[^>]*?\bencoding\s*=\s*["']([^"'>]*)["']""")
# A CDATA section contains no comments.
_CDATA_OR_COMMENT = re.compile(r"<!\[CDATA\[.*?\]\]>|<!--(?P<words>.*?)-->", re.DOTALL)
_PATH = re.compile(
    r'[^<>{"\n]*(/|\\|\.(urdf|xacro|xml|srdf|sdf|stl|dae|obj))[^<>{"\n]*', re.IGNORECASE
)


class _Element(ET.Element):
    """Element with its first line in the file, from 1."""

    line = 0


def line_of(element: ET.Element) -> int:
    """First line of an element of `parse_xml` in the file, from 1."""
    return element.line if isinstance(element, _Element) else 0


def read_urdf_file(path: str | os.PathLike[str]) -> bytes:
    """Bytes of a file.

    Raises:
        UrdfFileError: the file does not exist, is a directory or is not readable, or `path` is URDF
            text.
    """
    if isinstance(path, bytes) or not isinstance(path, (str, os.PathLike)):
        raise UrdfFileError(
            f"the path is a {type(path).__name__}; it must be a str or a Path. If it is URDF text, "
            "use RobotModel.from_urdf_string"
        )
    name = os.fspath(path)
    if name.lstrip("\ufeff \t\r\n").startswith("<"):
        raise UrdfFileError(
            f"{name.strip()[:40]!r}...: this is URDF text, not the path of a file; use "
            "RobotModel.from_urdf_string"
        )
    try:
        return Path(path).read_bytes()
    except IsADirectoryError as error:
        inside = sorted(file.name for file in Path(path).glob("*.urdf"))
        example = f", such as {inside[0]}" if inside else ""
        raise UrdfFileError(
            f"{name}: cannot be read: this is a directory; give a URDF file{example}"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        why = getattr(error, "strerror", None) or error
        raise UrdfFileError(f"{name}: cannot be read: {why}") from error


def parse_xml(xml: str | bytes, notes: list[str] | None = None) -> ET.Element:
    """Parses a URDF and returns its root element `<robot>`; `line_of` gives the lines of elements.

    Args:
        xml: the URDF as text, or as bytes in the encoding of its byte-order mark or declaration,
            else in UTF-8.
        notes: a sentence is appended if the text is invalid XML and is read nevertheless.

    Raises:
        UrdfFileError: `xml` is not a URDF.
    """
    if not isinstance(xml, (str, bytes)):
        hint = "; for a file use RobotModel.from_urdf_file" if isinstance(xml, os.PathLike) else ""
        raise UrdfFileError(
            f"the robot description is a {type(xml).__name__}; it must be str or bytes{hint}"
        )
    whole = xml if isinstance(xml, str) else _decoded(xml)
    text = whole.lstrip("\ufeff \t\r\n")
    if not text.strip():
        raise UrdfFileError("the robot description is empty; it must hold URDF XML")
    _refuse_beginning(text[:100].encode("utf-8", "replace"))
    if len(text) < 4096 and _PATH.fullmatch(text.strip()):
        raise UrdfFileError(
            f"{quoted(text.strip())} is the path of a file, not its text; use "
            "RobotModel.from_urdf_file, or give what is in the file"
        )
    try:
        mended = _CDATA_OR_COMMENT.sub(_without_hyphens, text) if "<!--" in text else text
        root = _elements(mended, whole[: len(whole) - len(text)].count("\n"))
    except (expat.ExpatError, ValueError) as error:
        raise UrdfFileError(
            f"this is not well-formed XML ({error}); a URDF file must start with <robot name=...>"
        ) from error
    if notes is not None and mended != text:
        notes.append(
            "a comment holds '--', which XML does not allow: urdfdom reads it, xacro and others "
            "refuse the file. Remove the hyphens"
        )
    prefix, colon, _ = root.tag.rpartition(":")
    # The namespace identifies xacro's elements, whatever their prefix.
    spaces = {key[6:]: uri for key, uri in root.attrib.items() if key.startswith("xmlns:")}
    of_xacro = tuple(f"{space}:" for space, uri in spaces.items() if "xacro" in uri)
    for element in root.iter():
        element.tag = element.tag.removeprefix(prefix + colon)
        if element.tag.startswith(of_xacro):
            element.tag = f"xacro:{element.tag.partition(':')[2]}"
    if root.tag != "robot":
        hint = _OTHER_ROOTS.get(root.tag.lower(), "give the robot's URDF")
        raise UrdfFileError(
            f"the root element is <{plain(root.tag)}>, a URDF has <robot name=...>; {hint}"
        )
    top = {child.tag for child in root}
    srdf = top.intersection(_SRDF_TAGS.split())
    if srdf and "link" not in top:
        raise UrdfFileError(
            f"this is an SRDF (MoveIt's groups and collisions): it has <{min(srdf)}> and no links; "
            "give the robot's URDF"
        )
    for child in root:
        space, colon, name = child.tag.rpartition(":")
        if colon and name in ("link", "joint") and space not in spaces:
            raise UrdfFileError(
                f"the prefix of <{plain(child.tag)}> is not declared; write <{name}>"
            )
    return root


def _elements(text: str, line: int) -> ET.Element:
    """Root element of well-formed XML that begins after `line` lines of the file; raises ExpatError
    or ValueError for anything else."""
    builder, parser = ET.TreeBuilder(element_factory=_Element), expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = builder.start(tag, attributes)
        assert isinstance(element, _Element)
        element.line = line + parser.CurrentLineNumber

    # Without namespaces, as <gazebo> may hold undeclared prefixes. The encoding declared in a str
    # is ignored.
    parser.StartElementHandler, parser.EndElementHandler = start, builder.end
    parser.CharacterDataHandler = builder.data
    parser.Parse(text, True)
    return builder.close()


def _without_hyphens(found: re.Match[str]) -> str:
    """Replaces hyphens in a comment by spaces, as XML requires; leaves a CDATA section as it is."""
    words = found["words"] or ""
    return found[0] if "--" not in f"{words}-" else f"<!--{words.replace('-', ' ')}-->"


def urdf_text(xml: str | bytes) -> str:
    """Text of a URDF. Decodes bytes and removes the declaration of their encoding; raises
    UrdfFileError for bytes that are not a URDF."""
    if isinstance(xml, str):
        return xml
    with errors_of("robot_description"):
        return re.sub(r"^\s*<\?xml.*?\?>\s*", "", _decoded(xml), flags=re.DOTALL)


def _decoded(data: bytes) -> str:
    _refuse_beginning(data.lstrip())
    encoding = encoding_of(data)
    try:
        text = data.decode(encoding)
    except LookupError as error:
        raise UrdfFileError(
            f"its XML declaration names the encoding {encoding!r}, which is not known; save it as "
            "UTF-8"
        ) from error
    except ValueError as error:
        if b"\x00" not in data:
            at = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
            raise UrdfFileError(
                f"it is not in {encoding}{at}; save it as UTF-8, or name its encoding in "
                'the first line: <?xml version="1.0" encoding="latin-1"?>'
            ) from error
        text = "\x00"
    if "\x00" in text:
        raise UrdfFileError(
            "this is a binary file, such as a mesh, not a URDF; give the URDF that names it"
        )
    return text


def encoding_of(data: bytes) -> str:
    """Encoding by the byte-order mark, the first two bytes or the declaration; else UTF-8."""
    for beginning, encoding in _ENCODINGS.items():
        if re.match(beginning, data):
            return encoding
    found = _DECLARATION.match(data.lstrip()[:1000])
    declared = found[1].decode("ascii", "replace").strip()[:40] if found else "utf-8"
    # A file that was saved again may still declare an encoding of two or four bytes a character.
    wide = declared.lower().replace("_", "-").startswith(("utf-16", "utf-32", "ucs-2"))
    return "utf-8" if wide else declared


def _refuse_beginning(data: bytes) -> None:
    for beginning, what in _BEGINNINGS.items():
        if data[:40].lower().startswith(beginning):
            raise UrdfFileError(what)
