"""A URDF as text, from bytes in any encoding."""

from __future__ import annotations

import xml.etree.ElementTree as ET


def urdf_text(xml: str | bytes) -> str:
    """The text of a URDF; bytes must be well-formed XML, in the encoding that they declare."""
    if isinstance(xml, str):
        return xml
    # Without the declaration of an encoding that the text no longer has.
    return ET.tostring(ET.fromstring(xml), encoding="unicode")
