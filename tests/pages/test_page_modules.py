"""The modules of pages by themselves, in the browser that they are written for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask, send_from_directory
from playwright.sync_api import Browser, Page

from app.console.assets import STATIC
from tests.support.browser import served_in_threads

ROOT = Path(__file__).resolve().parents[2]
MODULES = Path(__file__).parent / "modules"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serves the files where they are in the repository, so that tests import modules by relative paths."""
    app = Flask("files", static_folder=None)
    for folder in (STATIC, MODULES):
        place = folder.relative_to(ROOT).as_posix()
        view = send_from_directory
        app.add_url_rule(f"/{place}/<path:path>", place, view, defaults={"directory": folder})
    with served_in_threads(app) as served:
        yield served


@pytest.fixture(scope="module")
def blank_page(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(timezone_id="Europe/Istanbul")
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("file", [path.name for path in sorted(MODULES.glob("*.test.js"))])
def test_module(blank_page: Page, address: str, file: str) -> None:
    blank_page.goto(f"{address}/tests/pages/modules/none")
    report = blank_page.evaluate(
        """async ([tests, cases]) => {
            await import(tests);
            return (await import(cases)).run();
        }""",
        [f"/tests/pages/modules/{file}", "/tests/pages/modules/cases.js"],
    )
    assert report["failures"] == []
    assert report["count"] > 0
