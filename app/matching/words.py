"""What people read, in Turkish and in English."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Message(StrEnum):
    """Kinds of messages; phones get them as `type`."""

    OFFER = "OFFER"
    OFFER_WITHDRAWN = "OFFER_WITHDRAWN"
    ON_THE_WAY = "ON_THE_WAY"
    STARTED = "STARTED"
    COMPLETED = "COMPLETED"
    SEARCHING_AGAIN = "SEARCHING_AGAIN"
    NOBODY_FOUND = "NOBODY_FOUND"
    CANCELLED = "CANCELLED"
    ASSIGNED_TO_YOU = "ASSIGNED_TO_YOU"
    RELEASED = "RELEASED"
    NOBODY_FOUND_FOR = "NOBODY_FOUND_FOR"
    NOT_STARTED = "NOT_STARTED"
    NOT_COMPLETED = "NOT_COMPLETED"


@dataclass(frozen=True)
class Words:
    subject: str
    body: str


WORDS: dict[Message, dict[str, Words]] = {
    Message.OFFER: {
        "tr": Words("Yeni talep", "Yakınında yeni bir talep var! Kabul etmek için {time_left} var."),
        "en": Words("New request", "There is a new request near you! You have {time_left} to accept it."),
    },
    Message.OFFER_WITHDRAWN: {"tr": Words("", ""), "en": Words("", "")},
    Message.ON_THE_WAY: {
        "tr": Words("Yardım geliyor", "{student} yola çıktı!"),
        "en": Words("Help is coming", "{student} is on the way!"),
    },
    Message.STARTED: {
        "tr": Words("Yanınızda", "{student} geldi."),
        "en": Words("By your side", "{student} is with you."),
    },
    Message.COMPLETED: {
        "tr": Words("Tamamlandı", "{student} görevini tamamladı. Geçmiş olsun!"),
        "en": Words("Done", "{student} has finished. All the best!"),
    },
    Message.SEARCHING_AGAIN: {
        "tr": Words("Yeniden arıyoruz", "{student} gelemiyor. Size başka bir öğrenci arıyoruz."),
        "en": Words("Searching again", "{student} cannot come. We are looking for another student."),
    },
    Message.NOBODY_FOUND: {
        "tr": Words("Öğrenci bulunamadı", "Maalesef şu an uygun öğrenci bulunamadı."),
        "en": Words("Nobody found", "Unfortunately no student is available right now."),
    },
    Message.CANCELLED: {
        "tr": Words("İptal edildi", "Talep iptal edildi."),
        "en": Words("Cancelled", "The request was cancelled."),
    },
    Message.ASSIGNED_TO_YOU: {
        "tr": Words("Görev sizde", "Koordinatör size bir görev verdi: {elder} sizi bekliyor."),
        "en": Words("A task for you", "A coordinator gave you a task: {elder} is waiting for you."),
    },
    Message.RELEASED: {
        "tr": Words("Görev geri alındı", "Bu görev artık sizde değil."),
        "en": Words("Task taken back", "This task is no longer yours."),
    },
    Message.NOBODY_FOUND_FOR: {
        "tr": Words("Kimse bulunamadı", "Öğrenci bulunamadı. Arayan: {elder}, telefon: {phone}."),
        "en": Words("Nobody found", "No student was found. Caller: {elder}, phone: {phone}."),
    },
    Message.NOT_STARTED: {
        "tr": Words("Görev başlamadı", "{student} henüz başlamadı. Bekleyen: {elder}, telefon: {phone}."),
        "en": Words("Not started", "{student} has not started yet. Waiting: {elder}, phone: {phone}."),
    },
    Message.NOT_COMPLETED: {
        "tr": Words("Görev bitmedi", "{student} henüz bitirmedi. Bekleyen: {elder}, telefon: {phone}."),
        "en": Words("Not completed", "{student} has not finished yet. Waiting: {elder}, phone: {phone}."),
    },
}

UNKNOWN_PHONE = {"tr": "kayıtlı değil", "en": "not on file"}


def say(message: Message, locale: str, **values: str) -> Words:
    words = WORDS[message]["en" if locale == "en" else "tr"]
    return Words(words.subject, words.body.format(**values))


def time_left(ttl: timedelta, locale: str) -> str:
    seconds = int(ttl.total_seconds())
    if seconds < 60:
        return f"{seconds} second{'s' if seconds != 1 else ''}" if locale == "en" else f"{seconds} saniyen"
    minutes = seconds // 60
    return f"{minutes} minute{'s' if minutes != 1 else ''}" if locale == "en" else f"{minutes} dakikan"


def first_name(name: str) -> str:
    """The first word of a name; "Ayşe Nur Yılmaz" is greeted as Ayşe."""
    return name.split()[0] if name.split() else name
