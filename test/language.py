"""Checks the English of docstrings, comments and pages in the folders that have been gone through,
or in the files given as arguments. `make lint` runs it; CONTRIBUTING.md, "Language", has the rules.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PACKAGES = """analysis client commands compiled control demo dynamics identification jit loop
    messages model node parameters plausibility ros sentinel simulation spatial
    trajectory_client.py"""
CHECKED = [REPOSITORY / "rnea_control" / name for name in PACKAGES.split()]
CHECKED += [REPOSITORY / name for name in ("benchmark", "docs", "examples", "launch")]
CHECKED += sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")])

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)

# Words to avoid, and what to write instead; \A is the beginning of a sentence.
RULES = {
    r"\A(Of(?! course)|Those|What(ever)?|One (of|that|who|whose))\b": "begin with noun or verb",
    r"\A(of|that|which) (the|a|an|its|this|these|each|all)\b": "begin with a noun",
    r"\AWhether\b": "write: True if ...",
    r"\b[Ss]o (many|much|few|often|long)\b(?! (as|that))": "name the number",
    r"\b(this|that|another|other) one\b": "repeat the noun",
    r"\b(that|which) (is|are) (one|none)\b": "write valid, invalid, or the noun",
    r"\bas (of|in|for) `\w+`": "repeat the line of the other docstring",
    r"\b(no|some|any|every)body\b|\b(who|whom)\b(?![:`])": "name the publisher, user or process",
    r"\b(is|are|was|were|be) told\b|\btold (so|apart|of)\b": "write reported, separated",
    r"\bhear(s|d)?\b(?![:`])": "write received",
    r"\b(goes|go) by\b|\b(stands?|stood) for\b|\bcarries on\b": "write uses, means, continues",
}
ROW = r"(?s)\(?\w+, .* = (range\(.*|[-+*/.,()\de ]+)"
# Code in Markdown: fenced, indented after an empty line, and inline, which may quote a message.
CODE = (r"(?s)```.*?```", r"(?m)(?<=\n\n)(?: {4}.*\n)+", r"`[^`\n]*(?:\n[^`\n]+)?`")
CONSTANTS = "constants in a row: write one a line, each with its comment and unit"


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings and blocks of comments with their first lines; the text of a Markdown file without
    its code."""
    source = path.read_text()
    if path.suffix != ".py":
        for pattern in CODE:
            source = re.sub(pattern, lambda code: "\n" * code[0].count("\n") + "code", source)
        yield 1, source
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node):
            yield node.body[0].lineno, node.body[0].value.value
    first, block, last = 0, "", (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            if (row, column) != last:
                yield first, block
                first, block = row, ""
            block, last = f"{block}\n{token.string.lstrip('# ')}".lstrip("\n"), (row + 1, column)
    yield first, block


def findings(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a file with words to avoid, the words, and what to write instead."""
    for line, text in prose(path):
        for sentence in re.finditer(r"(?s)\S.*?(?:[.;:](?=\s)|\n\s*\n|\Z)", text):
            for pattern, instead in RULES.items():
                if found := re.search(pattern.replace(" ", r"\s+"), sentence[0]):
                    at = line + text.count("\n", 0, sentence.start() + found.start())
                    yield at, f"{' '.join(found[0].split())!r}: {instead}"
    for node in ast.parse(path.read_text()).body if path.suffix == ".py" else ():
        if isinstance(node, ast.Assign) and re.fullmatch(ROW, ast.unparse(node)):
            yield node.lineno, CONSTANTS


def main(paths: list[Path]) -> int:
    """Prints the findings in files and folders; returns the exit status."""
    files = [file for path in paths for file in (sorted(path.rglob("*.py")) or [path])]
    found = [f"{file}:{line}: {words}" for file in files for line, words in findings(file)]
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]] or CHECKED))
