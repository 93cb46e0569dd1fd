"""The pictures of README and docs, from a running copy. They are taken again when `TAKE_PICTURES` is set."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FrameLocator, Page, expect
from sqlalchemy import text

from app.api.services import Services
from app.api.tokens import LocalTokens
from app.jobs import service as jobs
from tests.support.animation import Frame, animated, packed
from tests.support.people_at_pages import People, people_at
from tests.support.serving import Phone, serving

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
LARGEST_PICTURE = 150_000
LARGEST_ANIMATION = 400_000
SETTINGS = {"OFFER_TTL_S": "600", "DEMO_SIGN_IN": "true", "HELPLINE_PHONE": "+902165550100", "API_WORKERS": "1"}
PHONES = {"width": 720, "height": 690}
CONSOLE = {"width": 1380, "height": 660}
HELD_MS = (200, 500, 800)
NOTES = (
    "İlaç alınacak",
    "Ampul değişecek",
    "Ekmek ve süt",
    "Market poşeti ağır",
    "Telefon çalışmıyor",
    "Su damacanası",
)
ELDERS = """
    SELECT id FROM users WHERE role = 'ELDER' AND institution_id = 1 AND firebase_uid IS NOT NULL AND id <> ALL(:yours)
     ORDER BY id LIMIT :count
"""

pytestmark = pytest.mark.skipif("TAKE_PICTURES" not in os.environ, reason="writes into docs/pictures")


@pytest.fixture
def people(services: Services) -> Iterator[tuple[People, int]]:
    with services.db.transaction() as conn:
        jobs.settle_neighbourhood(conn, services.settings.time_zone)
    with serving(services.settings, **SETTINGS) as port, people_at(f"http://127.0.0.1:{port}") as people:
        yield people, port


def test_pictures(services: Services, people: tuple[People, int]) -> None:
    PICTURES.mkdir(exist_ok=True)
    open_pages, port = people
    others_ask_for_help(services, port)
    console = open_pages.open("/console", viewport=CONSOLE)
    console.get_by_role("button", name="Zeynep Koç").click()
    phones = open_pages.open("/phone/both", viewport=PHONES, reduced_motion="no-preference")
    frames = list(a_press_and_an_answer(phones, console))
    write("press.png", animated(open_pages.browser, frames), LARGEST_ANIMATION)


def write(name: str, content: bytes, largest: int) -> None:
    assert len(content) < largest, f"{name} has {len(content)} bytes"
    (PICTURES / name).write_bytes(content)


def others_ask_for_help(services: Services, port: int) -> None:
    """So that the console has something to show: some are asked, some are on the way, some have arrived."""
    tokens = LocalTokens(services.settings.auth_secret or "")
    with services.db.transaction() as conn:
        found = conn.execute(text(ELDERS), {"yours": list(range(1, 11)), "count": len(NOTES)}).scalars().all()
    for number, (elder_id, note) in enumerate(zip(found, NOTES, strict=True)):
        elder = Phone(port, elder_id, tokens.issue(elder_id))
        task_id = elder.call("POST", "/tasks", {"note": note})[1]["id"]
        student_id = _asked(services, task_id)
        if student_id is None:
            continue
        student = Phone(port, student_id, tokens.issue(student_id))
        for deed in ("accept", "start")[: number % 3]:
            student.answer(task_id, deed)


def _asked(services: Services, task_id: str) -> int | None:
    with services.db.transaction() as conn:
        live = "SELECT student_id FROM offers WHERE task_id = :id AND state = 'PENDING'"
        return conn.execute(text(live), {"id": task_id}).scalar_one_or_none()


def a_press_and_an_answer(phones: Page, console: Page) -> Iterator[Frame]:
    elder = phones.frame_locator("iframe[title=Ayşe]")
    student = phones.frame_locator("iframe[title=Ahmet]")
    said(elder, "Merhaba Ayşe")
    expect(student.get_by_role("switch", name="Görevdeyim")).to_be_checked()
    yield frame(phones, 1500)
    button = elder.get_by_role("button", name="Öğrenci Çağır")
    button.hover()
    phones.mouse.down()
    expect(elder.locator(".press.holding")).to_be_visible()
    for held_ms in HELD_MS:
        # At this moment of the animation, however long the screenshot takes.
        button.evaluate(
            "(button, ms) => button.getAnimations({ subtree: true }).forEach((one) => (one.currentTime = ms))", held_ms
        )
        yield frame(phones, 250)
    said(elder, "Ahmet'e soruldu")
    phones.mouse.up()
    said(student, "Ayşe yardım istiyor")
    phones.emulate_media(reduced_motion="reduce")
    put_away_the_push(student)
    yield frame(phones, 2200)
    write("phones.png", packed(phones.screenshot()), LARGEST_PICTURE)
    take_console(console)
    student.get_by_role("button", name="Kabul et", exact=True).click()
    said(elder, "Ahmet yola çıktı!")
    said(student, "Ayşe Yılmaz seni bekliyor")
    put_away_the_push(elder)
    yield frame(phones, 2500)
    student.get_by_role("button", name="Geldim").click()
    said(elder, "Ahmet yanınızda")
    yield frame(phones, 2500)


def put_away_the_push(phone: FrameLocator) -> None:
    """It comes some moment later than the event, and would be in some pictures and not in others."""
    push = phone.get_by_role("complementary", name="Bildirim")
    push.get_by_role("button", name="Kapat").click()
    expect(push).to_have_count(0)


def take_console(console: Page) -> None:
    console.locator("a.request", has_text="Ayşe Yılmaz").click()
    expect(console.locator(".offers").first).to_contain_text("Ahmet Çelik")
    expect(console.locator(".map-buttons")).to_be_visible()
    write("console.png", packed(console.screenshot()), LARGEST_PICTURE)


def said(phone: FrameLocator, sentence: str) -> None:
    expect(phone.get_by_role("heading", level=1)).to_have_text(sentence)


def frame(phones: Page, shown_ms: int) -> Frame:
    return Frame(phones.locator(".phones").screenshot(), shown_ms)
