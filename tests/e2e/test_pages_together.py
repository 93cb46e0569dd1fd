"""Elder, student and two coordinators side by side, in one Chromium, at the pages of a running copy."""

import time
from dataclasses import dataclass
from uuid import UUID

from playwright.sync_api import Locator, Page, Route, expect
from sqlalchemy import text

from app.api.identities import TokenExpired
from app.api.services import Services
from app.api.tokens import LIFETIME_S, LocalTokens
from app.jobs import service as jobs
from app.users import service as users
from app.users.models import LatLon, Role
from tests.support.browser import assert_accessible
from tests.support.matching import make_overdue
from tests.support.people_at_pages import (
    WIDE,
    People,
    bytes_read,
    focus_by_tab,
    people_at,
    press,
    says,
    was_never_loaded_again,
)
from tests.support.serving import Phone, eventually, serving

HELPLINE = "+902165550100"
HOSTILE = "<img src=x onerror=\"document.title='hit'\">"
FIRST_VIEW_BYTES = 150_000
PHONE_BYTES = 60_000
EXPIRES_IN_S = 20
OFFER_AS_IT_IS_READ = """
- main:
  - heading "Ayşe yardım istiyor" [level=1]
  - timer: /\\d+:\\d\\d/
  - paragraph: /yaklaşık \\d+ m/
  - button "Kabul et"
  - button "Reddet"
"""
ASKED_AS_IT_IS_READ = """
- main:
  - heading "2. öğrenciye soruluyor" [level=1]
  - timer: /\\d+:\\d\\d/
  - list "Aşamalar":
    - listitem: Aranıyor
    - listitem: Yolda
    - listitem: Yanınızda
  - link /Yardım hattını ara/
  - button "Çağrıdan vazgeç"
  - button "Ayarlar"
"""
REQUEST_AS_IT_IS_READ = """
- heading "Ayşe Yılmaz" [level=1]
- button "Tamamlandı say"
- button "Görevi geri al"
- button "İptal et"
- heading /Kime soruldu/ [level=2]
- list
- heading "Neler oldu" [level=2]
- list
"""


@dataclass
class Copy:
    services: Services
    people: People
    port: int
    ids: dict[str, int]

    def token(self, name: str, lasts_s: float = LIFETIME_S) -> str:
        secret = self.services.settings.auth_secret or ""
        return LocalTokens(secret, now=lambda: time.time() - LIFETIME_S + lasts_s).issue(self.ids[name])

    def refuses(self, token: str) -> bool:
        try:
            LocalTokens(self.services.settings.auth_secret or "").verify(token)
        except TokenExpired:
            return True
        return False

    def presses_of(self, name: str) -> int:
        with self.services.db.transaction() as conn:
            count = "SELECT count(*) FROM tasks JOIN users ON users.id = elder_id WHERE users.name = :name"
            return conn.execute(text(count), {"name": name}).scalar_one()


def test_elder_student_and_coordinators_side_by_side(services: Services) -> None:
    """In one test, because roles and Chromium take ten seconds of processor time to start."""
    ids = settle(services)
    settings = {"DEMO_SIGN_IN": "true", "HELPLINE_PHONE": HELPLINE, "API_WORKERS": "1"}
    with serving(services.settings, **settings) as port, people_at(f"http://127.0.0.1:{port}") as people:
        copy = Copy(services, people, port, ids)
        zeynep = open_console_from_the_first_page(people)
        selim = people.open("/console", viewport=WIDE)
        people.sign_in_at(selim, "Selim Aydın")
        ayse = open_phone(people, "elder", "Ayşe Yılmaz", "Merhaba Ayşe")
        student = open_phone(people, "student", "Ahmet Çelik", "Görevdeyim")
        a_student_accepts(copy, ayse, student, zeynep)
        huseyin = press_without_a_connection(copy)
        a_press_waits_for_the_connection(copy, ayse)
        a_student_rejects(copy, ayse, student, zeynep)
        two_coordinators_at_once(ayse, zeynep, selim)
        nobody_answers(copy, ayse, zeynep, selim)
        the_press_is_sent_after_signing_in_again(copy, huseyin)
        assert [was_never_loaded_again(page) for page in (ayse, zeynep, selim)] == [True] * 3
        assert "hit" not in {page.title() for page in (ayse, zeynep, selim, student)}


def settle(services: Services) -> dict[str, int]:
    """The people of the demo by name, and a student whose name looks like markup. Two are off duty, so that a search
    ends sooner."""
    with services.db.transaction() as conn:
        by_key = jobs.settle_neighbourhood(conn, services.settings.time_zone)
        ids = {one.name: by_key[one.key] for one in jobs.YOURS}
        place = LatLon(jobs.HOME.lat + 0.0018, jobs.HOME.lon)
        ids[HOSTILE] = users.create_user(
            conn, users.NewUser(Role.STUDENT, HOSTILE, location=place, institution_id=1)
        ).id
        away = [ids["Ceren Güneş"], ids["Deniz Işık"]]
        conn.execute(text("UPDATE students SET on_duty = false WHERE id = ANY(:ids)"), {"ids": away})
    return ids


def open_console_from_the_first_page(people: People) -> Page:
    page = people.open("/", viewport=WIDE)
    expect(page.locator(".health")).to_have_text("Her şey çalışıyor.")
    assert_accessible(page)
    page.get_by_role("link", name="Koordinatör").click()
    people.sign_in_at(page, "Zeynep Koç")
    expect(page.get_by_text("Açık istek yok.")).to_be_visible()
    expect(page.locator(".map-buttons")).to_be_visible()
    expect(page.locator(".connection")).to_have_text("Canlı")
    assert bytes_read(page) < FIRST_VIEW_BYTES
    assert_accessible(page)
    return page


def open_phone(people: People, kind: str, name: str, first_words: str) -> Page:
    page = people.open(f"/phone/{kind}")
    people.sign_in_at(page, name)
    expect(page.locator("body")).to_contain_text(first_words)
    assert bytes_read(page) < PHONE_BYTES
    return page


def row(console: Page, name: str = "Ayşe Yılmaz") -> Locator:
    return console.locator("a.request", has_text=name)


def a_student_accepts(copy: Copy, ayse: Page, ahmet: Page, zeynep: Page) -> None:
    """Scenario A, and a button that is pressed twice."""
    press(ayse, times=2)
    says(ayse, "Ahmet'e soruldu")
    expect(row(zeynep)).to_contain_text("Soruluyor: Ahmet Çelik")
    says(ahmet, "Ayşe yardım istiyor")
    expect(ahmet.locator("main")).to_match_aria_snapshot(OFFER_AS_IT_IS_READ)
    accept = ahmet.get_by_role("button", name="Kabul et", exact=True)
    focus_by_tab(ahmet, accept)
    ahmet.keyboard.press("Enter")
    says(ahmet, "Ayşe Yılmaz seni bekliyor")
    says(ayse, "Ahmet yola çıktı!")
    expect(row(zeynep)).to_contain_text("Yolda: Ahmet Çelik")
    ahmet.get_by_role("button", name="Geldim").click()
    says(ayse, "Ahmet yanınızda")
    expect(row(zeynep)).to_contain_text("Yanında: Ahmet Çelik")
    assert_accessible(zeynep)
    ahmet.get_by_role("button", name="Yardım tamamlandı").click()
    ahmet.get_by_role("button", name="Evet, tamamlandı").click()
    says(ayse, "Yardım tamamlandı")
    expect(row(zeynep)).to_have_count(0)
    assert copy.presses_of("Ayşe Yılmaz") == 1


def press_without_a_connection(copy: Copy) -> Page:
    """Hüseyin's token expires while his phone has no connection."""
    token = copy.token("Hüseyin Öztürk", EXPIRES_IN_S)
    page = copy.people.open(f"/phone/elder#token={token}")
    says(page, "Merhaba Hüseyin")
    page.context.set_offline(True)
    expect(page.locator(".connection")).to_contain_text("Bağlantı yok.")
    press(page)
    says(page, "Bağlantı gelince gönderilecek")
    return page


def a_press_waits_for_the_connection(copy: Copy, ayse: Page) -> None:
    ayse.context.set_offline(True)
    expect(ayse.locator(".connection")).to_contain_text("Bağlantı yok.")
    press(ayse, times=2)
    says(ayse, "Bağlantı gelince gönderilecek")
    assert_accessible(ayse)
    assert copy.presses_of("Ayşe Yılmaz") == 1
    ayse.context.set_offline(False)
    expect(ayse.get_by_role("heading", level=1)).to_contain_text("<img")
    expect(ayse.locator(".connection")).to_have_text("")
    assert copy.presses_of("Ayşe Yılmaz") == 2


def a_student_rejects(copy: Copy, ayse: Page, student: Page, zeynep: Page) -> None:
    """Scenario B. The student who helped is asked last, and markup in the name of the next one is text everywhere."""
    expect(row(zeynep)).to_contain_text(f"Soruluyor: {HOSTILE}")
    student.goto("about:blank")
    student.goto(f"{copy.people.address}/phone/student#token={copy.token(HOSTILE)}")
    says(student, "Ayşe yardım istiyor")
    student.get_by_role("button", name="Reddet", exact=True).click()
    expect(student.locator(".who")).to_have_text("<img")
    says(ayse, "2. öğrenciye soruluyor")
    expect(ayse.locator(".sentence")).to_contain_text("Berat'a soruldu")
    expect(ayse.locator("main")).to_match_aria_snapshot(ASKED_AS_IT_IS_READ)
    expect(row(zeynep)).to_contain_text("Soruluyor: Berat Şahin")


def two_coordinators_at_once(ayse: Page, zeynep: Page, selim: Page) -> None:
    """The second one is told what the first one did, although the page of the second could not know it yet."""
    for console in (zeynep, selim):
        console.keyboard.press("j")
        expect(console.locator("#request-heading")).to_have_text("Ayşe Yılmaz")
        expect(console.locator(".offers").first).to_contain_text(HOSTILE)
        console.keyboard.press("a")
    held: list[Route] = []
    selim.route("**/tasks/*/assign", lambda route: held.append(route))
    with selim.expect_request("**/tasks/*/assign"):
        selim.get_by_role("button", name="Ata: Deniz Işık").click()
    zeynep.keyboard.type("ceren")
    # The answer to the search makes the buttons anew, and a press of Enter before it would be lost.
    expect(zeynep.get_by_role("button", name="Ata: Deniz Işık")).to_have_count(0)
    focus_by_tab(zeynep, zeynep.get_by_role("button", name="Ata: Ceren Güneş"))
    zeynep.keyboard.press("Enter")
    says(ayse, "Ceren yola çıktı!")
    held[0].continue_()
    expect(selim.locator(".toasts")).to_contain_text("Bu arada başka biri bu isteği değiştirdi.")
    for console in (zeynep, selim):
        expect(console.locator("dialog")).to_have_count(0)
        expect(console.locator(".request-pane")).to_contain_text("Yolda: Ceren Güneş")
        expect(row(console)).to_contain_text("Yolda: Ceren Güneş")
    expect(zeynep.locator(".request-pane")).to_match_aria_snapshot(REQUEST_AS_IT_IS_READ)
    assert_accessible(selim)


def nobody_answers(copy: Copy, ayse: Page, zeynep: Page, selim: Page) -> None:
    """Scenario C. Only the student who has helped is left, and is silent."""
    task_id = zeynep.url.rsplit("/", 1)[1]
    zeynep.get_by_role("button", name="Görevi geri al").click()
    zeynep.get_by_role("dialog").get_by_role("button", name="Görevi geri al").click()
    expect(row(selim)).to_contain_text("Soruluyor: Ahmet Çelik")
    make_overdue(copy.services.db, UUID(task_id))
    says(ayse, "Maalesef şu an uygun öğrenci bulunamadı.")
    expect(ayse.locator(f"a.main[href='tel:{HELPLINE}']")).to_be_visible()
    late = Phone(copy.port, copy.ids["Ahmet Çelik"], copy.token("Ahmet Çelik"))
    status, problem = late.answer(task_id, "accept")
    assert (status, problem["code"]) == (409, "offer_expired")
    for console in (zeynep, selim):
        expect(console).to_have_title("(1) Açık istekler · Yanında")
        expect(console.locator(".toasts")).to_contain_text("Kimse bulunamadı: Ayşe Yılmaz")
    zeynep.keyboard.press("g")
    zeynep.keyboard.press("n")
    owed = zeynep.locator(".owed", has_text="Ayşe Yılmaz")
    owed.get_by_label("Ne oldu?").select_option("HELPED_BY_PHONE")
    assert_accessible(zeynep)
    owed.get_by_role("button", name="Sonucu yaz").click()
    expect(owed).to_have_count(0)
    expect(selim).to_have_title("Açık istekler · Yanında")
    expect(row(selim)).to_have_count(0)


def the_press_is_sent_after_signing_in_again(copy: Copy, huseyin: Page) -> None:
    assert copy.presses_of("Hüseyin Öztürk") == 0
    token = huseyin.evaluate("sessionStorage['yaninda.token.elder']")
    eventually(lambda: copy.refuses(token))
    huseyin.context.set_offline(False)
    expect(huseyin.get_by_text("Oturumun süresi doldu")).to_be_visible()
    expect(huseyin.get_by_text("Giriş yapınca gönderilecek")).to_be_visible()
    assert_accessible(huseyin)
    huseyin.get_by_role("button", name="Hüseyin Öztürk").click()
    expect(huseyin.locator(".sentence")).to_contain_text("soruldu")
    assert copy.presses_of("Hüseyin Öztürk") == 1
