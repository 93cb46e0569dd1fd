"""Lists are compared with those before, and what has changed is applied and published in one transaction."""

import threading
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.db.database import Database
from app.roster.kinds.known_kinds import kind_named
from app.roster.lists.list_refused import ListRefused, Refusal
from app.roster.lists.reading_rules import ReadingRules
from app.roster.runs import approve_run, get_run
from app.roster.sync.comparison import KindReport, Rules, Step, begin, copy_list
from app.roster.sync.guards import GuardLimits, Held
from app.roster.sync.models import RunStatus
from app.roster.sync.whole_run import Gathered, ListFile, RunReport, WholeRun
from app.users import service as users
from app.users.models import Role
from app.users.service import NewUser
from tests.support.lists import line, packed, packed_students, turkish_id

LIMITS = GuardLimits(
    removed_percent=10,
    floor=2,
    least_rows=10,
    removed_percent_of_week=25,
    modified_percent=50,
    modified_percent_of_week=100,
    blanked_percent=20,
    blanked_percent_of_week=30,
)
STUDENTS = "students"


@dataclass
class Lists:
    db: Database
    folder: Path
    limits: GuardLimits = LIMITS
    step: Step = lambda *_: None

    def sync(self, enrolment: Iterable[str], clearance: Iterable[str] = (), **options: Any) -> RunReport:
        # A list has at least one row, so one person stands on both.
        files = {
            "enrolment": _file(packed_students(self.folder / "enrolment.zip", enrolment)),
            "clearance": _file(packed_students(self.folder / "clearance.zip", [*clearance, line(0)])),
        }
        return self.run([STUDENTS], {STUDENTS: files}, **options)

    def run(self, kinds: list[str], gathered: Mapping[str, Gathered], **options: Any) -> RunReport:
        return self.whole().sync([kind_named(name) for name in kinds], gathered, **{"dry_run": False, **options})

    def whole(self) -> WholeRun:
        return WholeRun(self.db, Rules(self.limits, 30), ReadingRules(ZoneInfo("Europe/Istanbul")), self.step)

    def rows(self, kind: str = STUDENTS) -> dict[str, Any]:
        return {
            row.identifier: (row.fields, row.aliases)
            for row in self.all("SELECT * FROM roster_rows WHERE document_type = :type", kind)
        }

    def changes(self, kind: str = STUDENTS) -> list[tuple[int, str]]:
        statement = "SELECT change_type, identifier FROM roster_changes WHERE document_type = :type ORDER BY position"
        return [(row.change_type, row.identifier) for row in self.all(statement, kind)]

    def all(self, statement: str, kind: str = STUDENTS) -> list[Any]:
        with self.db.reading() as conn:
            return list(conn.execute(text(statement), {"type": kind_named(kind).document_type}))


def _file(path: Path) -> ListFile:
    return ListFile(path, sha256(path.read_bytes()).digest())


@pytest.fixture
def lists(db: Database, tmp_path: Path) -> Lists:
    return Lists(db, tmp_path)


def an_admin(services: Services) -> int:
    with services.db.transaction() as conn:
        return users.create_user(conn, NewUser(Role.ADMIN, "Yönetici")).id


def people(count: int, **fields: Any) -> list[str]:
    return [line(number, **fields) for number in range(count)]


def report_of(run: RunReport, kind: str = STUDENTS) -> KindReport:
    return run.kinds[kind]


def test_first_list_is_taken_without_changes(lists: Lists) -> None:
    run = lists.sync(people(20))
    assert run.status is RunStatus.SUCCEEDED
    assert (report_of(run).rows, report_of(run).added, report_of(run).is_first) == (20, 20, True)
    assert len(lists.rows()) == 20
    assert lists.changes() == []


def test_added_modified_and_removed_people_are_published_with_their_snapshot(lists: Lists) -> None:
    lists.sync(people(20))
    run = lists.sync([line(1, name="Ayşe Yeni"), *people(19)[2:], line(0), line(30)])
    assert sorted(lists.changes()) == [(1, turkish_id(30)), (2, turkish_id(1)), (3, turkish_id(19))]
    assert report_of(run).last_position == 3
    snapshots = {row.change_type: row for row in lists.all("SELECT * FROM roster_changes WHERE document_type = :type")}
    assert snapshots[2].fields == {"name": "Ayşe Yeni", "phone": None, "locale": None}
    assert snapshots[2].aliases == [{"alias": "1001", "type": "ENROLMENT"}]
    assert (snapshots[3].fields, snapshots[3].aliases) == (None, None)
    assert turkish_id(19) not in lists.rows()


def test_person_on_both_lists_is_one_row_with_all_affiliations_in_order(lists: Lists) -> None:
    both = [line(1, phone="0532 000 00 00", institution=2), line(1, institution=10)]
    lists.sync([*people(12)[2:], line(0), *both], [line(1, name="Zeynep", institution=10)])
    fields, aliases = lists.rows()[turkish_id(1)]
    assert fields == {"name": "Öğrenci 1", "phone": "+905320000000", "locale": None}
    assert [(one["alias"], one["type"]) for one in aliases] == [
        ("10", "CLEARANCE"),
        ("10", "ENROLMENT"),
        ("2", "ENROLMENT"),
    ]


def test_leaving_one_institution_is_a_modification_and_leaving_both_a_removal(lists: Lists) -> None:
    others = people(20)
    lists.sync([*others, line(30, institution=1), line(30, institution=2)])
    lists.sync([*others, line(30, institution=2)])
    assert lists.changes() == [(2, turkish_id(30))]
    lists.sync(others)
    assert lists.changes()[1:] == [(3, turkish_id(30))]


def test_order_of_a_list_and_letter_case_change_nothing(lists: Lists) -> None:
    lists.sync([line(0), *(line(number, name="IŞIL İNCİ") for number in range(1, 20))])
    run = lists.sync([*(line(number, name="ışıl inci") for number in range(19, 0, -1)), line(0)])
    assert (report_of(run).modified, lists.changes()) == (0, [])


def test_neighbouring_fields_do_not_run_into_each_other(lists: Lists) -> None:
    others = people(12)
    lists.sync([*others, line(30, name="Ali +90", institution=1), line(30, name="Ali +90", institution=23)])
    lists.sync([*others, line(30, name="Ali +90", institution=12), line(30, name="Ali +90", institution=3)])
    assert lists.changes() == [(2, turkish_id(30))]


def test_list_that_was_emptied_by_approval_and_filled_again_is_published(lists: Lists) -> None:
    lists.limits = replace(LIMITS, removed_percent=100, removed_percent_of_week=100, least_rows=0)
    lists.sync(people(5))
    lists.sync([line(0)])
    lists.sync(people(5))
    assert [change for change, _ in lists.changes()] == [3] * 4 + [1] * 4


def test_same_list_again_is_only_noted(lists: Lists) -> None:
    lists.sync(people(20))
    run = lists.sync(people(20))
    assert (run.unchanged, run.kinds, run.status) == ([STUDENTS], {}, RunStatus.SUCCEEDED)
    times = [row.changed_at for row in lists.all("SELECT * FROM sync_metadata ORDER BY changed_at")]
    assert len(times) == 2
    assert times[0] < times[1], "a time names a position, so no two runs have the same"


def test_changes_are_forgotten_also_while_the_list_stays_the_same(lists: Lists) -> None:
    lists.sync(people(20))
    lists.sync(people(21))
    with lists.db.transaction() as conn:
        conn.execute(text("UPDATE sync_metadata SET changed_at = changed_at - interval '31 days'"))
    assert lists.sync(people(21)).unchanged == [STUDENTS]
    assert lists.changes() == []
    assert [row.kept_from for row in lists.all("SELECT kept_from FROM roster_states")] == [1]


@pytest.mark.parametrize(
    ("removed", "held"),
    [(999, None), (1000, None), (1001, Held.TOO_MANY_REMOVED)],
    ids=["9.99 %", "10.00 %", "10.01 %"],
)
def test_removals_above_a_tenth_are_skipped_and_the_rest_is_applied(
    lists: Lists, removed: int, held: Held | None
) -> None:
    lists.sync(people(10_000))
    run = lists.sync([line(20_000), line(0), *people(10_000)[removed + 1 :]])
    assert report_of(run).removals_held is held
    assert report_of(run).removals_found == removed
    assert len(lists.rows()) == 10_001 - (0 if held else removed)
    assert run.status is (RunStatus.PARTIAL if held else RunStatus.SUCCEEDED)
    assert sum(change == 3 for change, _ in lists.changes()) == (0 if held else removed)
    assert sum(change == 1 for change, _ in lists.changes()) == 1


def test_skipped_removals_are_applied_once_after_approval_and_only_for_the_very_list(lists: Lists) -> None:
    lists.sync(people(40))
    held = lists.sync(people(30))
    assert held.id is not None
    with lists.db.transaction() as conn:
        assert approve_run(conn, held.id, None) == [STUDENTS]
    other = lists.sync(people(29))
    assert report_of(other).removals_held is Held.TOO_MANY_REMOVED, "it is another list than the approved one"
    approved = lists.sync(people(30))
    assert (report_of(approved).removed, len(lists.rows())) == (10, 30)
    lists.sync(people(40))
    again = lists.sync(people(30))
    assert report_of(again).removals_held is not None, "an approval holds once"


def test_approval_ends_when_a_later_list_was_taken_in_full(lists: Lists) -> None:
    lists.sync(people(40))
    held = lists.sync(people(30))
    assert held.id is not None
    with lists.db.transaction() as conn:
        approve_run(conn, held.id, None)
    lists.sync(people(41))
    assert report_of(lists.sync(people(30))).removals_held is Held.TOO_MANY_REMOVED


def test_after_an_approved_run_people_may_leave_as_before(lists: Lists) -> None:
    lists.sync(people(100))
    held = lists.sync(people(60))
    assert held.id is not None
    with lists.db.transaction() as conn:
        approve_run(conn, held.id, None)
    assert report_of(lists.sync(people(60))).removed == 40
    assert report_of(lists.sync(people(57))).removed == 3
    removed = [report_of(lists.sync(people(wanted))).removed for wanted in (52, 47, 43)]
    assert removed == [5, 5, 0], "15 of the 60 are a quarter"


def test_nine_percent_a_day_are_held_back_within_a_week(lists: Lists) -> None:
    left, held = 1000, []
    lists.sync(people(left))
    for _ in range(7):
        wanted = left - left * 9 // 100
        run = lists.sync(people(wanted))
        held.append(report_of(run).removals_held)
        left = len(lists.rows())
    assert held == [None] * 3 + [Held.TOO_MANY_REMOVED_THIS_WEEK] * 4
    assert left == 755, "245 of 1,000 have left; the next 9 % would be more than a quarter"


def test_small_list_may_lose_a_few(lists: Lists) -> None:
    lists.sync(people(20))
    assert report_of(lists.sync(people(18))).removed == 2
    assert report_of(lists.sync(people(14))).removals_held is Held.TOO_MANY_REMOVED
    lists.limits = replace(LIMITS, removed_percent=100, removed_percent_of_week=100)
    assert report_of(lists.sync(people(9))).removals_held is Held.TOO_SHORT


def test_column_that_is_suddenly_empty_is_held_back(lists: Lists) -> None:
    with_phone, without = people(100, phone="05320000000"), people(100)
    lists.sync(with_phone)
    run = lists.sync([*without[:30], *with_phone[30:], line(200)])
    assert (report_of(run).modifications_held, report_of(run).blanked) == (Held.TOO_MANY_BLANKED, ["phone"])
    assert (report_of(run).added, report_of(run).modified) == (1, 0)
    assert lists.rows()[turkish_id(1)][0]["phone"] == "+905320000000"
    assert report_of(lists.sync([*without[:20], *with_phone[20:]])).modified == 20


def test_modifications_of_a_week_are_held_back_together(lists: Lists) -> None:
    lists.sync(people(100))
    held: list[Held | None] = []
    for turn in range(4):
        changed = [line(number, name=f"Öğrenci {number} {turn}") for number in range(40)]
        held.append(report_of(lists.sync([*changed, *people(100)[40:]])).modifications_held)
    assert held == [None, None, Held.TOO_MANY_MODIFIED_THIS_WEEK, Held.TOO_MANY_MODIFIED_THIS_WEEK]


def test_column_that_is_emptied_a_little_every_night_is_held_back(lists: Lists) -> None:
    with_phone, without = people(100, phone="05320000000"), people(100)
    lists.sync(with_phone)
    for emptied in (15, 30):
        assert report_of(lists.sync([*without[:emptied], *with_phone[emptied:]])).emptied == {"phone": 15}
    report = report_of(lists.sync([*without[:33], *with_phone[33:]]))
    assert (report.modifications_held, report.blanked) == (Held.TOO_MANY_BLANKED_THIS_WEEK, ["phone"])
    assert report.emptied == {}


def test_dry_run_tells_and_leaves_nothing(lists: Lists) -> None:
    lists.sync(people(20))
    run = lists.sync(people(19), dry_run=True)
    assert (report_of(run).removed, run.id) == (1, None)
    assert (len(lists.rows()), lists.changes()) == (20, [])


def test_dry_run_and_run_go_on_beside_each_other(lists: Lists, tmp_path: Path) -> None:
    """If one waited for the other, this test would not end."""
    lists.sync(people(40))
    held = lists.sync(people(30))
    assert held.id is not None
    with lists.db.transaction() as conn:
        approve_run(conn, held.id, None)
    found: list[RunReport] = []

    def ask(place: str, part: str, _records: int) -> None:
        if (place, part) == (STUDENTS, "apply"):
            folder = tmp_path / "asking"
            folder.mkdir()
            found.append(Lists(lists.db, folder, step=run_beside).sync(people(30), dry_run=True))

    def run_beside(place: str, part: str, _records: int) -> None:
        if (place, part) == (STUDENTS, "compare"):
            found.append(Lists(lists.db, tmp_path).sync(people(30)))

    run = Lists(lists.db, tmp_path, step=ask).sync(people(30))
    sent_away, asked = found
    assert (sent_away.status, report_of(asked).removed, report_of(run).removed) == (RunStatus.PARTIAL, 10, 10)
    assert report_of(asked).removals_held is None, "the approval counts, and is not used up"


def test_second_run_leaves_as_partial_while_one_is_under_way(lists: Lists) -> None:
    with lists.db.transaction() as conn:
        begin(conn)
        run = lists.sync(people(20))
    assert (run.status, run.id, lists.rows()) == (RunStatus.PARTIAL, None, {})


def test_run_that_only_asks_sends_no_other_away(lists: Lists) -> None:
    whole = lists.whole()
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            whole.is_under_way()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for _ in range(30):
            with lists.db.transaction() as conn:
                begin(conn)
                assert whole.is_under_way()
    finally:
        ended.set()
        thread.join()
    assert not whole.is_under_way()


def test_lists_that_were_fetched_before_another_run_are_not_taken_after_it(lists: Lists) -> None:
    lists.sync(people(20))
    after = lists.whole().last_run()
    lists.sync(people(22))
    late = lists.sync(people(21), after=after)
    assert (late.status, late.id, len(lists.rows())) == (RunStatus.PARTIAL, None, 22)
    assert lists.sync(people(21), after=lists.whole().last_run()).status is RunStatus.SUCCEEDED


def test_list_that_is_replaced_after_it_was_fetched_is_refused(lists: Lists) -> None:
    lists.sync(people(20))
    known = _file(packed_students(lists.folder / "enrolment.zip", people(21)))
    packed_students(known.path, people(19))
    run = lists.run([STUDENTS], {STUDENTS: {"enrolment": known, "clearance": known}})
    assert run.refused[STUDENTS]["code"] == "CHECKSUM"
    assert len(lists.rows()) == 20


def test_error_of_the_database_quotes_no_row(lists: Lists) -> None:
    source, row = kind_named(STUDENTS).source, "\\N\t10000000146\tIşıl\n".encode()
    with pytest.raises(Exception, match="missing data for column") as caught, lists.db.transaction() as conn:
        copy_list(conn, source, source.lists[0], [row])
    assert "Işıl" not in "".join(traceback.format_exception(caught.value))


def test_session_that_had_temporary_tables_takes_lists_too(lists: Lists) -> None:
    """Jobs share their connections, and the monthly report makes such tables."""
    lists.db.engine.dispose()
    with lists.db.reading() as conn:
        conn.execute(text("CREATE TEMPORARY TABLE of_a_report AS SELECT 1 AS number"))
        conn.execute(text("DROP TABLE of_a_report"))
    assert lists.sync(people(20)).status is RunStatus.SUCCEEDED


def test_first_run_of_a_kind_lets_all_lists_be_read(lists: Lists) -> None:
    held: list[str] = []

    def read_beside(place: str, part: str, _records: int) -> None:
        if part == "apply":
            with lists.db.transaction() as conn:
                conn.execute(text("SET LOCAL lock_timeout = '200ms'"))
                conn.execute(text("SELECT count(*) FROM roster_rows"))
            held.append(place)

    lists.step = read_beside
    lists.sync(people(20))
    assert (held, len(lists.rows())) == ([STUDENTS], 20)


def test_refused_list_leaves_its_kind_and_the_others_go_on(lists: Lists) -> None:
    lists.sync(people(20))
    gib = {name: _file(packed(lists.folder / f"{name}.zip", USERS.encode(), "l.xml")) for name in ("pk", "gb")}
    students = {
        "enrolment": _file(packed_students(lists.folder / "enrolment.zip", people(19) + ["1;x;;1"] * 5)),
        "clearance": _file(packed_students(lists.folder / "clearance.zip", [line(0)])),
    }
    run = lists.run(["einvoice", STUDENTS], {"gib": gib, STUDENTS: students})
    assert run.status is RunStatus.PARTIAL
    assert run.refused[STUDENTS]["code"] == "BAD_ROWS"
    assert (len(lists.rows()), len(lists.rows("einvoice")), lists.changes()) == (20, 1, [])
    assert run.lists[f"{STUDENTS}/enrolment"].bad_rows[0] == {"line": 21, "flaw": "IDENTIFIER", "field": "identifier"}
    assert run.id is not None
    with lists.db.reading() as conn:
        assert get_run(conn, run.id).status is RunStatus.PARTIAL


USERS = """<?xml version="1.0" encoding="UTF-8"?>
<UserList><User><Identifier>1234567890</Identifier><Title>ÖRNEK FİRMA A.Ş.</Title><Type>Kagit</Type>
<FirstCreationTime>2024-06-15T00:00:00</FirstCreationTime><AccountType>Ozel</AccountType><Documents>
<Document type="Invoice"><Alias><Name>urn:mail:defaultpk</Name><CreationTime>2024-06-15T00:00:00</CreationTime></Alias>
</Document><Document type="DespatchAdvice"><Alias><Name>urn:mail:irsaliye</Name>
<CreationTime>2025-01-01T00:00:00</CreationTime></Alias></Document></Documents></User></UserList>"""


def test_two_kinds_of_one_source_are_told_apart_by_document(lists: Lists) -> None:
    gib = {name: _file(packed(lists.folder / f"{name}.zip", USERS.encode(), "l.xml")) for name in ("pk", "gb")}
    lists.run(["einvoice", "edespatch"], {"gib": gib})
    fields, aliases = lists.rows("einvoice")["1234567890"]
    assert fields == {
        "title": "ÖRNEK FİRMA A.Ş.",
        "accountType": "Ozel",
        "type": "Kagit",
        "firstCreationTime": "2024-06-15T00:00:00",
    }
    assert aliases == [
        {"alias": "urn:mail:defaultpk", "type": type_, "creationTime": "2024-06-15T00:00:00"} for type_ in ("GB", "PK")
    ]
    assert lists.rows("edespatch")["1234567890"][1][0]["alias"] == "urn:mail:irsaliye"


def test_people_who_changed_are_queued_with_the_change(lists: Lists) -> None:
    queued = "SELECT identifier FROM roster_to_apply WHERE document_type = :type"
    lists.sync(people(20))
    assert len(lists.all(queued)) == 20
    lists.sync(people(19))
    assert len(lists.all(queued)) == 20, "one who waits is not queued twice"


def test_two_runs_at_once_are_one_after_the_other(lists: Lists) -> None:
    lists.sync(people(20))
    found: list[RunStatus] = []
    barrier = threading.Barrier(4)

    def run(number: int) -> None:
        folder = lists.folder / str(number)
        folder.mkdir()
        barrier.wait()
        found.append(Lists(lists.db, folder).sync([*people(20), line(100 + number)]).status)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    positions = [row.position for row in lists.all("SELECT position FROM roster_changes ORDER BY position")]
    assert RunStatus.SUCCEEDED in found
    assert positions == list(range(1, len(positions) + 1)), "the changes of a kind are numbered without gaps"


def test_webhooks_are_told_of_changes_and_administrators_of_what_was_held_back(
    lists: Lists, services: Services
) -> None:
    admin = an_admin(services)
    lists.sync(people(40))
    lists.sync(people(30))
    told = (
        "SELECT plan.key, a.person_id, a.variables FROM actions a JOIN action_plans plan ON plan.id = a.action_plan_id"
    )
    with lists.db.reading() as conn:
        actions = list(conn.execute(text(told + " ORDER BY a.id")))
    assert [(row.key, row.variables.get("held"), row.variables.get("count")) for row in actions] == [
        ("roster.run", False, None),
        ("roster.run", True, None),
        ("roster.held_back", None, 10),
    ]
    assert actions[-1].person_id == admin


def test_administrators_are_told_of_a_source_that_was_refused_while_others_were_taken(
    lists: Lists, services: Services
) -> None:
    admin = an_admin(services)
    file = _file(packed_students(lists.folder / "list.zip", people(20)))
    files = {"enrolment": file, "clearance": file}
    refused = ListRefused(Refusal.UNREACHABLE, "The server does not answer.")
    assert lists.run([STUDENTS, "elders"], {STUDENTS: files, "elders": refused}).status is RunStatus.PARTIAL
    assert lists.run(["elders"], {"elders": refused}).status is RunStatus.FAILED
    told = (
        "SELECT a.person_id, a.variables FROM actions a JOIN action_plans plan ON plan.id = a.action_plan_id"
        " WHERE plan.key = 'roster.refused'"
    )
    [action] = lists.all(told)
    assert action.person_id == admin
    assert (action.variables["source"], action.variables["reason"]) == ("elders", "UNREACHABLE")
