"""What users read: short cells and paragraphs, links that lead to sections, files that fit."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import rnea_control
from rnea_control.parameters.parameter import expand
from rnea_control.simulation.parameters import PARAMETER_GROUPS, PARAMETERS

REPOSITORY = Path(__file__).parents[1]
PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")])

MOST_WORDS = 25  # in a cell of a table; code counts as one word
MOST_LINES, WIDTH = 5, 120  # of a paragraph or an item of a list


def pieces(text: str) -> Iterator[tuple[int, str, str]]:
    """Line number, kind and text of each table cell, and of each paragraph or list item."""
    in_code, start, lines = False, 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        fence = stripped.startswith("```")
        in_code ^= fence
        other = in_code or fence or stripped.startswith(("#", "|", "<!--", "![")) or not stripped
        item = bool(re.match(r"([-*]|\d+\.) ", stripped))
        if lines and (other or item):
            yield start, "paragraph", " ".join(lines)
            lines = []
        if not in_code and stripped.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", stripped)[1:-1]:
                yield number, "cell", cell.strip()
        if not other:
            start = start if lines else number
            lines.append(stripped)


def too_long(kind: str, text: str) -> bool:
    text = re.sub(r"\]\([^)]*\)", "]", text)
    if kind == "cell":
        return len(re.sub(r"`[^`]*`", "code", text).split()) > MOST_WORDS
    return len(textwrap.wrap(text, WIDTH)) > MOST_LINES


def test_pieces_are_cells_paragraphs_and_items_outside_code() -> None:
    text = "# A\none\ntwo\n\n- three\n- four\n  five\n| a | b |\n```sh\nsix\n```\nseven"
    kinds = [(kind, text) for _, kind, text in pieces(text)]
    assert kinds == [
        ("paragraph", "one two"),
        ("paragraph", "- three"),
        ("paragraph", "- four five"),
        ("cell", "a"),
        ("cell", "b"),
        ("paragraph", "seven"),
    ]
    assert too_long("cell", "word " * 26) and not too_long("cell", "word " * 25)
    assert too_long("paragraph", "word " * 130) and not too_long("cell", "`a b c` " * 25)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_cells_and_paragraphs_are_short(path: Path) -> None:
    found = [
        f"{path.name}:{number}: a {kind} of {len(text.split())} words: {text[:60]}"
        for number, kind, text in pieces(path.read_text())
        if too_long(kind, text)
    ]
    assert not found, "\n".join(found)


def test_the_readme_is_read_in_a_minute() -> None:
    text = (REPOSITORY / "README.md").read_text()
    assert len(text.splitlines()) <= 100
    for number, line in enumerate(re.sub(r"\]\([^)]*\)", "]", text).splitlines(), 1):
        assert len(line) <= WIDTH or line.startswith("|"), f"README.md:{number}: {len(line)}"


def anchors(path: Path) -> set[str]:
    """Anchors of the headings, as GitHub makes them."""
    code = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", code, re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_links_lead_to_sections(path: Path) -> None:
    for file, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)]+)\)", path.read_text()):
        target = path.parent / file if file else path
        if target.suffix == ".md":
            assert anchor in anchors(target), f"{path.name}: {file}#{anchor}"


def blocks(path: str, language: str) -> list[str]:
    found = re.findall(
        rf"^ *```{language}\n(.*?)```", (REPOSITORY / path).read_text(), re.DOTALL | re.MULTILINE
    )
    return [textwrap.dedent(code) for code in found]


def test_files_of_the_first_motion_fit_the_robot_of_the_page() -> None:
    given = {}
    for text in blocks("docs/first_motion.md", "yaml"):
        section = yaml.safe_load(text)
        given |= section.get("/**", section)
    robot = yaml.safe_load((REPOSITORY / "config/robots/franka_fr3.yaml").read_text())["/**"]
    joints = robot["rnea_controller"]["ros__parameters"]["joints"]
    assert given["effort_controller"]["ros__parameters"]["joints"] == joints
    known = expand((*PARAMETERS, *PARAMETER_GROUPS.values()), joints)
    arm = given["rnea_simulated_arm"]["ros__parameters"]
    positions = arm.pop("initial_positions")
    arm |= {f"initial_positions.{joint}": position for joint, position in positions.items()}
    for name, value in arm.items():
        known[name].check(name, value)


def test_commands_of_rnea_move_are_ones_that_it_takes() -> None:
    program = pytest.importorskip("rnea_control.commands.move.executable")
    code = "\n".join(text for path in PAGES for text in blocks(str(path), "sh"))
    commands = re.findall(r"rnea_move (--[^#\n]*)", code)
    assert len(commands) >= 5
    for command in commands:
        program._options(shlex.split(command.partition("--ros-args")[0]))


def test_the_citation_has_the_version_of_the_package() -> None:
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert citation["version"] == rnea_control.__version__
