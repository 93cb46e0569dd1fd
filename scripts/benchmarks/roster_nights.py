"""Ten runs in a row, each with 5 % changed, and no vacuum but autovacuum: do they stay as fast, and the tables as
small?"""

from collections.abc import Sequence
from statistics import median

from benchmarks.attempts import keeping
from benchmarks.bench import Bench, say
from benchmarks.report import Row, Section
from benchmarks.roster_files import ChangedIn, scattered, write_night
from benchmarks.roster_work import empty_queue, sizes, whole_run

DATABASE = "roster_nights"
NIGHTS, SHARE = 10, 5
GOAL_TIME, GOAL_SIZE = 1.3, 1.2
TITLE = (
    f"roster-nights: {NIGHTS} runs in a row over {{people:,}} elders, {SHARE} % changed in each, and no vacuum by hand;"
    " ours: the median of the last five, floor: of the first five; sizes: after the last and the first"
)


def measure(bench: Bench) -> Section:
    people = bench.size(1_500_000, 2_000)
    bench.create(DATABASE)
    times: list[float] = []
    found: list[tuple[float, float, float, int]] = []

    def section(rows: Sequence[Row] = ()) -> Section:
        notes = [
            f"night {number}: {seconds:.1f} s, rows {table:.0f} MB, index {indexes:.0f} MB, changes {changes:.0f} MB,"
            f" {dead:,} rows dead"
            for number, (seconds, (table, indexes, changes, dead)) in enumerate(zip(times, found, strict=True))
        ]
        return Section("roster-nights", TITLE.format(people=people), rows, [*notes, "Night 0 is the first list."])

    with keeping(section):
        for number in range(NIGHTS + 1):
            say(f"roster: night {number} of {NIGHTS}")
            night = write_night(bench.folder, "nights", people, _changed_until(number))
            seconds, _ = whole_run(bench, DATABASE, night)
            with bench.connect(DATABASE) as conn:
                empty_queue(conn)
                times.append(seconds)
                found.append(sizes(conn))
    bench.drop(DATABASE)
    (_, *nights), (_, begin, *_, end) = times, found
    half = NIGHTS // 2
    rows = [
        _row("whole run, s", median(nights[half:]), median(nights[:half]), GOAL_TIME, bench.quick),
        _row("rows, MB", end[0], begin[0], GOAL_SIZE, bench.quick),
        _row("their index, MB", end[1], begin[1], GOAL_SIZE, bench.quick),
    ]
    return section(rows)


def _changed_until(night: int) -> ChangedIn:
    """Each night changes other people."""

    def changed_in(number: int) -> int:
        turn = scattered(number) // SHARE + 1
        return turn if turn <= night else 0

    return changed_in


def _row(name: str, last: float, first: float, goal: float, quick: bool) -> Row:
    return Row(name, last, first, goal=f"≤{goal}x", met=None if quick else last <= goal * first)
