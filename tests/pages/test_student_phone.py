"""The student's phone: an offer, the way, the task, duty, and history."""

from typing import Any

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from tests.pages.conftest import OpenPage
from tests.support.browser import assert_accessible
from tests.support.played_service import HELPLINE, PlayedService, at, offer, person, task

OFFER = "Ayşe yardım istiyor"


def open_student(open_page: OpenPage, address: str, **more: Any) -> Page:
    page = open_page(f"{address}/phone/student", token="ahmet", **more)
    expect(page.locator("main")).to_be_visible()
    return page


def title(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


def test_offer_comes_to_the_open_phone_and_is_accepted_and_done(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    page = open_student(open_page, address)
    assert_accessible(page)
    made = task(note="<b>Ekmek</b>")
    played.tasks[made["id"]] = made
    played.offers[2] = offer(600, taskId=made["id"], note="<b>Ekmek</b>")
    played.happen()
    title(page, OFFER)
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.get_by_role("timer")).to_have_text("10:00")
    expect(page.get_by_text("yaklaşık 300 m")).to_be_visible()
    expect(page.get_by_text("<b>Ekmek</b>")).to_be_visible()
    expect(page).to_have_title("● Ayşe yardım istiyor")
    assert_accessible(page)
    page.get_by_role("button", name="Kabul et").click()
    title(page, "Ayşe Yılmaz seni bekliyor")
    expect(page.locator("a[href='tel:+905550100002']")).to_contain_text("Ayşe'ye telefon et")
    expect(page.get_by_role("link", name="Haritada aç")).to_have_attribute(
        "href", "geo:40.9871,29.0282?q=40.9871,29.0282"
    )
    assert_accessible(page)
    page.get_by_role("button", name="Geldim").click()
    title(page, "Ayşe Yılmaz ile birliktesin")
    page.get_by_role("button", name="Yardım tamamlandı").click()
    assert_accessible(page)
    page.get_by_role("button", name="Evet, tamamlandı").click()
    expect(page.get_by_role("switch", name="Görevdeyim")).to_be_checked()
    assert [path.rsplit("/")[-1] for _, path, _, _ in played.calls] == ["accept", "start", "complete"]


def test_countdown_follows_the_server_and_ends_the_offer(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    """The phone's clock is ten minutes ahead, and then it loses its connection."""
    page = open_student(open_page, address)
    page.clock.install(time=at(600))
    played.offers[2] = offer(59)
    page.reload()
    title(page, OFFER)
    expect(page.get_by_role("timer")).to_have_text("0:59")
    page.route("**/me", lambda route: route.abort())
    page.route("**/events", lambda route: route.abort())
    page.clock.run_for(30_000)
    expect(page.get_by_role("timer")).to_contain_text("0:2")
    page.clock.run_for(30_000)
    expect(page.get_by_role("switch", name="Görevdeyim")).to_be_visible()


@pytest.mark.parametrize(
    ("code", "words"),
    [("offer_expired", "Bu talebin süresi doldu."), ("offer_withdrawn", "Bu talep geri alındı.")],
)
def test_late_answer_is_told_in_plain_words(
    open_page: OpenPage, address: str, played: PlayedService, code: str, words: str
) -> None:
    played.offers[2] = shown = offer()
    page = open_student(open_page, address)
    title(page, OFFER)
    played.errors[f"PUT /tasks/{shown['taskId']}/accept"] = (409, {"code": code})

    def end_offer(route: Route) -> None:
        """Only now, because the page may ask for the offer once more before the button is pressed."""
        played.offers.pop(2, None)
        route.continue_()

    page.route("**/accept", end_offer)
    page.get_by_role("button", name="Kabul et").click()
    expect(page.locator(".toasts")).to_contain_text(words)
    expect(page.get_by_role("switch", name="Görevdeyim")).to_be_visible()
    assert_accessible(page)


def test_offer_that_was_taken_back_leaves_the_screen(open_page: OpenPage, address: str, played: PlayedService) -> None:
    played.offers[2] = offer()
    page = open_student(open_page, address)
    title(page, OFFER)
    del played.offers[2]
    played.happen("OFFER_WITHDRAWN")
    expect(page.get_by_text("Bu talep geri alındı.")).to_be_visible()
    assert_accessible(page)
    page.get_by_role("button", name="Tamam").click()
    expect(page.get_by_text("Bu talep geri alındı.")).not_to_be_visible()


def test_rejected_offer_leaves_without_a_word(open_page: OpenPage, address: str, played: PlayedService) -> None:
    """Also if the event of the answer comes before the answer itself."""
    played.offers[2] = offer()
    page = open_student(open_page, address)
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/reject", lambda route: held.append((route, route.fetch())))
    page.get_by_role("button", name="Reddet").click()
    expect(page.get_by_role("switch", name="Görevdeyim")).to_be_visible()
    assert page.get_by_text("geri alındı").count() == 0
    [(route, answer)] = held
    with page.expect_response("**/me"):
        route.fulfill(response=answer)
    assert page.get_by_text("geri alındı").count() == 0


def test_withdraw_asks_first_and_a_cancelled_task_is_told(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    played.show(2, task("ASSIGNED"))
    page = open_student(open_page, address)
    page.get_by_role("button", name="Gelemiyorum").click()
    assert_accessible(page)
    page.get_by_role("button", name="Hayır, geliyorum").click()
    title(page, "Ayşe Yılmaz seni bekliyor")
    played.end(2, "CANCELLED")
    expect(page.get_by_text("Çağrı iptal edildi. Gitmene gerek yok.")).to_be_visible()
    # What the student may not see any more is not kept on the phone either.
    assert "+905550100002" not in page.evaluate("localStorage['yaninda.kept.student']")


def test_duty_is_switched_and_a_refusal_says_whom_to_ask(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    page = open_student(open_page, address)
    duty = page.get_by_role("switch", name="Görevdeyim")
    duty.click()
    expect(duty).not_to_be_checked()
    expect(page.get_by_text("sana sorulmaz")).to_be_visible()
    assert_accessible(page)
    played.errors["PUT /me/availability"] = (409, {"code": "suspended"})
    duty.click()
    expect(page.locator(".toasts")).to_contain_text("Koordinatörle konuş")
    expect(duty).not_to_be_checked()
    expect(page.locator(f"a[href='tel:{HELPLINE}']")).to_be_visible()


def test_location_is_shared_when_allowed_and_shows_the_way(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    played.show(2, task("ASSIGNED"))
    here = {"latitude": 40.9849, "longitude": 29.0255}
    page = open_student(open_page, address, permissions=["geolocation"], geolocation=here)
    page.get_by_role("button", name="Konumumu paylaş").click()
    expect(page.get_by_text("kuzeydoğuda")).to_be_visible()
    expect(page.get_by_text("330 m")).to_be_visible()
    assert played.called("PUT", "/me/location") == [({"lat": 40.9849, "lon": 29.0255}, None)]
    assert_accessible(page)


def test_refused_location_says_what_to_do(open_page: OpenPage, address: str) -> None:
    page = open_student(open_page, address)
    page.get_by_role("button", name="Konumumu paylaş").click()
    expect(page.get_by_text("Konum izni ver")).to_be_visible()
    assert_accessible(page)


def test_history_by_month(open_page: OpenPage, address: str, played: PlayedService) -> None:
    for days, status in ((1, "COMPLETED"), (2, "CANCELLED"), (60, "COMPLETED")):
        shown = task(status, createdAt=at(-86_400 * days))
        played.tasks[shown["id"]] = shown
    page = open_student(open_page, address)
    page.get_by_role("button", name="Geçmiş").click()
    expect(page.get_by_text("1 kez yardım ettin")).to_have_count(2)
    assert_accessible(page)


@pytest.mark.parametrize(("width", "height", "size"), [(320, 568, 100), (320, 640, 200), (844, 390, 100)])
def test_every_screen_of_a_student_fits(
    open_page: OpenPage, address: str, played: PlayedService, width: int, height: int, size: int
) -> None:
    page = open_student(open_page, address, width=width, height=height, color_scheme="dark")
    page.evaluate(f"document.documentElement.style.fontSize = '{size}%'")
    for shown in (None, "offer", "ASSIGNED"):
        if shown == "offer":
            played.offers[2] = offer(600, note="Ekmek, süt, gazete")
        elif shown:
            del played.offers[2]
            played.show(2, task(shown))
        played.happen()
        name = {None: "Görevdeyim", "offer": "Kabul et", "ASSIGNED": "Geldim"}[shown]
        expect(page.get_by_role("switch" if shown is None else "button", name=name)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        too_small = page.eval_on_selector_all(
            "button, a", "all => all.filter(one => one.offsetHeight < 44).map(one => one.outerHTML)"
        )
        assert too_small == []
        assert_accessible(page)


@pytest.mark.parametrize(("left_s", "width"), [(600, 320), (3700, 390)])
def test_time_that_is_left_stands_inside_its_ring(
    open_page: OpenPage, address: str, played: PlayedService, left_s: float, width: int
) -> None:
    played.offers[2] = offer(left_s)
    page = open_student(open_page, address, width=width)
    digits = page.get_by_role("timer").evaluate("one => one.offsetWidth / one.parentElement.offsetWidth")
    # The ring leaves 86 of 100 free at its widest.
    assert digits < 0.8


def test_top_of_a_small_phone_is_one_line(open_page: OpenPage, address: str, played: PlayedService) -> None:
    played.people["ahmet"]["name"] = "Abdurrahmangazi Çelik"
    page = open_student(open_page, address, width=320)
    expect(page.locator(".top > *")).to_have_count(3)
    tops = page.locator(".top > *").evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
    assert len(tops) == 3 and max(tops) - min(tops) < 20


def test_both_phones_side_by_side(open_page: OpenPage, address: str, played: PlayedService) -> None:
    played.people["berat"] = person("STUDENT", 6, "Berat Şahin")
    page = open_page(f"{address}/phone/both", width=1100)
    elder, student = page.frame_locator("iframe[title=Ayşe]"), page.frame_locator("iframe[title=Ahmet]")
    made = task()
    played.on_press = lambda: made
    elder.get_by_role("button", name="Öğrenci Çağır").click(delay=1100)
    expect(elder.get_by_role("heading", level=1)).to_have_text("Size yakın bir öğrenci aranıyor")
    played.offers[2] = offer(taskId=made["id"])
    played.happen()
    student.get_by_role("button", name="Kabul et").click()
    expect(student.get_by_role("heading", level=1)).to_have_text("Ayşe Yılmaz seni bekliyor")
    for frame in page.frames:
        assert_accessible(frame)
    # The next student who is asked may be another one.
    page.get_by_label("Öğrenci", exact=True).select_option("Berat Şahin")
    expect(page.frame_locator("iframe[title=Berat]").get_by_text("Berat")).to_be_visible()
