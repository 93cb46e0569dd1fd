"""The first page: three doors, and whether the service works."""

import pytest
from playwright.sync_api import expect

from tests.pages.conftest import OpenPage
from tests.support.browser import assert_accessible, assert_large_text_fits
from tests.support.played_service import PlayedService

HEALTH = {
    "ready": "Her şey çalışıyor.",
    "degraded": "Çalışıyor, ama bir parça geç kalıyor.",
    "unready": "Şu an istek alınamıyor.",
}


@pytest.mark.parametrize(("health", "words"), HEALTH.items())
def test_first_page_says_whether_the_service_works(
    open_page: OpenPage, address: str, played: PlayedService, health: str, words: str
) -> None:
    played.health = health
    page = open_page(f"{address}/", width=320, height=568, color_scheme="dark")
    expect(page.locator(".health")).to_have_text(words)
    assert_accessible(page)
    assert_large_text_fits(page)


def test_first_page_has_doors_in_both_languages(open_page: OpenPage, address: str, played: PlayedService) -> None:
    played.settings["demoSignIn"] = False
    page = open_page(f"{address}/", width=1280)
    expect(page.locator(".health")).to_be_visible()
    expect(page.locator("main")).to_match_aria_snapshot(
        """
        - heading "Bir düğme. Yanında biri." [level=1]
        - list:
          - listitem:
            - link /Yardım isteyen/:
              - /url: /phone/elder
          - listitem:
            - link /Öğrenci/:
              - /url: /phone/student
          - listitem:
            - link /Koordinatör/:
              - /url: /console
        - status: Her şey çalışıyor.
        - link "API belgeleri":
          - /url: /docs
        """
    )
    expect(page.get_by_role("link", name="Ayşe ve Ahmet ol")).to_have_count(0)
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("One button. Somebody by your side.")
    expect(page.locator(".health")).to_have_text("Everything works.")
    assert_accessible(page)
