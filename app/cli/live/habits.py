"""What people of the demo do by chance, and how long they take. All times are divided by the pace."""

from enum import Enum
from random import Random

PRESS_EVERY_S = 6.0
DUTY_EVERY_S = 20.0
MOVE_EVERY_S = 8.0
NOTES = (
    *("Ekmek alır mısın?", "Eczaneden ilacım alınacak.", "Telefonumun sesi çıkmıyor.", "Bankaya birlikte gidelim mi?"),
    *("Market torbalarını taşıyamıyorum.", "Ampul değişecek.", "Televizyon açılmıyor.", "Biraz yürüyelim mi?"),
)
ACCEPTS, REJECTS, IGNORES = 0.62, 0.2, 0.18
WRITES_NOTE = 0.7
CANCELS = 0.04
WITHDRAWS = 0.05


class StudentReply(Enum):
    ACCEPT = "accept"
    REJECT = "reject"
    SILENCE = "silence"


class Habits:
    def __init__(self, draws: Random, pace: float, always: StudentReply | None = None) -> None:
        """`always` is what every student who is asked replies; None leaves it to chance."""
        self._draws = draws
        self._pace = pace
        self._always = always

    def press_pause_s(self) -> float:
        return self._draws.uniform(0.5, 1.5) * PRESS_EVERY_S / self._pace

    def duty_pause_s(self) -> float:
        return self._draws.uniform(0.5, 1.5) * DUTY_EVERY_S / self._pace

    def move_pause_s(self) -> float:
        return self._draws.uniform(0.5, 1.5) * MOVE_EVERY_S / self._pace

    def note(self) -> str | None:
        return self._draws.choice(NOTES) if self._draws.random() < WRITES_NOTE else None

    def cancels(self) -> bool:
        return self._draws.random() < CANCELS

    def withdraws(self) -> bool:
        return self._always is None and self._draws.random() < WITHDRAWS

    def leaves(self) -> bool:
        """Whether the next who changes goes off duty."""
        return self._draws.random() < 0.5

    def reply(self) -> StudentReply:
        (reply,) = self._draws.choices(list(StudentReply), (ACCEPTS, REJECTS, IGNORES))
        return self._always or reply

    def reply_s(self) -> float:
        return self._draws.uniform(2.0, 14.0) / self._pace

    def way_s(self) -> float:
        return self._draws.uniform(6.0, 20.0) / self._pace

    def help_s(self) -> float:
        return self._draws.uniform(15.0, 45.0) / self._pace

    def second_thought_s(self) -> float:
        """From the press to a cancellation."""
        return self._draws.uniform(5.0, 30.0) / self._pace

    def step_m(self) -> tuple[float, float]:
        """How far north and east of home somebody is."""
        return self._draws.gauss(0.0, 40.0), self._draws.gauss(0.0, 40.0)

    def one_of(self, ids: list[int]) -> int:
        return self._draws.choice(ids)
