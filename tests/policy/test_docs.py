"""README and docs agree with the code: tables, links and functions. Every block is run, or says why not.

`tests/e2e/test_docs_in_use.py` runs the commands. `python tests/policy/test_docs.py --write` renews the table of
settings.
"""

import re
import sys
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote

import pytest
from pydantic_core import PydanticUndefined

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # For --write, which runs without pytest.

from app.delivery.channels.registry import channel_modules  # noqa: E402
from app.delivery.messages.retry import RetryPolicy  # noqa: E402
from app.delivery.messages.values import NotificationType  # noqa: E402
from app.settings.settings import Settings  # noqa: E402
from tests.policy.test_rules import HEIGHTS  # noqa: E402
from tests.support.pages import ILLUSTRATIONS, Block, anchors, blocks, links, pages  # noqa: E402

SETTINGS = ROOT / "docs" / "settings.md"
DELIVERY = ROOT / "docs" / "delivery.md"
BEGIN, END = "<!-- settings: written by tests/policy/test_docs.py --write -->", "<!-- /settings -->"
README_LINES = 150
PATH = re.compile(r"(?<![\w./-])(?:app|docs|migrations|scripts|tests)/[\w/.-]*\w")
FILE = re.compile(r"`(?:[\w-]+/)*([\w-]+\.(?:md|py|svg|toml|yml))`")
TO_BE_WRITTEN = {"app/delivery/channels/NAME.py", "migrations/versions/000N_words.py"}
"""Files that a reader of CONTRIBUTING.md adds."""


def shown(value: object) -> str:
    if value is PydanticUndefined:
        return "required"
    if value is None:
        return ""
    if isinstance(value, tuple):
        return f"`{','.join(f'{pause:g}' for pause in value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{value.value if isinstance(value, StrEnum) else value}`"


def table() -> str:
    rows = [
        f"| `{name.upper()}` | {shown(field.default)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join([BEGIN, "", "| variable | default | |", "|---|---|---|", *rows, "", END])


def named(value: Path | Block) -> str:
    return str(value) if isinstance(value, Block) else str(value.relative_to(ROOT))


def problem_with(link: str, page: Path) -> str | None:
    """Why a link is broken, or None. Links to other sites are not checked."""
    if re.match(r"[a-z]+:", link):
        return None
    path, _, anchor = unquote(link).partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return f"{link}: there is no {path}"
    if path and not target.is_relative_to(ROOT):
        return f"{link}: leads out of the project"
    if anchor and anchor not in anchors(target):
        return f"{link}: {target.name} has no such heading"
    return None


def test_the_table_of_settings_agrees_with_the_code() -> None:
    assert table() in SETTINGS.read_text()


def cells_of(page: Path, heading: str) -> list[list[str]]:
    """The rows of the first table under a heading."""
    section = page.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


@pytest.mark.parametrize(("page", "heading"), [("README.md", "Where things are"), ("docs/architecture.md", "Layers")])
def test_the_table_of_packages_is_complete_and_in_the_order_of_layers(page: str, heading: str) -> None:
    named_there = [re.findall(r"`(?:app/)?(\w+)`", cells[0])[0] for cells in cells_of(ROOT / page, heading)]
    packages = {folder.name for folder in (ROOT / "app").iterdir() if (folder / "__init__.py").exists()}
    assert packages <= set(named_there)
    assert named_there == sorted(named_there, key=lambda name: HEIGHTS[name])


def pauses_of(policy: RetryPolicy) -> str:
    kinds = [pauses[: policy.retries] for pauses in (policy.backoff_s, policy.overloaded_backoff_s) if pauses]
    return "; after a 5xx ".join(f"{', '.join(f'{pause:g}' for pause in some)} s" for some in kinds if some) or "none"


def test_the_table_of_retries_agrees_with_the_channels() -> None:
    shown_there = {cells[0]: cells[1:] for cells in cells_of(DELIVERY, "States, attempts and retries")}
    channels = [module for name, module in channel_modules().items() if name != "recording"]
    for type_, policy in [(type_, channel.POLICY) for channel in channels for type_ in channel.TYPES]:
        limit, retries, pauses, again = shown_there[type_]
        assert (limit, retries) == (f"{policy.timeout_s:.0f} s", str(policy.retries))
        assert pauses == pauses_of(policy)
        # The audit trail is never retried.
        assert again.startswith("yes") is (policy.repeatable and policy.retries > 0)
    assert shown_there.keys() == set(NotificationType)


def test_the_readme_has_at_most_150_lines() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def missing_files(text: str) -> set[str]:
    """Paths from the root, and names of files in backticks, that do not exist."""
    known = {path.name for path in ROOT.iterdir()} | {
        path.name for folder in ("app", "docs", "scripts", "tests") for path in (ROOT / folder).rglob("*.*")
    }
    paths = {path for path in PATH.findall(text) if not (ROOT / path).exists()} - TO_BE_WRITTEN
    return paths | (set(FILE.findall(text)) - known - {Path(path).name for path in TO_BE_WRITTEN})


@pytest.mark.parametrize("page", pages(), ids=named)
def test_files_that_a_page_names_exist(page: Path) -> None:
    assert missing_files(page.read_text()) == set()


@pytest.mark.parametrize("page", pages(), ids=named)
def test_links_are_not_broken(page: Path) -> None:
    assert [problem for link in links(page) if (problem := problem_with(link, page))] == []


@pytest.mark.parametrize("page", [page for page in pages() if page.parent != ROOT], ids=named)
def test_every_page_of_docs_is_linked_from_another(page: Path) -> None:
    others = [other for other in pages() if other != page]
    targets = {(other.parent / link.partition("#")[0]).resolve() for other in others for link in links(other)}
    assert page in targets


@pytest.mark.parametrize("page", pages(), ids=named)
def test_rows_of_a_table_have_as_many_cells_as_its_head(page: Path) -> None:
    width, inside = 0, False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        inside ^= line.startswith("```")
        if inside or not line.startswith("|"):
            width = 0
            continue
        cells = len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", line))) - 1
        width = width or cells
        assert cells == width, f"{page.name}:{number}"


@pytest.mark.parametrize("block", [block for page in pages() for block in blocks(page)], ids=named)
def test_every_block_is_run_or_says_why_not(block: Block) -> None:
    if block.mark == "run by":
        test = ROOT / block.about
        assert test.exists() and block.page.name in test.read_text(), f"{block.about} does not read this page"
    elif block.mark == "":
        assert block.language in {"sh"} | ILLUSTRATIONS, "no test runs this block: mark it with the reason"


def test_one_block_starts_the_copy_that_the_pages_use() -> None:
    starting = [block for page in pages() for block in blocks(page) if block.mark == "starts the copy"]
    assert [(block.page.name, len(block.lines)) for block in starting] == [("README.md", 1)]


def test_marks_and_languages_of_blocks_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: it never ends -->\n```sh\nsleep 9\n```\n\n```sh\ntrue\n```\n\n```python\nx\n```\n")
    first, second, third = blocks(page)
    assert (first.mark, first.about, first.is_run) == ("not run", "it never ends", False)
    assert second.is_run
    assert not third.is_run and third.language not in ILLUSTRATIONS


def test_names_of_files_that_do_not_exist_are_found() -> None:
    assert missing_files("`app/users` and `cascade.py`; scripts/run --port 1") == set()
    assert missing_files("`app/elders`, `old/waterfall.py`\nscripts/walk") == {
        "app/elders",
        "waterfall.py",
        "scripts/walk",
    }


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One, *two* `three`\n\n```sh\n# four\n```\n")
    assert anchors(page) == {"one-two-three"}
    assert problem_with("#one-two-three", page) is None
    assert problem_with("#four", page) == "#four: page.md has no such heading"
    assert problem_with("other.md", page) == "other.md: there is no other.md"
    assert problem_with("https://example.org/none", page) is None


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    text = SETTINGS.read_text()
    SETTINGS.write_text(re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: table(), text, flags=re.DOTALL))
