"""Parses README.md and docs/: headings, links, and blocks of commands with their expected answers.

A block in the language `sh` is run. A line `# → …` under a command shows its answer; in it, `…` stands for any text,
and a line `# → …` with nothing else for any number of lines. A comment above a block says how a test treats it:

    <!-- not run: REASON -->                no test runs it
    <!-- run by PATH -->                    this test runs it
    <!-- starts the copy: NAME=VALUE -->    it starts the copy that the pages use; the test sets NAME to VALUE
"""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ANSWER = "# → "
# Not run, because they show what files and answers look like.
ILLUSTRATIONS = frozenset({"text", "json", "http", "mermaid"})
_FENCE = re.compile(r"^```(\S*)\s*$")
_MARK = re.compile(r"^<!-- (not run|run by|starts the copy):? (.+?) -->$")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$")
_LINK = re.compile(r"(?<!`)!?\[[^\]\n]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Command:
    line: int
    text: str
    shown: tuple[str, ...]
    """The lines of the answer on the page; empty if it shows none."""


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    mark: str
    """`not run`, `run by`, `starts the copy`, or empty."""
    about: str
    """The text of the mark after these words."""
    lines: tuple[str, ...]

    @property
    def is_run(self) -> bool:
        return self.language == "sh" and self.mark == ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def commands(self) -> Iterator[Command]:
        """The commands one by one, each with the answer under it."""
        lines = list(enumerate(self.lines, self.line + 1))
        while lines:
            number, text = lines.pop(0)
            if not text.strip():
                continue
            while not _is_complete(text):
                assert lines, f"{self.page.name}:{number} starts a command that does not end"
                text = f"{text}\n{lines.pop(0)[1]}"
            shown: list[str] = []
            while lines and lines[0][1].startswith(ANSWER):
                shown.append(lines.pop(0)[1].removeprefix(ANSWER))
            yield Command(number, text, tuple(shown))


def pages() -> list[Path]:
    """README first: the other pages use what it explains."""
    names = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
    return [*(ROOT / name for name in names), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    mark = ("", "")
    begun: tuple[int, str, tuple[str, str]] | None = None
    lines: list[str] = []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = _FENCE.match(line)
        if begun is not None:
            if fence is None:
                lines.append(line)
                continue
            start, language, (kind, about) = begun
            found.append(Block(page, start, language, kind, about, tuple(lines)))
            begun, lines, mark = None, [], ("", "")
        elif fence is not None:
            begun = (number, fence[1], mark)
        elif line.strip():
            marked = _MARK.match(line)
            mark = (marked[1], marked[2]) if marked else ("", "")
    assert begun is None, f"{page.name} has a block that does not end"
    return found


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    found: set[str] = set()
    for line in _prose(page):
        heading = _HEADING.match(line)
        if heading is not None:
            words = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]|\]\([^)]*\)", "", heading[1]).lower())
            found.add(words.strip().replace(" ", "-"))
    return found


def links(page: Path) -> list[str]:
    return [target for line in _prose(page) for target in _LINK.findall(line)]


def _prose(page: Path) -> Iterator[str]:
    """The lines of a page outside of blocks."""
    inside = False
    for line in page.read_text().splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            yield line


def _is_complete(text: str) -> bool:
    """Whether bash would run this text without another line."""
    if text.endswith("\\"):
        return False
    return subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False).returncode == 0
