"""The elder's phone: a press, what becomes of it, and what happens when the connection or the token goes."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.pages.conftest import OpenPage
from tests.support.browser import assert_accessible
from tests.support.played_service import HELPLINE, PlayedService, asked, at, offer, task

CALL = "Öğrenci Çağır"
KEPT = "Bağlantı gelince gönderilecek"


def open_elder(open_page: OpenPage, address: str, **more: Any) -> Page:
    page = open_page(f"{address}/phone/elder", token="ayse", **more)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    return page


def open_on_a_clock(open_page: OpenPage, address: str) -> Page:
    """Its time passes when the test says so."""
    page = open_elder(open_page, address)
    page.clock.install()
    page.reload()
    return page


def says(page: Page, sentence: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(sentence)


def hold(page: Page, ms: int = 1100) -> None:
    page.get_by_role("button", name=CALL).click(delay=ms)


def press(page: Page) -> None:
    """As screen readers do, which takes no second."""
    page.get_by_role("button", name=CALL).evaluate("button => button.click()")


class Worker:
    """The service worker of a page, as the browser wakes it. The test decides when there is a connection."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._found: list[str] = []
        self._browser = page.context.new_cdp_session(page)
        self._browser.on("ServiceWorker.workerRegistrationUpdated", self._note)
        self._browser.send("ServiceWorker.enable")
        page.evaluate("navigator.serviceWorker.ready")
        page.wait_for_function("() => navigator.serviceWorker.controller")

    def _note(self, event: Any) -> None:
        self._found += [one["registrationId"] for one in event["registrations"]]

    def sync(self) -> None:
        """Ends when the worker has answered."""
        page = self._page
        page.evaluate(
            """() => {
                globalThis.synced = new Promise((done) =>
                    navigator.serviceWorker.addEventListener("message", done, { once: true }));
            }"""
        )
        origin = page.evaluate("location.origin")
        wanted = {"origin": origin, "registrationId": self._found[-1], "tag": "press", "lastChance": False}
        self._browser.send("ServiceWorker.dispatchSyncEvent", wanted)
        page.evaluate("synced.then(() => null)")

    def hold(self, *, token: str, key: str, age_ms: int = 0) -> None:
        """A press as the page hands it over, so long ago."""
        self._page.evaluate(
            """async ([token, key, age]) => {
                const { active } = await navigator.serviceWorker.ready;
                const { OLD_MS } = await import(document.querySelector("link[href$='press_queue.js']").href);
                active.postMessage({ type: "hold", token, key, note: null, at: Date.now() - age, keepMs: OLD_MS });
            }""",
            [token, key, age_ms],
        )


def test_press_and_its_progress_in_words(open_page: OpenPage, address: str, played: PlayedService) -> None:
    page = open_elder(open_page, address)
    says(page, "Merhaba Ayşe")
    assert_accessible(page)
    hold(page)
    says(page, "Size yakın bir öğrenci aranıyor")
    pressed = played.open_tasks[1]
    for shown, sentence, next_sentence in (
        (asked("Ahmet", 1, 179), "Ahmet'e soruldu", "3 dakika içinde cevap verecek"),
        (asked("Ayça", 2, 30), "2. öğrenciye soruluyor", "Ayça'ya soruldu, 1 dakika içinde cevap verecek"),
        (task("PENDING", asked=2, nextStepAt=at(60)), "Sıradaki öğrenci bekleniyor", "Biri boşalınca sorulacak"),
        (task("ASSIGNED"), "Ahmet yola çıktı!", "Telefonla konuşabilirsiniz"),
        (task("PENDING", asked=2), "Ahmet gelemiyor", "başka bir öğrenci arıyoruz"),
        (task("STARTED"), "Ahmet yanınızda", "İyi ki çağırdınız"),
    ):
        played.show(1, shown | {"id": pressed["id"]})
        says(page, sentence)
        expect(page.locator(".sentence")).to_contain_text(next_sentence)
        expect(page.locator(f"a[href='tel:{HELPLINE}']")).to_be_visible()
        assert_accessible(page)
    expect(page.locator("a[href='tel:+905550100011']")).to_contain_text("Ahmet ile konuş")
    played.end(1, "COMPLETED")
    says(page, "Yardım tamamlandı")
    expect(page.get_by_role("button", name=CALL)).to_be_visible()


def test_nobody_found_ends_at_a_person_and_the_next_press_begins_anew(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    played.show(1, task())
    page = open_elder(open_page, address)
    says(page, "Size yakın bir öğrenci aranıyor")
    played.end(1, "TIMED_OUT")
    says(page, "Maalesef şu an uygun öğrenci bulunamadı.")
    expect(page.locator(f"a.main[href='tel:{HELPLINE}']")).to_be_visible()
    assert_accessible(page)
    page.reload()
    says(page, "Maalesef şu an uygun öğrenci bulunamadı.")
    press(page)
    says(page, "Size yakın bir öğrenci aranıyor")


def test_cancel_asks_first(open_page: OpenPage, address: str, played: PlayedService) -> None:
    played.show(1, asked())
    page = open_elder(open_page, address)
    page.get_by_role("button", name="Çağrıdan vazgeç").click()
    assert_accessible(page)
    page.get_by_role("button", name="Hayır, beklesin").click()
    says(page, "Ahmet'e soruldu")
    page.get_by_role("button", name="Çağrıdan vazgeç").click()
    page.get_by_role("button", name="Evet, iptal et").click()
    says(page, "Çağrı iptal edildi")


def test_short_press_calls_nobody_and_says_what_to_do(open_page: OpenPage, address: str, played: PlayedService) -> None:
    page = open_elder(open_page, address)
    hold(page, 100)
    expect(page.get_by_text("Biraz daha uzun basın")).to_be_visible()
    assert played.calls == []


def test_press_by_tapping_with_a_note(open_page: OpenPage, address: str, played: PlayedService) -> None:
    page = open_elder(open_page, address)
    page.get_by_role("button", name="Ayarlar").click()
    assert_accessible(page)
    page.get_by_label("Bir kez dokunarak").check()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Not ekle").click()
    page.get_by_label("Ne lazım?").fill("Ekmek <b>ve</b> süt")
    assert_accessible(page)
    page.get_by_role("button", name="Kaydet").click()
    expect(page.get_by_text("Ekmek <b>ve</b> süt")).to_be_visible()
    page.get_by_role("button", name=CALL).click()
    says(page, "Size yakın bir öğrenci aranıyor")
    [(body, key)] = played.called("POST", "/tasks")
    assert body == {"note": "Ekmek <b>ve</b> süt"}
    assert re.fullmatch(r"[0-9a-f-]{36}", key)


def test_a_note_is_not_left_to_whoever_signs_in_next(open_page: OpenPage, address: str, played: PlayedService) -> None:
    page = open_elder(open_page, address)
    page.get_by_role("button", name="Not ekle").click()
    page.get_by_label("Ne lazım?").fill("İlaçlarım bitti")
    page.get_by_role("button", name="Kaydet").click()
    page.get_by_role("button", name="Ayarlar").click()
    page.get_by_role("button", name="Çıkış").click()
    page.get_by_role("button", name="Ayşe Yılmaz").click()
    expect(page.get_by_role("button", name="Not ekle")).to_be_visible()
    assert page.get_by_text("İlaçlarım bitti").count() == 0


def test_by_keyboard_alone(open_page: OpenPage, address: str, played: PlayedService) -> None:
    page = open_elder(open_page, address)
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.className") != "press ":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter", delay=1100)
    says(page, "Size yakın bir öğrenci aranıyor")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") != ""


def test_screen_reader_is_told_of_changes_but_not_of_time(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    played.show(1, asked(seconds=100))
    page = open_on_a_clock(open_page, address)
    says(page, "Ahmet'e soruldu")
    page.evaluate(
        """() => {
            globalThis.said = [];
            const region = document.querySelector(".sentence [role=status]");
            const changes = {childList: true, subtree: true, characterData: true};
            new MutationObserver(() => said.push(region.textContent)).observe(region, changes);
        }"""
    )
    # What the page reads meanwhile must not set its clock back.
    played.ahead_s = 45
    page.clock.run_for(45_000)
    expect(page.locator(".sentence")).to_contain_text("1 dakika içinde cevap verecek")
    played.show(1, task("ASSIGNED"))
    page.clock.run_for(5000)
    says(page, "Ahmet yola çıktı!")
    assert page.evaluate("said") == ["Ahmet yola çıktı! Size doğru geliyor. Telefonla konuşabilirsiniz."]


def test_press_without_a_connection_is_kept_and_sent_once(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    page = open_elder(open_page, address, service_workers="allow")
    page.evaluate("navigator.serviceWorker.ready")
    page.context.set_offline(True)
    expect(page.get_by_text("Bağlantı yok.")).to_be_visible()
    press(page)
    says(page, KEPT)
    assert_accessible(page)
    # The app is opened again, still without a connection: it shows what it showed last.
    page.reload()
    says(page, KEPT)
    expect(page.locator(f"a[href='tel:{HELPLINE}']")).to_be_visible()
    assert played.called("POST", "/tasks") == []
    page.context.set_offline(False)
    says(page, "Size yakın bir öğrenci aranıyor")
    # Page and worker may both send it; the key makes it one request.
    assert len({key for _, key in played.called("POST", "/tasks")}) == 1
    assert len(played.tasks) == 1


def test_answer_that_was_on_its_way_does_not_hide_a_lost_connection(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    page = open_elder(open_page, address)
    says(page, "Merhaba Ayşe")
    held: list[Route] = []
    page.route("**/me", lambda route: held.append(route))
    with page.expect_request("**/me"):
        played.happen()
    page.evaluate("dispatchEvent(new Event('offline'))")
    expect(page.get_by_text("Bağlantı yok.")).to_be_visible()
    held[0].fulfill(json=played.me_of("ayse") | {"name": "Aylin Yılmaz"})
    says(page, "Merhaba Aylin")
    assert page.get_by_text("Bağlantı yok.").is_visible()
    page.unroute_all()
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.get_by_text("Bağlantı yok.")).to_have_count(0)


def test_answer_that_was_lost_does_not_become_a_second_request(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    page = open_elder(open_page, address)
    page.route("**/tasks", lambda route: (route.fetch(), route.abort()), times=1)
    page.route("**/me", lambda route: route.abort())
    page.route("**/events", lambda route: route.abort())
    press(page)
    says(page, KEPT)
    page.unroute_all()
    page.evaluate("dispatchEvent(new Event('online'))")
    says(page, "Size yakın bir öğrenci aranıyor")
    assert len(played.tasks) == 1


def test_expired_token_does_not_lose_a_press(open_page: OpenPage, address: str, played: PlayedService) -> None:
    page = open_elder(open_page, address)
    played.errors["POST /tasks"] = (401, {"code": "token_expired"})
    press(page)
    expect(page.get_by_text("Giriş yapınca gönderilecek")).to_be_visible()
    expect(page.get_by_text("Oturumun süresi doldu")).to_be_visible()
    expect(page.locator(f"a[href='tel:{HELPLINE}']")).to_be_visible()
    assert_accessible(page)
    del played.errors["POST /tasks"]
    page.get_by_role("button", name="Ayşe Yılmaz").click()
    says(page, "Size yakın bir öğrenci aranıyor")
    first, second = played.called("POST", "/tasks")
    assert first == second


def test_somebody_elses_press_is_not_sent(open_page: OpenPage, address: str, played: PlayedService) -> None:
    played.people["fatma"] = played.people["ayse"] | {"id": 3, "name": "Fatma Kaya"}
    page = open_elder(open_page, address)
    played.errors["POST /tasks"] = (401, {"code": "token_expired"})
    press(page)
    expect(page.get_by_text("Giriş yapınca gönderilecek")).to_be_visible()
    del played.errors["POST /tasks"]
    page.get_by_role("button", name="Fatma Kaya").click()
    says(page, "Merhaba Fatma")
    assert len(played.called("POST", "/tasks")) == 1


def test_signing_out_with_a_waiting_press_asks_and_deletes_it(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    played.people["fatma"] = played.people["ayse"] | {"id": 3, "name": "Fatma Kaya"}
    page = open_elder(open_page, address, service_workers="allow")
    worker = Worker(page)
    page.context.set_offline(True)
    press(page)
    says(page, KEPT)
    sign_out(page)
    assert_accessible(page)
    page.get_by_role("button", name="Hayır, kalsın").click()
    says(page, KEPT)
    sign_out(page)
    page.get_by_role("button", name="Evet, çıkış yap").click()
    again = page.get_by_role("button", name="Yeniden dene")
    expect(again).to_be_visible()
    page.context.set_offline(False)
    worker.sync()
    again.click()
    page.get_by_role("button", name="Fatma Kaya").click()
    says(page, "Merhaba Fatma")
    worker.sync()
    sign_out(page)
    page.get_by_role("button", name="Ayşe Yılmaz").click()
    says(page, "Merhaba Ayşe")
    assert played.called("POST", "/tasks") == []


def sign_out(page: Page) -> None:
    page.get_by_role("button", name="Ayarlar").click()
    page.get_by_role("button", name="Çıkış").click()


def test_worker_sends_a_press_for_a_page_that_cannot(open_page: OpenPage, address: str, played: PlayedService) -> None:
    page = open_elder(open_page, address, service_workers="allow")
    worker = Worker(page)
    page.route("**/tasks", lambda route: route.abort())
    worker.hold(token="ayse", key="of-this-press")
    worker.sync()
    says(page, "Size yakın bir öğrenci aranıyor")
    worker.sync()
    assert played.called("POST", "/tasks") == [({}, "of-this-press")]


def test_press_that_the_worker_has_sent_is_not_sent_by_the_page(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    page = open_elder(open_page, address, service_workers="allow")
    worker = Worker(page)
    page.route("**/tasks", lambda route: route.abort())
    press(page)
    worker.sync()
    says(page, "Size yakın bir öğrenci aranıyor")
    page.wait_for_function("() => localStorage['yaninda.press.1'] === undefined")
    assert len({key for _, key in played.called("POST", "/tasks")}) == 1


def test_worker_sends_no_press_that_is_six_hours_old(open_page: OpenPage, address: str, played: PlayedService) -> None:
    page = open_elder(open_page, address, service_workers="allow")
    worker = Worker(page)
    worker.hold(token="ayse", key="of-this-morning", age_ms=6 * 3_600_000 + 1000)
    worker.sync()
    assert played.called("POST", "/tasks") == []


def test_refused_press_says_so_and_names_a_person(open_page: OpenPage, address: str, played: PlayedService) -> None:
    played.errors["POST /tasks"] = (400, {"code": "invalid_value"})
    page = open_elder(open_page, address)
    press(page)
    says(page, "Adresiniz kayıtlı değil.")
    expect(page.locator(f"a.main[href='tel:{HELPLINE}']")).to_be_visible()
    assert_accessible(page)


def test_a_refusal_is_polite(open_page: OpenPage, address: str, played: PlayedService) -> None:
    played.errors["POST /tasks"] = (403, {"code": "user_deactivated"})
    page = open_elder(open_page, address)
    press(page)
    says(page, "Bu hesap kapatılmış. Kurumunuzla konuşun.")


def test_phone_works_without_the_event_stream(open_page: OpenPage, address: str, played: PlayedService) -> None:
    played.streams = False
    page = open_on_a_clock(open_page, address)
    says(page, "Merhaba Ayşe")
    played.show(1, task("ASSIGNED"))
    page.clock.run_for(5000)
    says(page, "Ahmet yola çıktı!")


def test_second_tab_shows_the_same(open_page: OpenPage, address: str, played: PlayedService) -> None:
    page = open_elder(open_page, address)
    other = page.context.new_page()
    other.add_init_script("sessionStorage['yaninda.token.elder'] ??= 'ayse'")
    other.goto(f"{address}/phone/elder")
    says(other, "Merhaba Ayşe")
    press(page)
    says(other, "Size yakın bir öğrenci aranıyor")


def test_recorded_push_appears_as_on_a_phone(open_page: OpenPage, address: str, played: PlayedService) -> None:
    played.pushes = []
    page = open_elder(open_page, address)
    with page.expect_response("**/me/pushes*"):
        pass
    played.pushes = [{"id": 7, "title": "Yardım geliyor", "body": "Ahmet yola çıktı!", "data": {}}]
    played.show(1, task("ASSIGNED"))
    expect(page.get_by_role("complementary", name="Bildirim")).to_contain_text("Yardım geliyor")
    assert_accessible(page)


@pytest.mark.parametrize(
    ("width", "height", "scheme", "size"), [(320, 568, "dark", 100), (320, 640, "light", 200), (844, 390, "dark", 100)]
)
def test_every_screen_fits_and_the_button_is_large(
    open_page: OpenPage, address: str, played: PlayedService, width: int, height: int, scheme: str, size: int
) -> None:
    page = open_elder(open_page, address, width=width, height=height, color_scheme=scheme)
    page.evaluate(f"document.documentElement.style.fontSize = '{size}%'")
    box = page.get_by_role("button", name=CALL).bounding_box()
    assert box is not None
    assert box["width"] * box["height"] >= 0.4 * width * height
    _fits(page)
    for shown in (asked("Abdurrahman", 2), task("ASSIGNED")):
        played.show(1, shown)
        expect(page.locator(".disc")).to_be_visible()
        _fits(page)


def test_what_is_below_the_button_needs_one_line_on_a_small_phone(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    played.show(1, task("ASSIGNED"))
    page = open_elder(open_page, address, width=320, height=568)
    buttons = page.locator(".small-things button")
    expect(buttons).to_have_text(["Çağrıdan vazgeç", "Ayarlar"])
    assert len(set(buttons.evaluate_all("all => all.map(one => one.offsetTop)"))) == 1


def _fits(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    too_small = page.eval_on_selector_all(
        "button, a", "all => all.filter(one => one.offsetHeight < 60 || one.offsetWidth < 60).map(one => one.outerHTML)"
    )
    assert too_small == []
    assert_accessible(page)


def test_english_for_whoever_reads_english(open_page: OpenPage, address: str, played: PlayedService) -> None:
    played.people["ayse"]["locale"] = "en"
    played.show(1, asked("Ahmet", 1, 59))
    page = open_elder(open_page, address)
    says(page, "Ahmet was asked")
    expect(page.locator(".sentence")).to_contain_text("within 1 minute")
    expect(page.locator("html")).to_have_attribute("lang", "en")


def test_account_of_a_student_is_sent_to_sign_in_again(
    open_page: OpenPage, address: str, played: PlayedService
) -> None:
    played.offers[2] = offer()
    page = open_page(f"{address}/phone/elder", token="ahmet")
    expect(page.get_by_text("öğrenci hesabı için değil")).to_be_visible()
    page.get_by_role("button", name="Çıkış").click()
    page.get_by_role("button", name="Ayşe Yılmaz").click()
    says(page, "Merhaba Ayşe")
