"""The check of the language of docstrings and comments."""

from __future__ import annotations

from pathlib import Path

import pytest
from language import CHECKED, CONSTANTS, RULES, findings, main

BAD = '''"""Delay of the efforts."""

# So many samples
# are enough, for somebody who waits.
SAMPLES, SECONDS = 100, -2.0
LOW, HIGH = range(2)


class Message:
    """A message.

    Attributes:
        stamp: of the header, [ns].
        text: its text; that
            one is quoted.
    """


def solve(rows: int) -> int:
    """What the rows stand for. Whether they are told apart, as of `other`, goes by a number that
    is none; it hears of it."""
    return rows
'''
GOOD = '''"""Delay of the efforts."""

# Ranges of samples; so many that a part of them is enough.
SAMPLES = 100  # number of samples
SECONDS = -2.0  # length of a range [s]
first, second = sorted([SAMPLES, 2])


def solve(rows: int) -> int:
    """Solves the rows. Of course, they stand in order.

    Args:
        rows: number of rows, that of the header.
    """
    return rows  # "What" in a text is no sentence
'''


def found_in(text: str, path: Path) -> list[tuple[int, str]]:
    path.write_text(text)
    return sorted(findings(path))


def test_names_line_words_and_what_to_write_instead(tmp_path: Path) -> None:
    found = found_in(BAD, tmp_path / "bad.py")
    lines = [line for line, _ in found]
    assert lines == [3, 4, 5, 6, 13, 14, *[20] * 7, 21]
    assert (5, CONSTANTS) in found and (6, CONSTANTS) in found
    assert (14, "'that one': repeat the noun") in found
    said = " ".join(words for _, words in found)
    assert all(advice in said for advice in RULES.values())


def test_passes_good_sentences(tmp_path: Path) -> None:
    assert found_in(GOOD, tmp_path / "good.py") == []


def test_fails_lint_by_its_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "A page.\n\n```sh\n# What a shell does.\n```\n\n    What it prints.\n\n"
        "The answer `told\nso`, and `who`.\n\nWhat a page says.\n"
    )
    assert main([page]) == 1
    assert capsys.readouterr().err == f"{page}:12: 'What': begin with noun or verb\n"


def test_the_folders_that_are_done_have_no_finding() -> None:
    assert all(path.exists() for path in CHECKED)
    assert main(CHECKED) == 0
