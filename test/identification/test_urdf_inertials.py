"""Inertias written into a URDF: read back the same, and all else says what it said."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from robots import example_robot, example_robots, joint, link, robot

from rnea_control.exceptions import IdentificationError, RobotModelError
from rnea_control.identification.urdf_inertials import with_inertials
from rnea_control.model import pseudo_inertia
from rnea_control.model.robot_description import description_from_urdf

pytestmark = pytest.mark.filterwarnings("ignore::rnea_control.model.RobotModelWarning")

# Binary fractions, so that nothing is rounded.
INERTIA = pseudo_inertia(2.0, np.array([0.5, -0.25, 1.0]), np.diag([0.5, 0.75, 0.875]))
MASS = '<mass value="2.0"/>'
ELEMENTS = (
    '<origin xyz="0.5 -0.25 1.0"/>',
    MASS,
    '<inertia ixx="0.5" ixy="0.0" ixz="0.0" iyy="0.75" iyz="0.0" izz="0.875"/>',
)


def written(urdf: str | bytes, *links: str) -> str | bytes:
    data = urdf.encode() if isinstance(urdf, str) else urdf
    result = with_inertials(data, dict.fromkeys(links, INERTIA), "arm.urdf")
    return result.decode() if isinstance(urdf, str) else result


def inertias_of(urdf: bytes) -> dict[str, np.ndarray]:
    return description_from_urdf(urdf, "arm.urdf").inertias


# Without ur3.urdf, which is no robot, and the largest humanoids, which take long.
ROBOTS = [path for path in example_robots() if 1000 < path.stat().st_size < 36_000]


def without_inertials(urdf: bytes) -> str:
    """As XML has it: whatever quotes, spaces and references its tags are written with."""
    text = re.sub(r"<inertial>.*?</inertial>", "", urdf.decode(), flags=re.DOTALL)
    return ElementTree.canonicalize(text, with_comments=True)


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.stem)
def test_inertias_of_every_robot_are_read_back(path: Path) -> None:
    before = path.read_bytes()
    own = inertias_of(before)
    assert with_inertials(before, own, path.name) == before
    data = before
    for inertias in ({name: 0.5 * matrix for name, matrix in own.items()}, own):
        data = with_inertials(data, inertias, path.name)
        for name, read in inertias_of(data).items():
            scale = np.abs(inertias[name]).max()
            np.testing.assert_allclose(read, inertias[name], rtol=0.0, atol=1e-14 * scale)
        assert without_inertials(data) == without_inertials(before)


@pytest.mark.parametrize(
    ("codec", "before", "declared"),
    [
        *((codec, b"", "") for codec in ("utf-8-sig", "utf-16", "utf-16-le", "utf-32")),
        *(("utf-8", b"\n  ", ""), ("cp1252", b"", "cp1252"), ("shift_jis", b"", "shift_jis")),
        ("utf-8", b"", "utf-16"),  # wrongly
    ],
)
def test_any_encoding_stays(codec: str, before: bytes, declared: str) -> None:
    encoding = f' encoding="{declared}"' if declared else ""
    text = f'<?xml version="1.0"{encoding}?>\r\n' + robot(
        "<!-- Ärmchen für 🤖\r\n\t-->", link("a"), "\r\n\t", name="Ärm"
    )

    def encode(words: str) -> bytes:
        return before + words.encode(codec, "replace")

    new = '<origin xyz="0.5 -0.25 1.0" rpy="0.0 0.0 0.0"/><mass value="2.0"/>'
    old = '<origin xyz="0.0 0.0 0.0" rpy="0.0 0.0 0.0"/><mass value="1.0"/>'
    expected = text.replace(old, new).replace('ixx="0.1"', 'ixx="0.5"')
    expected = expected.replace('iyy="0.1"', 'iyy="0.75"').replace('izz="0.1"', 'izz="0.875"')
    assert written(encode(text), "a") == encode(expected)


def test_only_numbers_that_change_are_written() -> None:
    text = robot(
        """<link name='a'>
        <inertial  extra="yes"><!-- mass by CAD: 1 kg -->
            <inertia izz="875e-3" iyy="0.750" iyz='0' ixz="0"
                     ixy="0" ixx='9'/>
            <mass value = '1'></mass>
            <origin rpy="0 0 0"/>
        </inertial>
        <gazebo><inertial><mass value="1"/></inertial></gazebo>
        <!-- <inertial><mass value="1"/></inertial> -->
        </link>"""
    )
    expected = text.replace("<link name='a'>", '<link name="a">').replace("  extra", " extra")
    expected = re.sub("'(0|9)'", r'"\1"', re.sub(r"\n +ixy", " ixy", expected))
    expected = expected.replace('"9"', '"0.5"').replace("<mass value = '1'></mass>", MASS)
    expected = expected.replace('<origin rpy="0 0 0"', '<origin rpy="0 0 0" xyz="0.5 -0.25 1.0"')
    assert written(text, "a") == expected
    assert written(text) == text


def test_rotated_inertial_gets_axes_of_the_link() -> None:
    text = written(robot(link("a", rpy=(0.1, 0.2, 0.3))), "a")
    assert 'rpy="0.0 0.0 0.0"' in text
    np.testing.assert_allclose(inertias_of(text.encode())["a"], INERTIA, atol=1e-15)


def test_missing_origin_is_added() -> None:
    text = robot(
        '<link name="a">\n <inertial>\n  <!-- m -->\n  <mass value="1"/>\n  <inertia ixx="0.5" '
        'ixy="0" ixz="0" iyy="0.75" iyz="0" izz="0.875"/>\n </inertial>\n</link>'
    )
    expected = text.replace("<!-- m -->", f"{ELEMENTS[0]}\n  <!-- m -->").replace('"1"', '"2.0"')
    assert written(text, "a") == expected


NEW = {
    "self-closing": ('\n  <link name="a" />\n', '\n  <link name="a">{}</link>\n'),
    "blank": ('\r\n  <link name="a">\r\n  </link>', '\r\n  <link name="a">\r\n  {}\r\n  </link>'),
    "first of several": (
        '\n\t<link name="a">\n\t\t<!-- > -->\n\t\t<visual/>\n\t</link>',
        '\n\t<link name="a">\n\t\t{}\n\t\t<!-- > -->\n\t\t<visual/>\n\t</link>',
    ),
    "with a child": ('\n <link name="a"><visual/></link>', '\n <link name="a">{}<visual/></link>'),
}


def test_new_inertial_is_on_a_line_of_its_own_where_the_next_thing_is() -> None:
    inertial = f"<inertial>{''.join(ELEMENTS)}</inertial>"
    for before, after in NEW.values():
        urdf = f'<robot name="r">{before}</robot>'
        assert written(urdf, "a") == f'<robot name="r">{after.replace("{}", inertial)}</robot>'
        found = inertias_of(written(urdf.encode(), "a"))["a"]
        np.testing.assert_allclose(found, INERTIA, atol=1e-15)


def test_namespaces_stay() -> None:
    text = '<u:robot xmlns:u="http://urdf" xmlns:o="http://other" name="r"><u:link name="a"/>'
    text += '<o:link name="a"/><o:link name="a"/><gazebo><x:y x:z="1"/></gazebo></u:robot>'
    result = written(text, "a")
    inside = "".join(("<inertial>", *ELEMENTS, "</inertial>"))
    inside = inside.replace("<", "<u:").replace("<u:/", "</u:")
    assert result == text.replace('<u:link name="a"/>', f'<u:link name="a">{inside}</u:link>')
    np.testing.assert_allclose(inertias_of(result.encode())["a"], INERTIA, atol=1e-15)


def test_what_cannot_be_written_is_refused() -> None:
    body = link("a")
    inside = body.removeprefix('<link name="a">').removesuffix("</link>")
    twice = body.replace("</link>", f"{inside}</link>")
    entity = robot('<link name="a">&steel;</link>')
    entity = f"<!DOCTYPE robot [<!ENTITY steel '{inside}'>]>{entity}"
    whole = entity.replace(inside, body).replace('<link name="a">&steel;</link>', "&steel;")
    for urdf, name, error, words in (
        (robot(body), "b", IdentificationError, r"arm\.urdf: there is no link 'b'.*robot has a"),
        (robot(twice), "a", RobotModelError, "link 'a': <inertial> is given more than once"),
        (entity, "a", IdentificationError, "link 'a' is written as an XML entity"),
        (whole, "a", IdentificationError, "link 'a' is written as an XML entity"),
    ):
        with pytest.raises(error, match=words):
            written(urdf, name)
    for matrix in (
        np.zeros((3, 3)),
        np.full((4, 4), np.nan),
        np.triu(np.ones((4, 4))),
        pseudo_inertia(-1.0, np.zeros(3), np.eye(3)),
        np.eye(4)[::-1],
    ):
        with pytest.raises(IdentificationError, match=r"link 'a' is .* with a mass above 0"):
            with_inertials(robot(body).encode(), {"a": matrix}, "arm.urdf")
    # Links that are no entity are written, and the entity stays; one without inertia stays without.
    other = entity.replace("&steel;</link>", '&steel;</link><link name="b"/>')
    other = other.replace("</robot>", f"{joint('j', 'a', 'b')}</robot>")
    assert '<link name="a">&steel;</link><link name="b"><inertial>' in written(other, "b")
    urdf = robot('<link name="a"/>').encode()
    assert with_inertials(urdf, {"a": np.zeros((4, 4))}, "arm.urdf") == urdf


def test_panda_keeps_its_lines() -> None:
    """Of a file that people keep under version control only three lines with numbers change, and
    that of a namespace, but for spaces within tags."""
    before = example_robot("panda").read_bytes()
    after = written(before, "panda_link3")
    pairs = zip(*(b"".join(text.split(b" ")).splitlines() for text in (before, after)), strict=True)
    assert sum(old != new for old, new in pairs) == 4
