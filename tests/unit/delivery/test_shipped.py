"""The exact shipped texts, and that every shipped step has its templates."""

import pytest

from app.delivery.messages.values import NotificationType
from app.delivery.plans.shipped_plans import DEAD_LETTERS, PLANS, PROFILES, PlanAsShipped
from app.delivery.words.rendering import render
from app.delivery.words.shipped_templates import (
    JOB_FAILED,
    ROSTER_HELD_BACK,
    ROSTER_REFUSED,
    ROSTER_RUN,
    TEMPLATES,
    VERIFICATION_CODE,
)

GIVEN = {"student": "Ahmet", "elder": "Ayşe", "minutes": 10, "seconds": 600, "depth": 20, "code": "048213"}
GIVEN |= {"phone": "+905550100002", "job": "fairness_report"}
GIVEN |= {"kind": "students", "run": 7, "held": True, "count": 60, "rows": 500}
GIVEN |= {"suspended": True}
GIVEN |= {"added": 3, "modified": 2, "removed": 1, "source": "students", "reason": "BAD_ROWS"}

READ = {
    "matching.offer": (
        "Yakınında yeni bir talep var! Kabul etmek için 10 dakikan var.",
        "There is a new request near you! You have 10 minutes to accept it.",
    ),
    "matching.on_the_way": ("Ahmet yola çıktı!", "Ahmet is on the way!"),
    "matching.started": ("Ahmet geldi.", "Ahmet is with you."),
    "matching.completed": ("Ahmet görevini tamamladı. Geçmiş olsun!", "Ahmet has finished. All the best!"),
    "matching.searching_again": (
        "Ahmet gelemiyor. Size başka bir öğrenci arıyoruz.",
        "Ahmet cannot come. We are looking for another student.",
    ),
    "matching.nobody_found": (
        "Maalesef şu an uygun öğrenci bulunamadı.",
        "Unfortunately no student is available right now.",
    ),
    "matching.cancelled": ("Talep iptal edildi.", "The request was cancelled."),
    "matching.assigned_to_you": (
        "Koordinatör size bir görev verdi: Ayşe sizi bekliyor.",
        "A coordinator gave you a task: Ayşe is waiting for you.",
    ),
    "matching.released": ("Bu görev artık sizde değil.", "This task is no longer yours."),
    "matching.nobody_found_for": (
        "Öğrenci bulunamadı. Arayan: Ayşe, telefon: +905550100002.",
        "No student was found. Caller: Ayşe, phone: +905550100002.",
    ),
    "matching.nobody_found_joined": (
        "60 talebe daha öğrenci bulunamadı. Arayan: Ayşe, telefon: +905550100002.",
        "No student was found for 60 more requests. Caller: Ayşe, phone: +905550100002.",
    ),
    "matching.student_withdrew": (
        "Ahmet bir görevi bıraktı (24 saatte 60. kez). Siz izin verene kadar görevde değil."
        " Bekleyen: Ayşe, telefon: +905550100002.",
        "Ahmet gave a task back (60 in 24 hours). The student is off duty until you say otherwise."
        " Waiting: Ayşe, phone: +905550100002.",
    ),
    "matching.short_visits": (
        "Ahmet 24 saatte 60 görevi birkaç dakikada bitirdi. Sonuncusu: Ayşe, telefon: +905550100002.",
        "Ahmet finished 60 tasks within minutes of accepting them, in 24 hours. The last one: Ayşe,"
        " phone: +905550100002.",
    ),
    "matching.not_started": (
        "Ahmet henüz başlamadı. Bekleyen: Ayşe, telefon: +905550100002.",
        "Ahmet has not started yet. Waiting: Ayşe, phone: +905550100002.",
    ),
    "matching.not_completed": (
        "Ahmet henüz bitirmedi. Bekleyen: Ayşe, telefon: +905550100002.",
        "Ahmet has not finished yet. Waiting: Ayşe, phone: +905550100002.",
    ),
    "matching.elder_left": (
        "Ayşe artık listede olmadığı için açık talebi kapatıldı; telefon: +905550100002.",
        "Ayşe is no longer on the list, so the open request was closed; phone: +905550100002.",
    ),
    DEAD_LETTERS: (
        "20 mesaj yerine ulaşmadı. Lütfen ulaşmayan mesajlara bakın.",
        "20 messages did not arrive. Please look at the dead letters.",
    ),
    JOB_FAILED: (
        "fairness_report işi başarısız oldu. Lütfen işin kaydındaki hataya bakın.",
        "The job fairness_report failed. Please look at the error in its record.",
    ),
    ROSTER_RUN: (
        "students: 3 eklendi, 2 değişti, 1 çıktı; 500 kişi var. Uygulanmayan değişiklikler var; 7. çalışmaya bakın.",
        "students: 3 added, 2 modified, 1 removed; 500 people. Some changes were held back; look at run 7.",
    ),
    ROSTER_HELD_BACK: (
        "students listesindeki 60 değişiklik uygulanmadı. Liste doğruysa 7. çalışmayı onaylayın.",
        "60 changes in the list students were held back. If the list is right, approve run 7.",
    ),
    ROSTER_REFUSED: (
        "students listeleri alınamadı (BAD_ROWS). 7. çalışmaya bakın.",
        "The lists of students were refused (BAD_ROWS). Look at run 7.",
    ),
    VERIFICATION_CODE: (
        "Yanında doğrulama kodunuz: 048213. 10 dakika geçerlidir.",
        "Your Yanında verification code: 048213. It is good for 10 minutes.",
    ),
}


@pytest.mark.parametrize("key", TEMPLATES)
def test_every_shipped_text(key: str):
    written = tuple(render(TEMPLATES[key][locale], GIVEN) for locale in ("tr", "en"))
    assert tuple(words.body for words in written) == READ[key]
    assert all(words.subject for words in written)


@pytest.mark.parametrize(("locale", "ending"), [("tr", "telefon: kayıtlı değil."), ("en", "phone: not on file.")])
@pytest.mark.parametrize(
    "key",
    [
        "matching.nobody_found_for",
        "matching.nobody_found_joined",
        "matching.student_withdrew",
        "matching.short_visits",
        "matching.not_started",
        "matching.not_completed",
        "matching.elder_left",
    ],
)
def test_text_without_a_phone_number(key: str, locale: str, ending: str):
    assert render(TEMPLATES[key][locale], GIVEN | {"phone": None}).body.endswith(ending)


TO_STUDENTS = {"offer", "offer_withdrawn", "cancelled", "assigned_to_you", "released"}


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.key)
def test_matching_tells_elders_and_coordinators_twice_rather_than_not_at_all(plan: PlanAsShipped):
    feature, _, notice = plan.key.partition(".")
    wanted = feature == "matching" and notice not in TO_STUDENTS
    assert {step.may_arrive_twice for step in plan.steps} == {wanted}


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.key)
def test_every_shipped_step_has_templates_and_recipients(plan: PlanAsShipped):
    types = {type_.channel_type for type_ in NotificationType}
    for step in plan.steps:
        assert {step.channel_type, *step.fallback} <= types
        assert step.template_key is None or TEMPLATES[step.template_key].keys() == {"tr", "en"}
        assert step.profile_key is None or step.profile_key in PROFILES
