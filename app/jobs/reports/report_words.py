"""The words of the report's page, and how numbers are written."""

from collections.abc import Mapping
from dataclasses import dataclass

TURKISH: Mapping[str, str] = {
    "title": "Adalet raporu",
    "made_for": "Kurum {institution}",
    "all_institutions": "Bütün kurumlar",
    "time_zone": "saat dilimi {zone}",
    "empty": "Bu ay için kayıt yok.",
    "show_table": "Tablo",
    "tasks": "Görev",
    "offers": "Teklif",
    "students": "Öğrenci",
    "elders": "Yaşlı",
    "share": "Oran",
    "count": "Sayı",
    "tile_tasks": "görev açıldı",
    "tile_completed": "tamamlandı",
    "tile_unmet": "görevde kimse bulunamadı",
    "tile_silence": "teklif yanıtsız kaldı",
    "tile_gini": "Gini (tamamlanan)",
    "tile_accept": "kabule kadar, ortanca",
    "outcomes": "Görevlerin sonucu",
    "outcomes_about": "Bu ay açılan görevlerin bugünkü durumu.",
    "COMPLETED": "Tamamlandı",
    "CANCELLED": "İptal edildi",
    "TIMED_OUT": "Kimse bulunamadı",
    "PENDING": "Aranıyor",
    "ASSIGNED": "Öğrenci yolda",
    "STARTED": "Öğrenci yanında",
    "answers": "Tekliflerin yanıtı",
    "answers_about": "Sessiz: öğrenci süresinde yanıt vermedi. Atlandı: sırası gelen öğrenci uygun değildi, sorulmadı.",
    "accepted": "Kabul",
    "rejected": "Ret",
    "silent": "Sessiz",
    "withdrawn": "Geri çekildi",
    "live": "Yanıt bekliyor",
    "skipped": "Atlandı",
    "skip_reasons": "Atlanma nedenleri",
    "skip_reasons_about": "Öğrenciye neden sorulmadı.",
    "reason": "Neden",
    "no_reason": "(neden yazılmamış)",
    "INACTIVE": "Hesabı kapalı",
    "OFF_DUTY": "Görevde değil",
    "NO_LOCATION": "Konumu yok",
    "HAS_A_TASK": "Başka görevi var",
    "TOO_FAR": "Uzaklaşmış",
    "loads": "Yük: tamamlanan görev",
    "loads_about": "Kaç öğrenci kaç görev tamamladı. Uygun öğrenci: {available}, hiç sorulmayan: {never}.",
    "completed_tasks": "Tamamlanan görev",
    "evenness": "Yük ne kadar eşit",
    "evenness_about": (
        "Eğri köşegene ne kadar yakınsa yük o kadar eşit. Gini: 0 eşit, 1 hepsi bir öğrencide. Jain: 1 eşit."
    ),
    "measure_asked": "Soruldu",
    "measure_accepted": "Kabul etti",
    "measure_completed": "Tamamladı",
    "over_available": "uygun olanlar",
    "over_asked": "sorulanlar",
    "students_share": "öğrencilerin payı, azdan çoğa",
    "load_share": "yükün payı",
    "equal": "eşit",
    "silence": "Öğrencilere göre sessizlik",
    "silence_about": "Öğrencilerin, kendilerine gelen tekliflerin ne kadarını yanıtsız bıraktığı.",
    "silence_axis": "yanıtsız bırakılan teklif oranı",
    "waiting": "Bekleme",
    "waiting_about": "Düğmeye basıldığı andan başlar. Eğri, o süre içinde yardım bulmuş görevlerin payıdır.",
    "accept": "Kabul",
    "arrive": "Varış",
    "minutes": "dakika",
    "mean": "Ortalama",
    "need": "Mahallelere göre karşılanmayan ihtiyaç",
    "need_about": (
        "Kimse bulunamayan görevler ve oranı. Hücreler geohash ile adlandırılır. {least} yaşlıdan az olan hücre"
        " gösterilmez, komşularıyla ya da “diğer” ile birleştirilir."
    ),
    "need_hidden": "{least} yaşlıdan az olduğu için mahalle gösterilmiyor.",
    "cell": "Hücre",
    "elsewhere": "diğer",
    "rest": "kalanı",
    "unmet": "Karşılanmadı",
    "cancelled": "İptal",
    "busiest": "En çok sorulan öğrenciler",
    "busiest_about": "Öğrenciler kimlik numaralarıyla gösterilir. Hepsi CSV ve JSON dosyalarındadır.",
    "student": "Öğrenci no",
    "asked": "Soruldu",
    "completed": "Tamamladı",
    "silence_share": "Sessizlik",
    "notes": "Nasıl hesaplandı",
    "note_month": "Ay: {begins} – {ends} arasında açılan görevler ve onların teklifleri.",
    "note_available": (
        "Uygun öğrenci: bu ay en az bir kez sorulmuş ya da görev tamamlamış olan, veya raporun çıktığı anda etkin ve"
        " görevde olup hesabı ay bitmeden açılmış olan. Geçmişteki görevde olma saatleri tutulmaz."
    ),
    "note_silence": (
        "Sessizlik payı: kabul, ret ve sessiz teklifler içinde sessizlerin payı. Geri çekilenler ve yanıt bekleyenler"
        " sayılmaz."
    ),
    "note_waiting": "Süreler tam saniyedir. Bir görev yeniden atandıysa son kabul sayılır.",
    "note_need": (
        "Her yaşlı tek hücrede, evinin (kayıtlı değilse bu ayki son görevinin) hücresinde sayılır."
        " “Kalanı”, ayrıca gösterilen parçaları dışında"
        " kalan hücredir. “Diğer” de {least} kişiden az kalacaksa en küçük hücre ona eklenir; böylece toplamdan çıkarma"
        " ile de küçük bir grup bulunamaz."
    ),
}

ENGLISH: Mapping[str, str] = {
    "title": "Fairness report",
    "made_for": "Institution {institution}",
    "all_institutions": "All institutions",
    "time_zone": "time zone {zone}",
    "empty": "Nothing was recorded in this month.",
    "show_table": "Table",
    "tasks": "Tasks",
    "offers": "Offers",
    "students": "Students",
    "elders": "Elders",
    "share": "Share",
    "count": "Count",
    "tile_tasks": "tasks created",
    "tile_completed": "completed",
    "tile_unmet": "of tasks found nobody",
    "tile_silence": "of offers got no answer",
    "tile_gini": "Gini (completed)",
    "tile_accept": "to acceptance, median",
    "outcomes": "Outcomes of tasks",
    "outcomes_about": "The tasks created in this month, in their state of today.",
    "COMPLETED": "Completed",
    "CANCELLED": "Cancelled",
    "TIMED_OUT": "Nobody found",
    "PENDING": "Searching",
    "ASSIGNED": "Student on the way",
    "STARTED": "Student arrived",
    "answers": "Answers to offers",
    "answers_about": (
        "Silent: the student did not answer in time. Skipped: not eligible when their turn came, so not asked."
    ),
    "accepted": "Accepted",
    "rejected": "Rejected",
    "silent": "Silent",
    "withdrawn": "Withdrawn",
    "live": "Not answered yet",
    "skipped": "Skipped",
    "skip_reasons": "Reasons for skipping",
    "skip_reasons_about": "Why a student was not asked.",
    "reason": "Reason",
    "no_reason": "(no reason recorded)",
    "INACTIVE": "Account closed",
    "OFF_DUTY": "Off duty",
    "NO_LOCATION": "No location",
    "HAS_A_TASK": "Has another task",
    "TOO_FAR": "Moved away",
    "loads": "Load: completed tasks",
    "loads_about": "How many students completed how many tasks. Available students: {available}, never asked: {never}.",
    "completed_tasks": "Completed tasks",
    "evenness": "How even the load is",
    "evenness_about": (
        "The nearer the curve to the diagonal, the more even. Gini: 0 even, 1 all on one student. Jain: 1 even."
    ),
    "measure_asked": "Asked",
    "measure_accepted": "Accepted",
    "measure_completed": "Completed",
    "over_available": "the available",
    "over_asked": "the asked",
    "students_share": "share of students, least load first",
    "load_share": "share of load",
    "equal": "even",
    "silence": "Silence by student",
    "silence_about": "Which share of their offers students left without an answer.",
    "silence_axis": "share of offers left without an answer",
    "waiting": "Waiting",
    "waiting_about": "From the press of the button. The curve: which share of the helped tasks had help by then.",
    "accept": "Acceptance",
    "arrive": "Arrival",
    "minutes": "minutes",
    "mean": "Mean",
    "need": "Unmet need by neighbourhood",
    "need_about": (
        "Tasks for which nobody was found, and their share. Cells are named by geohash. A cell of fewer than"
        " {least} elders is not shown but joined with its neighbours or with “elsewhere”."
    ),
    "need_hidden": "No neighbourhood is shown, because there are fewer than {least} elders.",
    "cell": "Cell",
    "elsewhere": "elsewhere",
    "rest": "rest",
    "unmet": "Unmet",
    "cancelled": "Cancelled",
    "busiest": "Students asked most",
    "busiest_about": "Students are shown by their id. The CSV and JSON files have all of them.",
    "student": "Student id",
    "asked": "Asked",
    "completed": "Completed",
    "silence_share": "Silence",
    "notes": "How this was computed",
    "note_month": "Month: tasks created between {begins} and {ends}, and their offers.",
    "note_available": (
        "Available students: those who were asked or completed a task in this month, or who are active and on duty when"
        " the report is made and had their account before the month ended. Past duty is not recorded."
    ),
    "note_silence": (
        "Share of silence: silent offers among those accepted, rejected or silent. Withdrawn offers and those not"
        " answered yet do not count."
    ),
    "note_waiting": "Times are whole seconds. If a task was assigned again, the last acceptance counts.",
    "note_need": (
        "Each elder is counted in one cell: that of their home or, if none is kept, of their last task of the month."
        " “Rest” is a cell without the parts"
        " that are shown by themselves. If “elsewhere” would have fewer than {least} people, the smallest cell is"
        " joined with it, so that subtracting from the totals reveals no small group either."
    ),
}

_TURKISH_MONTHS = "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık"
_ENGLISH_MONTHS = "January February March April May June July August September October November December"
MONTHS = {"tr": _TURKISH_MONTHS.split(), "en": _ENGLISH_MONTHS.split()}
MINUTES_AND_SECONDS = {"tr": ("sa", "dk", "sn"), "en": ("h", "min", "s")}
NONE = "–"


@dataclass(frozen=True)
class ReportWords:
    language: str

    def __getitem__(self, key: str) -> str:
        return (TURKISH if self.language == "tr" else ENGLISH)[key]

    def known(self, key: str) -> str:
        """A word for a value of the database; one that has none is shown as it is."""
        return (TURKISH if self.language == "tr" else ENGLISH).get(key, key)

    def number(self, value: float, digits: int = 0) -> str:
        written = f"{value:,.{digits}f}"
        return written.translate(str.maketrans(",.", ".,")) if self.language == "tr" else written

    def index(self, value: float | None) -> str:
        return NONE if value is None else self.number(value, 3)

    def percent(self, share: float | None, digits: int = 1) -> str:
        if share is None:
            return NONE
        number = self.number(100 * share, digits)
        return f"%{number}" if self.language == "tr" else f"{number}%"

    def duration(self, seconds: float | None) -> str:
        if seconds is None:
            return NONE
        hours, minutes, rest = round(seconds) // 3600, round(seconds) // 60 % 60, round(seconds) % 60
        hour, minute, second = MINUTES_AND_SECONDS[self.language]
        if hours:
            return f"{self.number(hours)} {hour} {minutes:02} {minute}"
        return f"{minutes} {minute} {rest:02} {second}" if minutes else f"{rest} {second}"

    def month(self, year: int, number: int) -> str:
        return f"{MONTHS[self.language][number - 1]} {year}"
