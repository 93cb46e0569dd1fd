"""The console in Chromium, against an API that answers as each test says."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from app.console.assets import read_assets
from tests.pages.conftest import OpenPage
from tests.pages.console_pages import HOSTILE, at, busy_afternoon, served, task_id
from tests.support.browser import assert_accessible, assert_large_text_fits
from tests.support.console_stub import ConsoleStub, Json, instant, problem, student_json, task_json
from tests.support.matching import eventually

SHORTENED = ".request-line > span"
"""The lines of a row; the request itself shows them in full."""
SMALL = {"width": 320, "height": 844}
WIDE = {"width": 1440, "height": 900}
FIRST_VIEW_BYTES = 150_000
PLACEHOLDER_IS_WHOLE = """field => {
    const [style, shown] = [getComputedStyle(field), getComputedStyle(field, "::placeholder")];
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `${shown.fontSize} ${style.fontFamily}`;
    const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return pen.measureText(field.placeholder).width <= room;
}"""
COUNT_TONES = """() => {
    globalThis.tones = 0;
    globalThis.OscillatorNode = class extends globalThis.OscillatorNode {
        constructor(...given) {
            super(...given);
            globalThis.tones += 1;
        }
    };
}"""


@pytest.fixture
def stub() -> ConsoleStub:
    return busy_afternoon()


@pytest.fixture
def address(stub: ConsoleStub) -> Iterator[str]:
    with served(stub) as address:
        yield address


def row(page: Page, name: str) -> Any:
    return page.locator("a.request", has_text=name)


def timed_out(number: int) -> Json:
    return {"taskId": task_id(number), "status": "TIMED_OUT"}


# ---- what is shown ----


def look_at(page: Page, address: str, views: dict[str, str]) -> None:
    for path, is_there in views.items():
        page.goto(f"{address}/console/{path}")
        expect(page.locator(is_there).first).to_be_visible()
        assert_accessible(page)
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), f"{path} scrolls sideways"
        if page.viewport_size == SMALL:
            assert_large_text_fits(page, SHORTENED)


def test_every_view_and_dialog_is_accessible_on_a_small_phone(address: str, open_page: OpenPage) -> None:
    page = open_page(at(address), width=320, color_scheme="dark")
    views = {"requests": "a.request", "requests?show=map": ".map-buttons", "no-such-place": "h1"}
    views |= {"nobody-found": ".owed", "duty": ".student", f"requests/{task_id(2)}": ".outcome"}
    look_at(page, address, views)
    page.goto(f"{address}/console/requests/{task_id(1)}")
    expect(page.locator(".timeline")).to_be_visible()
    for key, is_there in {"?": ".shortcuts", "a": ".candidate", "n": ".candidate"}.items():
        page.keyboard.press(key)
        expect(page.locator(f"dialog {is_there}").first).to_be_visible()
        assert_accessible(page)
        assert_large_text_fits(page, SHORTENED)
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)


def test_a_name_and_the_hint_of_the_search_are_whole_on_a_small_phone(address: str, open_page: OpenPage) -> None:
    page = open_page(at(address), width=320)
    name = row(page, "Hüseyin Öztürk").locator("strong")
    assert name.evaluate("one => one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight + 1")
    search = page.get_by_label("Ara", exact=True)
    assert search.evaluate(PLACEHOLDER_IS_WHOLE)


def test_list_request_and_map_side_by_side_are_accessible(address: str, open_page: OpenPage) -> None:
    page = open_page(at(address), **WIDE)
    look_at(page, address, {f"requests/{task_id(1)}": ".map-buttons"})


def test_a_name_that_looks_like_markup_is_text_everywhere(address: str, open_page: OpenPage) -> None:
    page = open_page(at(address, f"/console/requests/{task_id(1)}"), **WIDE)
    expect(page.locator(".offers").first).to_contain_text(HOSTILE)
    page.get_by_role("button", name="Elle ata").click()
    expect(page.locator("dialog .candidates")).to_contain_text(HOSTILE)
    page.keyboard.press("Escape")

    def is_named() -> bool:
        """The request that is open stands in the middle of the map, once it is drawn."""
        page.mouse.move(0, 0)
        page.locator(".map-pane").hover()
        return page.locator(".leaflet-tooltip").count() > 0

    eventually(is_named, "the place in the middle of the map shows its name")
    expect(page.locator(".leaflet-tooltip")).to_contain_text(HOSTILE)
    page.goto(f"{address}/console/duty")
    expect(page.locator(".students")).to_contain_text(HOSTILE)
    assert page.title() != "hit" and page.locator("main img").count() == 0


def test_first_view_is_light(address: str, open_page: OpenPage) -> None:
    page = open_page(at(address), **WIDE)
    expect(page.locator(".map-buttons")).to_be_visible()
    names = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname)")
    files = {name.split("/", 3)[3] for name in names if name.startswith("/assets/")}
    assets = read_assets().files
    assert sum(len(assets[name].gzipped or assets[name].content) for name in files) < FIRST_VIEW_BYTES
    phone = open_page(at(address), width=320)
    expect(row(phone, "Ayşe")).to_be_visible()
    loaded = phone.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
    assert not [name for name in loaded if name.endswith("leaflet.js")], "a phone shows the list first"


def test_ten_thousand_requests_are_a_list_of_a_few_rows(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    stub.add(*(task_json(number) for number in range(10, 10_010)))
    stub.students += [student_json(number) for number in range(10, 1200)]
    page = open_page(at(address), **WIDE)
    expect(page.locator("#list-heading")).to_contain_text("10003")
    assert page.locator("a.request").count() < 60
    page.locator(".virtual").evaluate("list => list.scrollTo(0, list.scrollHeight)")
    expect(row(page, "Fatma Demir")).to_be_visible()
    expect(page.locator(".cluster").first).to_be_visible()
    assert page.locator(".cluster").count() < 300
    page.get_by_label("Ara", exact=True).fill("Yaşlı 9876")
    expect(page.locator("a.request")).to_have_count(1)


def test_filters_and_requests_are_in_the_address(address: str, open_page: OpenPage) -> None:
    page = open_page(at(address, "/console/requests?q=demir"), **WIDE)
    expect(page.locator("a.request")).to_have_count(1)
    row(page, "Fatma Demir").click()
    expect(page.locator("h1", has_text="Fatma Demir")).to_be_focused()
    assert page.url == f"{address}/console/requests/{task_id(3)}?q=demir"
    page.go_back()
    expect(page.locator("#request-heading")).to_have_count(0)
    page.get_by_label("Durum").select_option("nobody_found")
    expect(page).to_have_url(re.compile(r"q=demir&state=nobody_found$"))
    expect(page.locator(".empty")).to_be_visible()


# ---- live ----


def test_events_change_what_is_shown(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    page = open_page(at(address))
    expect(page.locator(".connection")).to_have_class(re.compile("open"))
    expect(page.locator("a.request").first).to_contain_text("Hüseyin Öztürk")
    stub.add(task_json(4, elder={"id": 4, "name": "Zeliha Arslan", "phone": None}))
    stub.send("TASK_CREATED", taskId=task_id(4), status="PENDING")
    expect(row(page, "Zeliha Arslan")).to_contain_text("Aranıyor")
    offer = {"deadline": instant(599), "studentId": 5, "studentName": "Ahmet Çelik", "asked": 2, "remaining": 7}
    # A page that reads the task again, because an event came while it was read, gets what the events told.
    stub.tasks[task_id(4)] |= {"asked": 2, "remaining": 7, "currentOffer": offer}
    stub.send("TASK_OFFERED", taskId=task_id(4), status="PENDING", **offer)
    expect(row(page, "Zeliha Arslan")).to_contain_text(re.compile(r"9:5\d.*Soruluyor: Ahmet Çelik.*2/9 soruldu"))
    student = {"id": 5, "name": "Ahmet Çelik", "phone": None}
    stub.tasks[task_id(4)] |= {"status": "ASSIGNED", "currentOffer": None, "student": student}
    stub.send("TASK_ASSIGNED", taskId=task_id(4), status="ASSIGNED", studentId=5, studentName="Ahmet Çelik")
    expect(row(page, "Zeliha Arslan")).to_contain_text("Yolda: Ahmet Çelik")
    stub.tasks[task_id(4)]["status"] = "COMPLETED"
    stub.send("TASK_COMPLETED", taskId=task_id(4), status="COMPLETED")
    expect(row(page, "Zeliha Arslan")).to_have_count(0)


def test_nobody_found_is_heard_and_stays_until_an_outcome(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    page = open_page(at(address))
    expect(page).to_have_title("(1) Açık istekler · Yanında")
    page.evaluate(COUNT_TONES)
    page.locator("h1").click()
    stub.tasks[task_id(1)] |= {"status": "TIMED_OUT", "currentOffer": None, "endedAt": instant()}
    stub.send("TASK_TIMED_OUT", **timed_out(1))
    expect(page).to_have_title("(2) Açık istekler · Yanında")
    expect(page.locator(".toasts")).to_contain_text("Kimse bulunamadı: Ayşe Yılmaz")
    assert page.evaluate("globalThis.tones") == 2
    page.keyboard.press("s")
    stub.tasks[task_id(3)] |= {"status": "TIMED_OUT", "endedAt": instant()}
    stub.send("TASK_TIMED_OUT", **timed_out(3))
    expect(page).to_have_title("(3) Açık istekler · Yanında")
    assert page.evaluate("globalThis.tones") == 2, "muted"

    page.keyboard.press("g")
    page.keyboard.press("n")
    huseyin = page.locator(".owed", has_text="Hüseyin Öztürk")
    huseyin.get_by_role("button", name="Sonucu yaz").click()
    expect(huseyin).to_contain_text("Bu alan gerekli.")
    huseyin.get_by_label("Ne oldu?").select_option("HELPED_BY_PHONE")
    huseyin.get_by_label("Not").fill("Kızı geldi")

    def say(body: Json) -> tuple[int, Any]:
        stub.tasks[task_id(2)]["outcome"] = {"outcome": body["outcome"], "note": body["note"]}
        return 200, stub.tasks[task_id(2)]

    stub.answers[f"PUT /tasks/{task_id(2)}/outcome"] = say
    huseyin.get_by_role("button", name="Sonucu yaz").click()
    expect(huseyin).to_have_count(0)
    expect(page).to_have_title("(2) Kimse bulunamadı · Yanında")


def test_a_board_that_cannot_be_read_is_said_in_words_and_read_again(
    stub: ConsoleStub, address: str, open_page: OpenPage
) -> None:
    stub.answers["GET /api/v1/board"] = lambda _: problem(503, "database_unavailable", "the database does not answer")
    page = open_page(at(address), width=320)
    page.clock.install()
    page.reload()
    expect(page.get_by_role("alert")).to_have_text("Hizmet şu an cevap veremiyor. Biraz sonra yeniden dene.")
    expect(page.get_by_text("kendiliğinden yeniden okunur")).to_be_visible()
    assert_accessible(page)
    del stub.answers["GET /api/v1/board"]
    page.clock.run_for(6000)
    expect(row(page, "Hüseyin")).to_be_visible()


def test_nobody_on_duty_is_said(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    stub.students = []
    page = open_page(at(address, "/console/duty"))
    expect(page.locator(".empty")).to_have_text("Şu an nöbette kimse yok.")


def test_a_token_that_ends_leads_to_signing_in(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    page = open_page(at(address, "/console/duty"))
    expect(page.locator(".student").first).to_be_visible()
    stub.answers["GET /api/v1/students"] = lambda _: problem(401, "token_expired")
    page.get_by_role("button", name="Hepsi").click()
    expect(page.get_by_role("alert")).to_contain_text("Oturumun süresi doldu")
    assert page.evaluate("sessionStorage.length") == 0


# ---- deeds ----


def test_assigning_by_hand_can_be_undone(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    page = open_page(at(address, f"/console/requests/{task_id(1)}"), **WIDE)
    ahmet = {"id": 5, "name": "Ahmet Çelik", "phone": "+905550100011"}

    def become(**change: Any) -> Any:
        def answer(_: Json) -> tuple[int, Any]:
            stub.tasks[task_id(1)] |= change
            return 200, stub.tasks[task_id(1)]

        return answer

    stub.answers[f"PUT /tasks/{task_id(1)}/assign"] = become(status="ASSIGNED", student=ahmet, currentOffer=None)
    stub.answers[f"PUT /tasks/{task_id(1)}/release"] = become(status="PENDING", student=None)
    page.get_by_role("button", name="Elle ata").click()
    busy = page.get_by_role("button", name=f"Ata: {HOSTILE}")
    expect(busy).to_have_attribute("aria-disabled", "true")
    expect(page.locator(".candidate", has=busy)).to_contain_text("başka bir görevi var")
    page.get_by_role("button", name="Ata: Ahmet Çelik").click()
    expect(page.locator(".request-pane")).to_contain_text("Yolda: Ahmet Çelik")
    assert stub.called(f"PUT /tasks/{task_id(1)}/assign") == [{"studentId": 5}]
    page.get_by_role("button", name="Geri al", exact=True).click()
    expect(page.locator(".request-pane")).to_contain_text("Uygun öğrenci bekleniyor")


def test_what_a_dialog_could_not_do_is_said_in_front_of_it(
    stub: ConsoleStub, address: str, open_page: OpenPage
) -> None:
    stub.answers[f"PUT /tasks/{task_id(1)}/assign"] = lambda _: problem(503, "database_unavailable")
    page = open_page(at(address, f"/console/requests/{task_id(1)}"), width=320)
    page.get_by_role("button", name="Elle ata").click()
    page.get_by_role("button", name="Ata: Ahmet Çelik").click()
    said = page.get_by_role("dialog").get_by_text("Hizmet şu an cevap veremiyor.")
    # Nothing covers it: a click would reach it.
    said.click(trial=True)
    assert_accessible(page)
    page.keyboard.press("Escape")
    expect(page.locator(".toasts")).to_contain_text("Hizmet şu an cevap veremiyor.")


def test_two_coordinators_at_once_do_not_overwrite_each_other(
    stub: ConsoleStub, address: str, open_page: OpenPage
) -> None:
    page = open_page(at(address, f"/console/requests/{task_id(1)}"), **WIDE)
    page.get_by_role("button", name="Sıradakine geç").click()
    expect(page.get_by_role("dialog")).to_contain_text("artık beklenmeyecek")
    offer = {"deadline": instant(600), "studentId": 5, "studentName": "Ahmet Çelik"}
    stub.send("TASK_REOFFERED", taskId=task_id(1), status="PENDING", **offer)
    expect(page.get_by_role("dialog")).to_contain_text("Bu arada bir şey değişti")
    page.keyboard.press("Escape")

    def refuse(_: Json) -> tuple[int, Any]:
        student = {"id": 7, "name": "Ceren Güneş", "phone": None}
        stub.tasks[task_id(1)] |= {"status": "ASSIGNED", "student": student, "currentOffer": None}
        return problem(409, "illegal_step")

    stub.answers[f"PUT /tasks/{task_id(1)}/assign"] = refuse
    page.get_by_role("button", name="Elle ata").click()
    page.get_by_role("button", name="Ata: Ahmet Çelik").click()
    expect(page.locator(".toasts")).to_contain_text("Bu arada başka biri bu isteği değiştirdi.")
    expect(page.locator(".request-pane")).to_contain_text("Yolda: Ceren Güneş")


def test_a_reason_is_told_in_words(address: str, open_page: OpenPage) -> None:
    page = open_page(at(address, f"/console/requests/{task_id(1)}"), locale="en-GB")
    skipped = page.locator(".offer", has_text="Ahmet Çelik")
    expect(skipped).to_contain_text("çok uzakta, 1.240 m")
    expect(skipped).to_contain_text("bu ay 2 kez yardım etti")
    page.get_by_label("Zeynep Koç").click()
    page.get_by_role("button", name="English").click()
    expect(skipped).to_contain_text("too far, 1,240 m away")
    expect(skipped).to_contain_text("helped twice this month")


def test_an_elder_who_telephones_gets_a_request(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    page = open_page(at(address))

    def press(body: Json) -> tuple[int, Any]:
        elder = {"id": 9, "name": "Emine Şahin", "phone": None}
        stub.add(task_json(20, elder=elder, note=body["note"]))
        return 201, stub.tasks[task_id(20)]

    stub.answers["POST /tasks"] = press
    page.get_by_role("button", name="Telefonla istek").click()
    page.get_by_label("Yaşlı ara").fill("emine")
    page.get_by_role("button", name="Seç: Emine Şahin").click()
    page.get_by_label("Ne gerekiyor?").fill("Kapıyı açamıyor")
    page.get_by_role("button", name="Yardım çağır").click()
    expect(page.locator("h1", has_text="Emine Şahin")).to_be_visible()
    expect(page.locator(".note")).to_have_text("Kapıyı açamıyor")


def test_a_student_is_put_on_duty_and_back(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    page = open_page(at(address, "/console/duty?duty=off"))
    ceren = page.locator(".student", has_text="Ceren Güneş")
    expect(ceren).to_contain_text("koordinatör açana kadar kapalı")
    stub.answers["PUT /users/7/availability"] = lambda _: (204, None)
    ceren.get_by_role("button", name="Nöbete al").click()
    expect(ceren.locator(".badge.good")).to_have_text("nöbette")
    page.get_by_role("button", name="Geri al", exact=True).click()
    expect(ceren.locator(".badge.good")).to_have_count(0)
    assert stub.called("PUT /users/7/availability") == [{"onDuty": True}, {"onDuty": False}]


def test_the_keyboard_is_enough(address: str, open_page: OpenPage) -> None:
    page = open_page(at(address))
    expect(row(page, "Hüseyin")).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator("#request-heading")).to_have_text("Hüseyin Öztürk")
    page.keyboard.press("j")
    expect(page.locator("#request-heading")).to_have_text("Ayşe Yılmaz")
    page.keyboard.press("k")
    expect(page.locator("#request-heading")).to_have_text("Hüseyin Öztürk")
    page.keyboard.press("Escape")
    expect(row(page, "Hüseyin")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("hüseyin")
    expect(page.locator("a.request")).to_have_count(1)
    # Keys that are written are no shortcuts.
    expect(page.locator("dialog")).to_have_count(0)


def test_tabs_of_a_person_share_one_stream(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    first = open_page(at(address))
    expect(row(first, "Fatma Demir")).to_contain_text("Yanında")
    second = first.context.new_page()
    second.goto(at(address, "/console/requests"))
    expect(row(second, "Fatma Demir")).to_contain_text("Yanında")
    expect(second.locator(".connection")).to_have_class(re.compile("open"))
    assert stub.streams_opened == 1
    offer = {"deadline": instant(599), "studentId": 5, "studentName": "Ahmet Çelik"}
    stub.tasks[task_id(1)] |= {"currentOffer": offer}
    stub.send("TASK_REOFFERED", taskId=task_id(1), status="PENDING", **offer)
    expect(row(second, "Ayşe")).to_contain_text("Soruluyor: Ahmet Çelik")
    stub.tasks.pop(task_id(2))
    first.close()
    expect(row(second, "Hüseyin")).to_have_count(0)
    assert stub.streams_opened == 2
