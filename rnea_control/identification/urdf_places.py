"""Where the elements and attributes of a URDF stand in its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from xml.parsers import expat

import numpy as np

from rnea_control.exceptions import IdentificationError

SPACE = " \t\r\n"
# Between namespace, name and prefix; no XML name and no namespace can hold it.
_SEPARATOR = "\n"

# Where an element begins: by its path below <link>, whose own is ().
Places = dict[tuple[str, ...], int]


def codec_of(urdf: bytes) -> str:
    """The codec that turns bytes into code units of one or two bytes, in which "<" is "<"."""
    beginning = urdf[:4]
    if beginning.startswith(b"\xff\xfe") or beginning[1:2] == b"\x00":
        return "utf-16-le"
    if beginning.startswith(b"\xfe\xff") or beginning[:1] == b"\x00":
        return "utf-16-be"
    return "latin-1"


def code_units(urdf: bytes, codec: str) -> str:
    """One character for each code unit, so that places in it are places in the bytes."""
    if codec == "latin-1":
        return urdf.decode(codec)
    units = np.frombuffer(urdf, dtype="<u2" if codec.endswith("le") else ">u2")
    return "".join(map(chr, units.tolist()))


def places_of(urdf: bytes, codec: str, source: str) -> dict[str, Places]:
    """Where the links and what their inertials hold begin, in `code_units`, by the links' names.

    Raises:
        IdentificationError: an encoding that expat does not read.
    """
    width = 1 if codec == "latin-1" else 2
    # What stands before the XML declaration is no XML, but some programs write it.
    skipped = len(urdf) - len(urdf.lstrip(SPACE.encode())) if width == 1 else 0
    problem: expat.ExpatError | None = None
    # The declaration may still name the encoding that the file had before it was saved as UTF-8.
    for encoding in (None, "utf-8"):
        finder = _Finder(encoding)
        try:
            finder.parser.Parse(urdf[skipped:], True)
        except (expat.ExpatError, ValueError, LookupError) as error:
            problem = problem or expat.ExpatError(str(error))
            continue
        return {
            link: {path: (start + skipped) // width for path, start in found.items()}
            for link, found in finder.places.items()
        }
    raise IdentificationError(
        f"{source}: inertias cannot be written into this file ({problem}); save it as UTF-8, with "
        "no encoding or utf-8 in its first line"
    )


class _Finder:
    """Notes where each link begins, and its inertial with its elements, in bytes."""

    def __init__(self, encoding: str | None) -> None:
        self.parser = expat.ParserCreate(encoding, _SEPARATOR)
        self.parser.namespace_prefixes = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.places: dict[str, Places] = {}
        self._path: list[str] = []
        self._namespace = ""
        self._link: Places = {}

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        namespace, local = name.split(_SEPARATOR)[:2] if _SEPARATOR in name else ("", name)
        if not self._path:
            self._namespace = namespace
        # Elements are known with the namespace of the root, as for RobotModel, and without any.
        self._path.append(local if namespace in ("", self._namespace) else "")
        if self._path[1:] == ["link"]:
            self._link = self.places[attributes["name"]] = {}
        if self._path[1:2] == ["link"] and self._path[2:3] in ([], ["inertial"]):
            # Below <inertial>, the first of a name is the only one.
            self._link.setdefault(tuple(self._path[2:]), self.parser.CurrentByteIndex)

    def _end(self, name: str) -> None:
        self._path.pop()


@dataclass(frozen=True)
class Tag:
    """A start tag: where it is in the text, where the values of its attributes are, whether it ends
    its element too, and whether it is in the text at all."""

    start: int
    end: int
    name: str
    attributes: dict[str, tuple[int, int]]
    is_empty: bool
    is_here: bool = True

    @property
    def prefix(self) -> str:
        """Of the namespace, with its colon."""
        return self.name[: self.name.find(":") + 1]


def read_tag(text: str, start: int) -> Tag:
    """The start tag at `start`, of well-formed XML."""
    if text[start] != "<":
        return Tag(start, start, "", {}, False, is_here=False)
    at = _find_any(text, start, SPACE + "/>")
    name = text[start + 1 : at]
    attributes = {}
    while True:
        while text[at] in SPACE:
            at += 1
        if text[at] in "/>":
            break
        key_start, at = at, _find_any(text, at, SPACE + "=")
        key = text[key_start:at]
        at = _find_any(text, at, "\"'")
        value_start, at = at + 1, text.index(text[at], at + 1)
        attributes[key] = (value_start, at)
        at += 1
    is_empty = text[at] == "/"
    return Tag(start, at + 2 if is_empty else at + 1, name, attributes, is_empty)


def _find_any(text: str, start: int, characters: str) -> int:
    while text[start] not in characters:
        start += 1
    return start
