"""The views of the console that are not live, in Chromium, against an API that answers as each test says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.pages.conftest import OpenPage
from tests.pages.console_pages import HOSTILE, at, served
from tests.pages.office_answers import JOB, LETTER, MONTH, empty_figures, job_json, letter_json, office, user_json
from tests.support.browser import assert_accessible, assert_large_text_fits
from tests.support.console_stub import ConsoleStub, Json, problem

WIDE = {"width": 1440, "height": 900}
TEMPLATE = "plans/templates/matching.on_the_way"
VIEWS = {
    f"figures?month={MONTH}": ".u-wrap",
    "dead-letters": ".entry",
    f"dead-letters/{LETTER}": ".note",
    "people": ".entry",
    "roster": ".run table",
    "jobs": "progress",
    f"jobs/{JOB}": ".output",
    "jobs/new": ".entry",
    "jobs/new/fairness_report": ".field",
    "plans": ".entry",
    "plans/3": ".facts",
    "plans/templates": ".entry",
    TEMPLATE: ".preview .note",
    "audit": "details",
    "health": ".part",
}
DIALOGS = {"people": "Kişi ekle", "roster": "Liste yükle", "dead-letters": "Hepsini kapat"}


@pytest.fixture
def stub() -> ConsoleStub:
    return office()


@pytest.fixture
def address(stub: ConsoleStub) -> Iterator[str]:
    with served(stub) as address:
        yield address


def is_sideways(page: Page) -> bool:
    return page.evaluate(
        "[document.documentElement, document.querySelector('main')].some(e => e.scrollWidth > e.clientWidth)"
    )


def saved_text(page: Page, button: Any) -> str:
    with page.expect_download() as saving:
        button.click()
    return Path(saving.value.path()).read_text(encoding="utf-8")


def test_each_view_is_accessible_on_a_small_phone(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    page = open_page(at(address, "/console/health"), width=320, color_scheme="dark")
    expect(page.locator(".part").first).to_be_visible()
    for path, is_there in VIEWS.items():
        page.goto(f"{address}/console/{path}")
        expect(page.locator(is_there).first).to_be_visible()
        if path == "audit":
            page.locator("summary", has_text="Zeynep Koç").click()
        assert_accessible(page)
        assert not is_sideways(page), path
        assert_large_text_fits(page)
        if path in DIALOGS:
            page.get_by_role("button", name=DIALOGS[path]).click()
            assert_accessible(page)
    stub.answers = {"GET /api/v1/health": lambda _: problem(503, "unavailable")}
    page.goto(f"{address}/console/health")
    expect(page.get_by_role("button", name="Yeniden dene")).to_be_visible()
    assert_accessible(page)


def test_a_late_part_is_not_under_words_that_all_is_well(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    health = stub.answers["GET /api/v1/health"]({})[1]
    stub.answers["GET /api/v1/health"] = lambda _: (200, health | {"status": "ready"})
    page = open_page(at(address, "/console/health"), **WIDE)
    expect(page.locator("main .notice")).to_have_text("İstekler ve cevaplar alınıyor, ama bir parça gecikiyor.")
    page.goto(f"{address}/console/dead-letters/{LETTER}")
    page.get_by_role("button", name="İletiyi kapat").click()
    dialog = page.get_by_role("dialog")
    # The button that only closes the dialog has another name than the deed.
    expect(dialog.get_by_role("button", name="Kapat", exact=True)).to_have_count(1)
    expect(dialog.get_by_role("button", name="İletiyi kapat", exact=True)).to_have_count(1)


def test_markup_is_text_in_each_view(address: str, open_page: OpenPage) -> None:
    page = open_page(at(address, "/console/people"), **WIDE)
    expect(page.locator(".entry", has_text=HOSTILE)).to_be_visible()
    page.get_by_role("button", name=f"Değiştir: {HOSTILE}").click()
    expect(page.locator("#dialog-title")).to_contain_text(HOSTILE)
    page.goto(f"{address}/console/dead-letters/{LETTER}")
    expect(page.locator(".note")).to_contain_text(HOSTILE)
    page.goto(f"{address}/console/audit")
    page.locator("main summary").first.click()
    expect(page.get_by_role("row", name="name")).to_contain_text(f"A***{HOSTILE}")
    assert page.title() != "hit" and page.locator("main img").count() == 0


def test_a_month_has_drawings_tables_and_files(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    page = open_page(at(address, f"/console/figures?month={MONTH}"), **WIDE)
    waiting = page.get_by_role("region", name="Kabule kadar geçen süre").first
    expect(page.locator(".u-wrap")).to_have_count(3)
    expect(page.locator(".cell-count")).to_have_count(4)
    waiting.locator(".u-over").hover()
    expect(waiting.locator(".plot-point")).to_contain_text(re.compile(r"\d+\. gün: Yarısında en çok .+ dk"))
    waiting.get_by_role("button", name="Tablo").click()
    expect(waiting.get_by_role("row", name="1 Eki").first).to_contain_text("2 dk")
    text = saved_text(page, waiting.get_by_role("button", name="CSV indir"))
    assert text.splitlines()[:2] == [
        "\ufeffGün,İstek,Yarısında en çok,On istekten dokuzunda en çok",
        f"{MONTH}-01,8,120,420",
    ]
    stub.answers["GET /api/v1/figures"] = lambda asked: (200, empty_figures(asked["month"]))
    page.get_by_role("button", name="Önceki ay").click()
    expect(page).to_have_url(re.compile(r"figures\?month=2026-09$"))
    expect(page.locator(".empty")).to_have_text("Bu ayda hiç istek yok.")


def test_a_month_and_its_tables_are_whole_on_a_small_phone(address: str, open_page: OpenPage) -> None:
    page = open_page(at(address, f"/console/figures?month={MONTH}"), width=320)
    waiting = page.get_by_role("region", name="Kabule kadar geçen süre").first
    waiting.get_by_role("button", name="Tablo").click()
    day = waiting.get_by_role("cell").first
    expect(day).to_contain_text("1 Eki")
    assert day.evaluate("cell => cell.clientHeight < 48"), "in one line"


def test_a_dead_letter_is_sent_again(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    page = open_page(at(address, "/console/dead-letters?channel=push"))
    page.get_by_role("link", name="Telefonda uygulama yok").click()

    def redrive(_: Json) -> tuple[int, Any]:
        closed = letter_json(status="REDRIVEN")
        stub.answers[f"GET /api/v1/dead-letters/{LETTER}"] = lambda _: (200, closed)
        return 200, closed

    stub.answers[f"POST /api/v1/dead-letters/{LETTER}/redrive"] = redrive
    page.get_by_role("button", name="Yeniden gönder").click()
    page.get_by_role("dialog").get_by_role("button", name="Yeniden gönder").click()
    expect(page.locator("main .badge")).to_have_text("Yeniden gönderildi")
    page.go_back()
    expect(page).to_have_url(re.compile(r"channel=push$"))
    left = [300, 100, 0]
    stub.answers["POST /api/v1/dead-letters/discard"] = lambda _: (200, {"discarded": 200, "remaining": left.pop(0)})
    page.get_by_role("button", name="Hepsini kapat").click()
    page.get_by_role("dialog").get_by_role("button", name="Hepsini kapat").click()
    expect(page.locator(".toasts")).to_contain_text("600 ileti kapatıldı.")
    assert stub.called("POST /api/v1/dead-letters/discard") == [{"channelType": "push"}] * 3


def test_only_changed_fields_of_a_person_are_sent(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    page = open_page(at(address, "/console/people"))
    page.get_by_role("button", name="Değiştir: Ayşe Yılmaz").click()
    wrong = [{"field": "phone", "code": "wrong_form", "message": "is not a phone number"}]
    refused = problem(400, "invalid_input")[1] | {"errors": wrong}
    stub.answers["PATCH /users/3"] = lambda _: (400, refused)
    phone = page.get_by_label("Telefon")
    phone.fill("12")
    page.get_by_role("button", name="Kaydet").click()
    expect(phone).to_have_attribute("aria-invalid", "true")
    saved = user_json(3, role="ELDER", name="Ayşe Yılmaz", phone="+905550100099")
    stub.answers["PATCH /users/3"] = lambda _: (200, saved)
    phone.fill("+90 555 010 00 99")
    page.get_by_role("button", name="Kaydet").click()
    expect(page.locator(".entry", has_text="Ayşe Yılmaz")).to_contain_text("+90 555 010 00 99")
    stub.answers["PATCH /users/3"] = lambda body: (200, saved | {"active": body["active"]})
    page.get_by_role("button", name="Hesabı kapat: Ayşe Yılmaz").click()
    page.get_by_role("dialog").get_by_role("button", name="Hesabı kapat").click()
    page.locator(".toasts").get_by_role("button", name="Geri al").click()
    expect(page.locator(".entry", has_text="Ayşe").locator(".badge")).to_have_count(0)
    sent = [{"phone": "12"}, {"phone": "+905550100099"}, {"active": False}, {"active": True}]
    assert stub.called("PATCH /users/3") == sent


def test_a_job_runs_with_its_parameters_until_its_file_is_there(
    stub: ConsoleStub, address: str, open_page: OpenPage
) -> None:
    done = stub.answers[f"GET /api/v1/jobs/{JOB}"]
    page = open_page(at(address, "/console/jobs/new/fairness_report"))
    people = page.get_by_label("Least people")
    people.fill("a few")
    page.get_by_role("button", name="Çalıştır").click()
    expect(page.locator(".wrong")).to_have_text("Tam sayı olmalı.")
    people.fill("7")
    page.get_by_label("Kinds").fill("students, elders")
    stub.answers["POST /api/v1/jobs"] = lambda _: (201, job_json())
    stub.answers[f"GET /api/v1/jobs/{JOB}"] = lambda _: (200, job_json())
    page.get_by_role("button", name="Çalıştır").click()
    expect(page.locator("progress")).to_have_attribute("value", "3")
    params = {"least_people": 7, "language": "tr", "kinds": ["students", "elders"], "fix": False}
    assert stub.called("POST /api/v1/jobs") == [{"name": "fairness_report", "params": params}]
    stub.answers[f"GET /api/v1/jobs/{JOB}"] = done
    stub.answers[f"GET /api/v1/jobs/{JOB}/artifacts/figures.csv"] = lambda _: (200, "a,b")
    assert saved_text(page, page.get_by_role("button", name="İndir: figures.csv")) == '"a,b"'


def test_what_a_run_of_lists_holds_back_is_approved(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    page = open_page(at(address, "/console/roster"))
    stub.answers["POST /api/v1/roster/runs/8/approve"] = lambda _: (200, {"kinds": ["students"]})
    expect(page.get_by_role("row", name="Öğrenciler")).to_contain_text("96")
    page.get_by_text("Öğrenciler, Kayıtlı olanlar: 2 satır alınmadı").click()
    expect(page.get_by_text("7. satır, tel: telefon numarası yanlış")).to_be_visible()
    page.get_by_role("button", name="Bekletilenleri onayla").click()
    page.get_by_role("dialog").get_by_role("button", name="Bekletilenleri onayla").click()
    expect(page.locator(".toasts")).to_contain_text("Onaylandı: Öğrenciler")


def test_a_text_is_changed_and_taken_back(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    stored = stub.answers["GET /api/v1/templates"]({})[1]["items"]
    tr = stored[0]

    def change(body: Json) -> tuple[int, Any]:
        tr["body"] = body["body"]
        tr["updatedAt"] = f"{len(stub.calls)}"
        return 200, tr

    stub.answers["PATCH /api/v1/templates/21"] = change
    stub.answers["POST /api/v1/templates/21/preview"] = lambda asked: (
        200,
        {"subject": "", "body": tr["body"].replace("{{ student }}", asked["variables"]["student"])},
    )
    page = open_page(at(address, f"/console/{TEMPLATE}"))
    turkish = page.get_by_role("region", name="Türkçe")
    expect(turkish.locator(".note")).to_have_text("Ahmet yola çıktı!")
    turkish.get_by_label("Metin").fill("{{ student }} geliyor.")
    turkish.get_by_role("button", name="Metni kaydet").click()
    expect(turkish.locator(".note")).to_have_text("Ahmet geliyor.")
    page.locator(".toasts").get_by_role("button", name="Geri al").click()
    expect(turkish.locator(".note")).to_have_text("Ahmet yola çıktı!")
    assert [body.keys() for body in stub.called("PATCH /api/v1/templates/21")] == [{"body"}] * 2


def test_coordinators_see_what_is_theirs(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    stub.me = {"id": 2, "role": "COORDINATOR", "name": "Zeynep Koç", "locale": "en"}
    stub.answers["GET /api/v1/dead-letters"] = lambda _: problem(403, "role_forbidden")
    page = open_page(at(address, "/console/plans/3"), **WIDE)
    expect(page.get_by_text("Only admins may change this.")).to_be_visible()
    places = page.get_by_role("navigation").get_by_role("link")
    expect(places).to_have_count(7)
    for path in ("people", "jobs", "audit", "roster"):
        page.goto(f"{address}/console/{path}")
        expect(page.locator("h1")).to_have_text("There is no such place")
    page.goto(f"{address}/console/dead-letters")
    expect(page.get_by_role("alert")).to_contain_text("Only admins may see this.")
