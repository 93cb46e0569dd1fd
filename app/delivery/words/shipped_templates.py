"""The templates that the product ships with."""

from app.delivery.words.rendering import Words

VERIFICATION_CODE = "directory.verification_code"
DEAD_LETTERS = "delivery.dead_letters"
JOB_FAILED = "jobs.failed"
ROSTER_RUN = "roster.run"
ROSTER_HELD_BACK = "roster.held_back"
ROSTER_REFUSED = "roster.refused"

# Variables: `student` and `elder` are names, `phone` may be null, and `minutes` is 0 if the time is given by `seconds`.
TEMPLATES: dict[str, dict[str, Words]] = {
    "matching.offer": {
        "tr": Words(
            "Yeni talep",
            "Yakınında yeni bir talep var! Kabul etmek için"
            " {% if minutes %}{{ minutes }} dakikan{% else %}{{ seconds }} saniyen{% endif %} var.",
        ),
        "en": Words(
            "New request",
            "There is a new request near you! You have"
            " {% if minutes %}{{ minutes }} minute{{ '' if minutes == 1 else 's' }}"
            "{% else %}{{ seconds }} second{{ '' if seconds == 1 else 's' }}{% endif %} to accept it.",
        ),
    },
    "matching.on_the_way": {
        "tr": Words("Yardım geliyor", "{{ student }} yola çıktı!"),
        "en": Words("Help is coming", "{{ student }} is on the way!"),
    },
    "matching.started": {
        "tr": Words("Yanınızda", "{{ student }} geldi."),
        "en": Words("By your side", "{{ student }} is with you."),
    },
    "matching.completed": {
        "tr": Words("Tamamlandı", "{{ student }} görevini tamamladı. Geçmiş olsun!"),
        "en": Words("Done", "{{ student }} has finished. All the best!"),
    },
    "matching.searching_again": {
        "tr": Words("Yeniden arıyoruz", "{{ student }} gelemiyor. Size başka bir öğrenci arıyoruz."),
        "en": Words("Searching again", "{{ student }} cannot come. We are looking for another student."),
    },
    "matching.nobody_found": {
        "tr": Words("Öğrenci bulunamadı", "Maalesef şu an uygun öğrenci bulunamadı."),
        "en": Words("Nobody found", "Unfortunately no student is available right now."),
    },
    "matching.cancelled": {
        "tr": Words("İptal edildi", "Talep iptal edildi."),
        "en": Words("Cancelled", "The request was cancelled."),
    },
    "matching.assigned_to_you": {
        "tr": Words("Görev sizde", "Koordinatör size bir görev verdi: {{ elder }} sizi bekliyor."),
        "en": Words("A task for you", "A coordinator gave you a task: {{ elder }} is waiting for you."),
    },
    "matching.released": {
        "tr": Words("Görev geri alındı", "Bu görev artık sizde değil."),
        "en": Words("Task taken back", "This task is no longer yours."),
    },
    "matching.nobody_found_for": {
        "tr": Words(
            "Kimse bulunamadı",
            "Öğrenci bulunamadı. Arayan: {{ elder }}, telefon: {{ phone or 'kayıtlı değil' }}.",
        ),
        "en": Words("Nobody found", "No student was found. Caller: {{ elder }}, phone: {{ phone or 'not on file' }}."),
    },
    "matching.nobody_found_joined": {
        "tr": Words(
            "Yine kimse bulunamadı",
            "{{ count }} talebe daha öğrenci bulunamadı. Arayan: {{ elder }}, telefon: {{ phone or 'kayıtlı değil' }}.",
        ),
        "en": Words(
            "Nobody found again",
            "No student was found for {{ count }} more request{{ '' if count == 1 else 's' }}."
            " Caller: {{ elder }}, phone: {{ phone or 'not on file' }}.",
        ),
    },
    "matching.student_withdrew": {
        "tr": Words(
            "Öğrenci vazgeçti",
            "{{ student }} bir görevi bıraktı (24 saatte {{ count }}. kez)."
            "{% if suspended %} Siz izin verene kadar görevde değil.{% endif %}"
            " Bekleyen: {{ elder }}, telefon: {{ phone or 'kayıtlı değil' }}.",
        ),
        "en": Words(
            "A student withdrew",
            "{{ student }} gave a task back ({{ count }} in 24 hours)."
            "{% if suspended %} The student is off duty until you say otherwise.{% endif %}"
            " Waiting: {{ elder }}, phone: {{ phone or 'not on file' }}.",
        ),
    },
    "matching.short_visits": {
        "tr": Words(
            "Çok kısa görevler",
            "{{ student }} 24 saatte {{ count }} görevi birkaç dakikada bitirdi."
            " Sonuncusu: {{ elder }}, telefon: {{ phone or 'kayıtlı değil' }}.",
        ),
        "en": Words(
            "Very short visits",
            "{{ student }} finished {{ count }} tasks within minutes of accepting them, in 24 hours."
            " The last one: {{ elder }}, phone: {{ phone or 'not on file' }}.",
        ),
    },
    "matching.not_started": {
        "tr": Words(
            "Görev başlamadı",
            "{{ student }} henüz başlamadı. Bekleyen: {{ elder }}, telefon: {{ phone or 'kayıtlı değil' }}.",
        ),
        "en": Words(
            "Not started",
            "{{ student }} has not started yet. Waiting: {{ elder }}, phone: {{ phone or 'not on file' }}.",
        ),
    },
    "matching.not_completed": {
        "tr": Words(
            "Görev bitmedi",
            "{{ student }} henüz bitirmedi. Bekleyen: {{ elder }}, telefon: {{ phone or 'kayıtlı değil' }}.",
        ),
        "en": Words(
            "Not completed",
            "{{ student }} has not finished yet. Waiting: {{ elder }}, phone: {{ phone or 'not on file' }}.",
        ),
    },
    "matching.elder_left": {
        "tr": Words(
            "Talep kapatıldı",
            "{{ elder }} artık listede olmadığı için açık talebi kapatıldı; telefon: {{ phone or 'kayıtlı değil' }}.",
        ),
        "en": Words(
            "Request closed",
            "{{ elder }} is no longer on the list, so the open request was closed;"
            " phone: {{ phone or 'not on file' }}.",
        ),
    },
    DEAD_LETTERS: {
        "tr": Words("Ulaşmayan mesajlar", "{{ depth }} mesaj yerine ulaşmadı. Lütfen ulaşmayan mesajlara bakın."),
        "en": Words("Messages not delivered", "{{ depth }} messages did not arrive. Please look at the dead letters."),
    },
    JOB_FAILED: {
        "tr": Words("İş başarısız", "{{ job }} işi başarısız oldu. Lütfen işin kaydındaki hataya bakın."),
        "en": Words("Job failed", "The job {{ job }} failed. Please look at the error in its record."),
    },
    ROSTER_RUN: {
        "tr": Words(
            "Listeler alındı",
            "{{ kind }}: {{ added }} eklendi, {{ modified }} değişti, {{ removed }} çıktı; {{ rows }} kişi var."
            "{% if held %} Uygulanmayan değişiklikler var; {{ run }}. çalışmaya bakın.{% endif %}",
        ),
        "en": Words(
            "Lists taken",
            "{{ kind }}: {{ added }} added, {{ modified }} modified, {{ removed }} removed; {{ rows }} people."
            "{% if held %} Some changes were held back; look at run {{ run }}.{% endif %}",
        ),
    },
    ROSTER_HELD_BACK: {
        "tr": Words(
            "Liste uygulanmadı",
            "{{ kind }} listesindeki {{ count }} değişiklik uygulanmadı."
            " Liste doğruysa {{ run }}. çalışmayı onaylayın.",
        ),
        "en": Words(
            "Changes held back",
            "{{ count }} changes in the list {{ kind }} were held back. If the list is right, approve run {{ run }}.",
        ),
    },
    ROSTER_REFUSED: {
        "tr": Words("Liste alınamadı", "{{ source }} listeleri alınamadı ({{ reason }}). {{ run }}. çalışmaya bakın."),
        "en": Words("List refused", "The lists of {{ source }} were refused ({{ reason }}). Look at run {{ run }}."),
    },
    VERIFICATION_CODE: {
        "tr": Words("Doğrulama kodu", "Yanında doğrulama kodunuz: {{ code }}. {{ minutes }} dakika geçerlidir."),
        "en": Words(
            "Verification code", "Your Yanında verification code: {{ code }}. It is good for {{ minutes }} minutes."
        ),
    },
}
