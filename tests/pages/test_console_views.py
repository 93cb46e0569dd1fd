"""The views of the console that are not live, in Chromium, against an API that answers as each test says."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
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
PREVIEW = "POST /api/v1/templates/preview"
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
    expect(page.locator("h1")).to_have_text("Adalet raporu")
    people = page.get_by_label("En az kişi")
    expect(people).to_have_accessible_description(re.compile("az yaşlının olduğu semt"))
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
    stub.answers[PREVIEW] = filled
    page = open_page(at(address, f"/console/{TEMPLATE}"))
    turkish = page.get_by_role("region", name="Türkçe")
    expect(turkish.locator(".note")).to_have_text("Ahmet yola çıktı!")
    turkish.get_by_label("Metin").fill("{{ student }} geliyor.")
    turkish.get_by_role("button", name="Metni kaydet").click()
    expect(turkish.locator(".note")).to_have_text("Ahmet geliyor.")
    page.locator(".toasts").get_by_role("button", name="Geri al").click()
    expect(turkish.locator(".note")).to_have_text("Ahmet yola çıktı!")
    changes = stub.called("PATCH /api/v1/templates/21")
    assert [body.keys() for body in changes] == [{"body", "updatedAt"}] * 2
    overtaken = problem(409, "changed_meanwhile")

    def change_by_another(_: Json) -> tuple[int, Any]:
        tr["body"], tr["updatedAt"] = "Başka metin.", "later"
        return overtaken

    stub.answers["PATCH /api/v1/templates/21"] = change_by_another
    turkish.get_by_label("Metin").fill("Benim metnim.")
    turkish.get_by_role("button", name="Metni kaydet").click()
    expect(page.locator(".toasts")).to_contain_text("Yazdığın duruyor")
    expect(turkish.get_by_label("Metin")).to_have_value("Benim metnim.")
    stub.answers["PATCH /api/v1/templates/21"] = change
    turkish.get_by_role("button", name="Metni kaydet").click()
    expect(turkish.get_by_text("kaydedilmedi")).to_have_count(0)
    assert stub.called("PATCH /api/v1/templates/21")[-1] == {"body": "Benim metnim.", "updatedAt": "later"}


def filled(asked: Json) -> tuple[int, Any]:
    if "{% if %}" in asked["body"]:
        wrong = {"field": "body", "code": "invalid", "message": "cannot be read (line 1)"}
        return 400, problem(400, "invalid_value")[1] | {"errors": [wrong]}
    return 200, {"subject": "", "body": asked["body"].replace("{{ student }}", asked["variables"].get("student", ""))}


def test_a_text_is_previewed_while_it_is_typed(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    stub.answers[PREVIEW] = filled
    page = open_page(at(address, "/console/plans/templates"), width=320)
    page.clock.install()
    page.goto(f"{address}/console/{TEMPLATE}")
    turkish = page.get_by_role("region", name="Türkçe")
    text, note = turkish.get_by_label("Metin"), turkish.locator(".note")
    expect(note).to_have_text("Ahmet yola çıktı!")
    page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))
    stub.calls.clear()
    text.press_sequentially(" Kapınızda olacak.")
    assert stub.called(PREVIEW) == [], "nothing is asked while keys follow each other"
    page.clock.run_for(300)
    expect(note).to_have_text("Ahmet yola çıktı! Kapınızda olacak.")
    assert len(stub.called(PREVIEW)) == 1
    expect(turkish.get_by_text("kaydedilmedi")).to_be_visible()
    text.fill("{% if %}")
    page.clock.run_for(300)
    expect(text).to_have_attribute("aria-invalid", "true")
    expect(turkish.locator(".wrong")).to_contain_text("cannot be read (line 1)")
    expect(note).to_have_text("Ahmet yola çıktı! Kapınızda olacak.")
    text.fill("{{ student }} ile {{ elder }}")
    page.clock.run_for(300)
    expect(note).to_have_text("Ahmet ile {{ elder }}")
    expect(turkish.locator(".wrong")).to_have_count(0)
    assert stub.called(PREVIEW)[-1]["variables"] == {"student": "Ahmet", "elder": "Ayşe"}
    assert stub.called("PATCH /api/v1/templates/21") == []
    page.clock.resume()
    text.fill("{% if %}")
    expect(turkish.locator(".wrong")).to_be_visible()
    assert_accessible(page)
    assert not is_sideways(page)


def test_the_audit_trail_is_filtered_by_the_address(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    whole = stub.answers["GET /api/v1/audit"]({})[1]
    asked: list[Json] = []

    def answer(query: Json) -> tuple[int, Any]:
        asked.append({name: value for name, value in query.items() if name not in ("name", "limit")})
        if query.get("subjectId") == "x":
            wrong = {"field": "subjectId", "code": "wrong_form", "message": "has not the form"}
            return 400, problem(400, "invalid_input")[1] | {"errors": [wrong]}
        entries = [one for one in whole["items"] if query.get("author") in (None, one["author"])]
        return 200, {"items": entries, "nextCursor": "70" if "deed" in query and "cursor" not in query else None}

    stub.answers["GET /api/v1/audit"] = answer
    page = open_page(at(address, "/console/audit?author=operator"), width=320)
    expect(page.locator(".audit-entry")).to_have_count(1)
    assert asked == [{"author": "operator"}]
    page.get_by_label("Yapan").select_option("Deniz Acar")
    expect(page).to_have_url(re.compile(r"author=user%3A8$"))
    expect(page.locator(".empty")).to_have_text("Bu süzgece uyan kayıt yok.")
    page.get_by_role("button", name="Süzgeci kaldır").click()
    expect(page.locator(".audit-entry")).to_have_count(2)
    page.get_by_label("Yapılan").select_option("Kişiyi değiştirdi")
    page.get_by_role("button", name="Daha fazla").click()
    expect(page.locator(".audit-entry")).to_have_count(4)
    assert asked[-1] == {"deed": "PATCH /users/{userId}", "cursor": "70"}
    page.get_by_label("Neye").select_option("kişi")
    expect(page.locator(".wrong")).to_have_text("Numarasını da yaz.")
    page.get_by_label("Numarası").fill("x")
    expect(page.locator(".empty")).to_contain_text("Süzgecin bir yeri yanlış")
    expect(page.get_by_label("Numarası")).to_have_attribute("aria-invalid", "true")
    assert_accessible(page)
    page.get_by_label("Numarası").fill("6")
    page.get_by_label("Bundan sonra").fill("2026-03-12T10:00")
    expect(page).to_have_url(re.compile(r"subjectKind=USER&subjectId=6&since=2026-03-12T10%3A00$"))
    expect(page.locator(".audit-entry")).to_have_count(2)
    assert asked[-1]["subjectId"] == "6" and asked[-1]["since"].endswith("Z")
    page.locator("main summary").first.click()
    page.get_by_role("link", name="Bunun hakkında hepsi").click()
    expect(page).to_have_url(re.compile(r"/console/audit\?subjectKind=USER&subjectId=6$"))
    page.go_back()
    expect(page.get_by_label("Yapılan")).to_have_value("PATCH /users/{userId}")
    assert_accessible(page)
    assert not is_sideways(page)


PLAN_PATH = "/api/v1/action-plans/3"
STEPS_PATH = f"{PLAN_PATH}/steps"


def two_steps(stub: ConsoleStub) -> list[Json]:
    """The steps of the plan, as the service has them. Those of a test change them."""
    [step] = stub.answers[f"GET {STEPS_PATH}"]({})[1]["items"]
    steps: list[Json] = [step, step | {"id": 6, "stepOrder": 2, "channelType": "sms", "fallback": [], "withinS": None}]

    def in_order(_: Json) -> tuple[int, Any]:
        return 200, {"items": sorted(steps, key=lambda one: one["stepOrder"]), "nextCursor": None}

    stub.answers[f"GET {STEPS_PATH}"] = in_order
    return steps


def test_a_step_is_changed_by_keyboard_and_taken_back(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    step = two_steps(stub)[0]

    def change(body: Json) -> tuple[int, Any]:
        if body.get("withinS") == 0:
            wrong = {"field": "withinS", "code": "out_of_range", "message": "must be at least 1"}
            return 400, problem(400, "invalid_input")[1] | {"errors": [wrong]}
        step.update({name: value for name, value in body.items() if name in step})
        step["updatedAt"] = f"{len(stub.calls)}"
        return 200, step

    stub.answers[f"PATCH {STEPS_PATH}/5"] = change
    seen = step["updatedAt"]
    page = open_page(at(address, "/console/plans/3"), width=320, color_scheme="dark")
    page.get_by_role("button", name="1. adımı değiştir").press("Enter")
    dialog = page.get_by_role("dialog")
    seconds = dialog.get_by_label("Kaç saniye beklenir")
    seconds.fill("0")
    dialog.get_by_label("Olmazsa, 2.").select_option("E-posta")
    expect(dialog.get_by_label("Olmazsa, 3.")).to_be_visible()
    dialog.get_by_role("button", name="Kaydet").press("Enter")
    expect(seconds).to_have_attribute("aria-invalid", "true")
    expect(dialog.locator(".wrong")).to_have_text("Bu aralıkta olmaz.")
    assert_accessible(page)
    assert not is_sideways(page)
    seconds.fill("30")
    dialog.get_by_role("button", name="Kaydet").press("Enter")
    expect(page.locator(".facts").first).to_contain_text("SMS, E-posta, 30 sn sonra")
    sent = {"fallback": ["sms", "email"], "withinS": 30, "updatedAt": seen}
    assert stub.called(f"PATCH {STEPS_PATH}/5")[-1] == sent
    page.locator(".toasts").get_by_role("button", name="Geri al").click()
    expect(page.locator(".facts").first).to_contain_text("SMS, 60 sn sonra")
    page.get_by_role("button", name="1. adımı değiştir").click()
    dialog.get_by_label("Olmazsa, 1.").select_option("yok")
    stub.answers[f"PATCH {STEPS_PATH}/5"] = lambda _: problem(409, "changed_meanwhile")
    step["audience"] = "ROUTES"
    dialog.get_by_role("button", name="Kaydet").click()
    expect(page.locator(".toasts")).to_contain_text("Bu arada başka bir yönetici değiştirmiş.")
    expect(dialog).to_have_count(0)
    expect(page.locator(".facts").first).to_contain_text("rotadaki alıcılara")
    assert_accessible(page)


def test_steps_are_moved_added_and_removed(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    steps = two_steps(stub)
    page = open_page(at(address, "/console/plans/3"), width=320)

    def move(body: Json) -> tuple[int, Any]:
        steps[0]["stepOrder"] = body["stepOrder"]
        return 200, steps[0]

    def add(body: Json) -> tuple[int, Any]:
        steps.append(steps[0] | {name: value for name, value in body.items() if name != "name"} | {"id": 7})
        return 201, steps[-1]

    def remove(_: Json) -> tuple[int, Any]:
        steps.pop()
        return 204, None

    stub.answers[f"PATCH {STEPS_PATH}/5"] = move
    stub.answers[f"POST {STEPS_PATH}"] = add
    stub.answers[f"DELETE {STEPS_PATH}/7"] = remove
    expect(page.get_by_role("button", name="1. adımı öne al")).to_have_attribute("aria-disabled", "true")
    page.get_by_role("button", name="2. adımı öne al").press("Enter")
    expect(page.locator("main h3")).to_have_text(["2. SMS", "3. Bildirim"])
    assert stub.called(f"PATCH {STEPS_PATH}/5") == [{"stepOrder": 3}]
    page.get_by_role("button", name="Adım ekle").click()
    page.get_by_role("dialog").get_by_label("Kanal").select_option("Uygulama içi")
    page.get_by_role("dialog").get_by_label("Şablon").select_option("matching.on_the_way")
    page.get_by_role("dialog").get_by_role("button", name="Kaydet").click()
    expect(page.locator("main h3")).to_have_text(["2. SMS", "3. Bildirim", "4. Uygulama içi"])
    page.get_by_role("button", name="4. adımı kaldır").click()
    page.get_by_role("dialog").get_by_role("button", name="Kaldır").click()
    expect(page.locator("main h3")).to_have_count(2)
    stub.answers[f"DELETE {STEPS_PATH}/6"] = lambda _: problem(409, "shipped_plan")
    page.get_by_role("button", name="2. adımı kaldır").click()
    page.get_by_role("dialog").get_by_role("button", name="Kaldır").click()
    expect(page.locator(".toasts")).to_contain_text("Bunun yerine planı kapat.")
    assert_accessible(page)


def test_a_plan_is_added_named_and_removed(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    plan = stub.answers[f"GET {PLAN_PATH}"]({})[1] | {"key": None, "status": False}
    stub.answers[f"GET {PLAN_PATH}"] = lambda _: (200, plan)
    stub.answers["POST /api/v1/action-plans"] = lambda _: (201, plan)
    page = open_page(at(address, "/console/plans"))
    page.get_by_role("button", name="Plan ekle").click()
    page.get_by_label("Ad", exact=True).fill("Sıcaklık")
    assert_accessible(page)
    page.get_by_role("button", name="Kaydet").click()
    expect(page).to_have_url(re.compile(r"/plans/3$"))
    assert stub.called("POST /api/v1/action-plans") == [{"name": "Sıcaklık", "description": "", "status": False}]

    def change(body: Json) -> tuple[int, Any]:
        plan.update({"name": body["name"], "updatedAt": "later"})
        return 200, plan

    stub.answers[f"PATCH {PLAN_PATH}"] = lambda body: change({**body, "name": "Sera"})
    seen = plan["updatedAt"]
    page.get_by_role("button", name="Adı ve açıklamayı değiştir").click()
    page.get_by_label("Ad", exact=True).fill("Sera")
    page.get_by_role("button", name="Kaydet").click()
    expect(page.locator("h1")).to_have_text("Sera")
    assert stub.called(f"PATCH {PLAN_PATH}") == [{"name": "Sera", "updatedAt": seen}]
    stub.answers[f"DELETE {PLAN_PATH}"] = lambda _: (204, None)
    page.get_by_role("button", name="Planı kaldır").click()
    page.get_by_role("dialog").get_by_role("button", name="Planı kaldır").click()
    expect(page).to_have_url(re.compile(r"/plans$"))


SAID = {
    "tr": (
        "Cevap veriyor.",
        "Son bir saatte gönderilebilen: %97,3. Yüzde 95’i en çok 12 sn içinde. En uzun bekleyen: 3 sn.",
        ("Adalet raporu", "ne kadar adil"),
    ),
    "en": (
        "It answers.",
        "Sent in the last hour: 97.3%. 95 % of them within 12 s. The oldest that is due waits for 3 s.",
        ("Fairness report", "What fairness_report does."),
    ),
}


@pytest.mark.parametrize("locale", SAID)
def test_health_and_scripts_speak_the_language_of_the_page(
    stub: ConsoleStub, address: str, open_page: OpenPage, locale: str
) -> None:
    database, delivery, (script, about) = SAID[locale]
    stub.me["locale"] = locale
    page = open_page(at(address, "/console/health"), width=320)
    parts = page.locator(".part p")
    expect(parts.nth(0)).to_have_text(database)
    expect(parts.nth(3)).to_have_text(delivery)
    expect(parts.nth(7)).to_have_text("as it was read")
    expect(page.locator(".part [lang]")).to_have_count(1)
    page.goto(f"{address}/console/jobs/new")
    entry = page.locator(".entry", has_text=script)
    expect(entry).to_contain_text(about)


def test_coordinators_see_what_is_theirs(stub: ConsoleStub, address: str, open_page: OpenPage) -> None:
    stub.me = {"id": 2, "role": "COORDINATOR", "name": "Zeynep Koç", "locale": "en"}
    stub.answers["GET /api/v1/dead-letters"] = lambda _: problem(403, "role_forbidden")
    page = open_page(at(address, "/console/plans/3"), **WIDE)
    expect(page.get_by_text("Only admins may change this.")).to_be_visible()
    assert page.locator("main").get_by_role("button").count() == 0
    page.goto(f"{address}/console/{TEMPLATE}")
    expect(page.locator(".note").first).to_contain_text("Ahmet yola çıktı!")
    assert stub.called(PREVIEW) == [] and page.get_by_role("textbox").count() == 0, "coordinators read only"
    places = page.get_by_role("navigation").get_by_role("link")
    expect(places).to_have_count(7)
    for path in ("people", "jobs", "audit", "roster"):
        page.goto(f"{address}/console/{path}")
        expect(page.locator("h1")).to_have_text("There is no such place")
    page.goto(f"{address}/console/dead-letters")
    expect(page.get_by_role("alert")).to_contain_text("Only admins may see this.")
