"""People in front of the pages of a running copy: each has a browser context of their own in one Chromium."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import chromium

PATIENCE_MS = 20_000
"""Roles of a copy share two cores with other tests."""
WIDE = {"width": 1280, "height": 800}
NARROW = {"width": 390, "height": 844}
MARK = "opened-once"


@dataclass
class People:
    browser: Browser
    address: str
    errors: list[str] = field(default_factory=list[str])
    """What pages have reported."""

    def open(self, path: str, *, viewport: Any = NARROW, **more: Any) -> Page:
        settings: dict[str, Any] = {"locale": "tr-TR", "timezone_id": "Europe/Istanbul", "service_workers": "block"}
        settings |= {"viewport": viewport, "reduced_motion": "reduce", **more}
        context = self.browser.new_context(**settings)
        context.set_default_timeout(PATIENCE_MS)
        # As if this tab had gone to the sign-in page of the operator, which sends people back with a token.
        # An empty page has no storage.
        context.add_init_script("if (location.host) sessionStorage['yaninda.sign-in-begun'] = 'yes'")
        page = context.new_page()
        page.on("pageerror", lambda error: self.errors.append(f"{error}"))
        page.goto(self.address + path)
        return page

    def sign_in_at(self, page: Page, name: str) -> None:
        """As somebody of the demo, by one click. The mark tells later whether the page was loaded again."""
        page.get_by_role("button", name=name).click()
        page.evaluate(f"document.documentElement.dataset.mark = '{MARK}'")


@contextmanager
def people_at(address: str) -> Iterator[People]:
    expect.set_options(timeout=PATIENCE_MS)
    with chromium() as browser:
        people = People(browser, address)
        yield people
        assert people.errors == [], people.errors
    expect.set_options(timeout=5_000)


def says(page: Page, sentence: str) -> None:
    """The heading of a phone."""
    expect(page.get_by_role("heading", level=1)).to_have_text(sentence)


def press(page: Page, times: int = 1) -> None:
    """As screen readers do, which takes no second."""
    button = page.get_by_role("button", name="Öğrenci Çağır")
    button.evaluate("(button, times) => { while (times--) button.click(); }", times)


def focus_by_tab(page: Page, wanted: Locator) -> None:
    """By keyboard alone, and not from farther away than anybody would go."""
    for _ in range(40):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("the keyboard does not get there")


def was_never_loaded_again(page: Page) -> bool:
    return page.evaluate("document.documentElement.dataset.mark") == MARK


def bytes_read(page: Page) -> int:
    """Of all answers so far, as they were sent, without the list of people that only a demo shows. A stream counts when
    it has ended."""
    return page.evaluate(BYTES_READ)


BYTES_READ = """() => ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
    .filter(({ name }) => !name.endsWith("/demo/people"))
    .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)"""
