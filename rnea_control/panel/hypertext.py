"""HTML of the page's tables, bars and lights. viser shows HTML and Markdown as they are, scripts
too: every text of another process or a file is escaped here."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

from viser import GuiHtmlHandle

from rnea_control.exceptions import plain

UNKNOWN = "-"  # in place of a number
LONGEST = 1000  # characters of a text
# Colors of levels, readable on light and dark pages.
COLORS = {"ok": "#2b8a3e", "warn": "#e8890c", "error": "#e03131", "unknown": "#868e96"}
STYLE = "font-size: 0.8em; line-height: 1.35"


class Markup(str):
    """Text that is HTML already."""


def lines(*parts: object) -> Markup:
    """Text or HTML, each part in a line of its own."""
    return Markup(
        "".join(f'<div style="margin-top: 0.2em">{escaped(part)}</div>' for part in parts)
    )


def put(element: GuiHtmlHandle, content: Markup) -> None:
    """Shows HTML in an element of the page; sends it only if it has changed."""
    text = str(content)  # viser sends no subclass of str
    if element.content != text:
        element.content = text


def escaped(text: object) -> Markup:
    """Text as HTML, of bounded length, without line breaks and codes that are not printable."""
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(plain(" ".join(str(text).split()), LONGEST)))


def block(*parts: object, style: str = "") -> Markup:
    """A block of text or HTML with the font of the page's tables."""
    inner = "".join(escaped(part) for part in parts)
    return Markup(f'<div style="{STYLE}; padding: 0.2em 0.8em; {style}">{inner}</div>')


def colored(text: object, level: str, bold: bool = False) -> Markup:
    """Text in the color of a level of `COLORS`."""
    weight = "600" if bold else "inherit"
    return Markup(
        f'<span style="color: {COLORS[level]}; font-weight: {weight}">{escaped(text)}</span>'
    )


def light(level: str) -> Markup:
    """A round light in the color of a level of `COLORS`; its name is the tooltip."""
    return Markup(
        f'<span title="{level}" style="display: inline-block; width: 0.75em; height: 0.75em; '
        f'border-radius: 50%; background: {COLORS[level]}"></span>'
    )


def bar(share: float, level: str) -> Markup:
    """A horizontal bar, full at a share of 1; empty for NaN."""
    width = 100.0 * min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
    return Markup(
        '<span style="display: inline-block; width: 2.2em; height: 0.7em; border-radius: 2px; '
        'background: rgba(128, 128, 128, 0.25)"><span style="display: block; height: 100%; '
        f'width: {width:.0f}%; border-radius: 2px; background: {COLORS[level]}"></span></span>'
    )


def table(
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    numbers: int = 0,
    wraps: bool = False,
) -> Markup:
    """A table.

    Args:
        head: titles of the columns; none for no header.
        rows: cells of each row, text or `Markup`.
        numbers: number of columns at the right end that are aligned to the right.
        wraps: True if long cells are broken into lines.
    """
    cell = "padding: 0.1em 0.5em 0.1em 0; vertical-align: top"
    broken = "; overflow-wrap: anywhere"
    styles = {"th": cell, "td": cell + (broken if wraps else "; white-space: nowrap")}

    def line(cells: Sequence[object], tag: str) -> str:
        first = len(cells) - numbers
        return "".join(
            f'<{tag} style="{styles[tag]}; text-align: {"right" if k >= first else "left"}">'
            f"{escaped(each)}</{tag}>"
            for k, each in enumerate(cells)
        )

    top = f'<tr style="opacity: 0.65; font-weight: 400">{line(head, "th")}</tr>' if head else ""
    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return Markup(
        '<div style="overflow-x: auto"><table style="border-collapse: collapse; width: 100%">'
        f"{top}{body}</table></div>"
    )


def number(value: float, digits: int = 3) -> str:
    """A number for a table: with significant digits, or a dash if it is not known."""
    if not math.isfinite(value):
        return UNKNOWN
    size = abs(value)
    decimals = digits - 1 - (math.floor(math.log10(size)) if size > 0.0 else digits - 1)
    return f"{value:.{min(max(decimals, 0), 4)}f}" if size < 1e6 else f"{value:.{digits}g}"
