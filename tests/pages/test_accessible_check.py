"""The check of accessibility itself: one that finds nothing anywhere would pass every page."""

import pytest
from playwright.sync_api import Browser

from tests.support.browser import assert_accessible


def test_check_finds_what_is_wrong_and_passes_what_is_right(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content("<!doctype html><html lang=tr><title>a</title><main><h1>a</h1></main>")
    assert_accessible(page)
    page.set_content("<!doctype html><html lang=tr><title>a</title><main><h1>a</h1><input></main>")
    with pytest.raises(AssertionError, match="label"):
        assert_accessible(page)
    page.close()
