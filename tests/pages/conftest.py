"""One Chromium for all tests of pages, and pages in it that fail a test when they report an error."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import chromium, served_in_threads
from tests.support.played_service import PlayedService, app_of

OpenPage = Callable[..., Page]
SETTINGS: dict[str, Any] = {
    "locale": "tr-TR",
    "timezone_id": "Europe/Istanbul",
    "reduced_motion": "reduce",
    "service_workers": "block",
}


# Not for the session: Playwright keeps an event loop in the thread of the tests, in which `asyncio.run` then fails.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def played() -> PlayedService:
    return PlayedService()


@pytest.fixture
def address(played: PlayedService) -> Iterator[str]:
    """Where the played service answers."""
    with served_in_threads(app_of(played)) as served:
        yield served
        played.happen()  # Streams that nobody reads any more notice it.


@pytest.fixture
def page_errors() -> list[str]:
    """What pages have reported. A test that expects an error removes it from here."""
    return []


@pytest.fixture
def open_page(browser: Browser, page_errors: list[str]) -> Iterator[OpenPage]:
    """Opens a page in a browser context of its own: `open_page(address, width=320, color_scheme="dark")`. `token` is
    that of somebody who has signed in on this tab. All other arguments are those of Playwright's `new_context`."""
    contexts = []

    def open_(address: str, *, width: int = 390, height: int = 844, token: str = "", **more: Any) -> Page:
        settings = SETTINGS | more
        context = browser.new_context(viewport={"width": width, "height": height}, **settings)
        contexts.append(context)
        context.set_default_timeout(10_000)
        if "#token=" in address:
            # As if this tab had gone to the sign-in page of the operator.
            context.add_init_script("sessionStorage['yaninda.sign-in-begun'] = 'yes'")
        page = context.new_page()
        page.on("pageerror", lambda error: page_errors.append(f"{error}"))
        page.on("console", lambda said: page_errors.append(said.text) if _is_error(said) else None)
        if token:
            # As if somebody had signed in on this tab before.
            page.add_init_script(
                f"sessionStorage['yaninda.token.' + location.pathname.split('/').at(-1)] ??= '{token}'"
            )
        page.goto(address)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert page_errors == []


def _is_error(said: Any) -> bool:
    # Answers that are errors are part of many tests, and the page shows them.
    return said.type == "error" and not said.text.startswith("Failed to load resource")
