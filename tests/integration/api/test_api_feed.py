"""The changes of lists over HTTP: windows of time, cursors, what is not kept any more, and who may read."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import event, text

from app.api.services import Services
from app.roster.kinds.kind import Kind
from app.roster.kinds.known_kinds import kind_named
from tests.support.rosters import RowChange, add_run, added, forget_changes, modified, removed

ELDERS, EINVOICE = kind_named("elders"), kind_named("einvoice")
ISTANBUL = ZoneInfo("Europe/Istanbul")
FIRST = datetime.now(UTC).replace(microsecond=0) - timedelta(days=9)
"""The time of the first run."""


def at(hours: float) -> str:
    """Service time, so many hours after the first run."""
    return (FIRST + timedelta(hours=hours)).astimezone(ISTANBUL).replace(tzinfo=None).isoformat()


def people(*numbers: int) -> list[RowChange]:
    return [added(str(number), title=f"Ayşe {number}") for number in numbers]


@pytest.fixture
def sync(services: Services) -> Any:
    def sync(hours: float, changes: Sequence[RowChange] = (), kind: Kind = EINVOICE) -> None:
        with services.db.transaction() as conn:
            add_run(conn, kind, FIRST + timedelta(hours=hours), changes)

    return sync


@pytest.fixture
def changes(call: Any) -> Any:
    def changes(kind: str = "einvoice", **query: Any) -> tuple[int, Any]:
        response = call("admin", "GET", f"/api/v1/{kind}/changes?{urlencode(query)}")
        return response.status_code, json.loads(response.data)

    return changes


@pytest.fixture
def seen(changes: Any) -> Any:
    """The identifiers on a page."""
    return lambda **query: [change["identifier"] for change in changes(**query)[1]["changes"]]


EXAMPLE: dict[str, Any] = {
    "changes": [
        {
            "identifier": "1234567890",
            "changeType": "added",
            "changedAt": "2026-02-19T15:00:00",
            "title": "ÖRNEK FİRMA A.Ş.",
            "accountType": "Ozel",
            "type": "Kagit",
            "firstCreationTime": "2024-06-15T00:00:00",
            "aliases": [{"alias": "urn:mail:defaultpk", "type": "PK", "creationTime": "2024-06-15T00:00:00"}],
        },
        {
            "identifier": "5555555555",
            "changeType": "removed",
            "changedAt": "2026-02-19T15:00:00",
            "title": None,
            "accountType": None,
            "type": None,
            "firstCreationTime": None,
            "aliases": None,
        },
    ],
    "totalCount": 167,
    "page": 1,
    "pageSize": 100,
    "totalPages": 2,
    "until": "2026-02-19T15:00:00",
}


def test_the_answer_is_that_of_the_seed_with_one_member_more(services: Services, changes: Any):
    day = datetime.now(ISTANBUL).date() - timedelta(days=2)
    synced = datetime(day.year, day.month, day.day, 15, tzinfo=ISTANBUL)
    company, _ = EXAMPLE["changes"]
    fields = {name: company[name] for name in ("title", "accountType", "type", "firstCreationTime")}
    first = RowChange(added("").change_type, company["identifier"], fields, company["aliases"])
    with services.db.transaction() as conn:
        add_run(conn, EINVOICE, synced - timedelta(hours=2))
        add_run(conn, EINVOICE, synced, [first, removed("5555555555"), *people(*range(165))])
    status, answer = changes(since=f"{day}T14:00:00")
    assert status == 200
    expected = json.loads(json.dumps(EXAMPLE).replace("2026-02-19", str(day)))
    expected["changes"] += answer["changes"][2:]
    assert answer.pop("nextCursor")
    assert answer == expected
    assert [list(answer), list(answer["changes"][0])] == [list(expected), list(expected["changes"][0])]
    assert len(answer["changes"]) == 100
    assert len(changes(since=f"{day}T14:00:00", page=2)[1]["changes"]) == 67


def test_other_kinds_show_times_with_their_offset(sync: Any, changes: Any):
    sync(0, kind=ELDERS)
    sync(1, [added("10000000146", name="Ayşe", home={"lat": 40.5, "lon": 29})], ELDERS)
    answer = changes("elders", since=at(0))[1]
    (change,) = answer["changes"]
    assert change["changedAt"] == answer["until"] == f"{at(1)}+03:00"
    assert (change["home"], change["phone"]) == ({"lat": 40.5, "lon": 29}, None)


def test_since_is_exclusive_and_until_inclusive(sync: Any, seen: Any, changes: Any):
    for hours in range(4):
        sync(hours, people(hours))
    assert seen(since=at(1), until=at(2)) == ["2"]
    assert seen(since=at(0.5), until=at(1.5)) == ["1"]
    assert seen(since=at(3)) == seen(since=at(2), until=at(1)) == []
    assert changes(since=at(0), until=at(1.5))[1]["until"] == at(1.5)


def test_times_may_be_written_in_several_ways(sync: Any, seen: Any):
    sync(0)
    sync(1, people(1))
    sync(2, people(2))
    utc = (FIRST + timedelta(hours=1)).replace(tzinfo=None).isoformat()
    local = at(1)
    for since in (local, local.replace("T", " "), f"{local}.999", f"{local}+03:00", f"{local} 03:00", f"{utc}Z"):
        assert seen(since=since) == ["2"], since


def test_each_wrong_value_is_named(sync: Any, changes: Any):
    sync(0)
    since = "2026-02-19T10:00:00"
    wrong: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {"since"}),
        ({"since": "yesterday", "page": "0", "pageSize": "1001"}, {"since", "page", "pageSize"}),
        ({"since": "2026-02-30T10:00:00", "until": "2026-02-19"}, {"since", "until"}),
        ({"since": "1771495200", "page": "-1", "pageSize": "ten"}, {"since", "page", "pageSize"}),
        ({"since": since, "Page": "1"}, {"Page"}),
        ({"cursor": "x", "since": since, "page": 1}, {"since", "page"}),
        ({"cursor": "é"}, {"cursor"}),
    ]
    for query, fields in wrong:
        status, problem = changes(**query)
        assert (status, {error["field"] for error in problem["errors"]}) == (400, fields)


def test_until_never_passes_the_last_run_so_that_a_run_under_way_is_not_missed(
    services: Services, sync: Any, changes: Any, seen: Any
):
    sync(0)
    with services.db.transaction() as conn:
        add_run(conn, EINVOICE, FIRST + timedelta(hours=1), people(1))
        status, answer = changes(since=at(2), until=at(3))
        assert (status, answer["changes"], answer["until"]) == (200, [], at(0))
    assert seen(since=answer["until"], until=at(3)) == ["1"]


def test_a_run_that_commits_between_two_pages_is_neither_mixed_in_nor_missed(sync: Any, changes: Any, seen: Any):
    sync(0)
    sync(1, people(1, 2, 3))
    first = changes(since=at(0), pageSize=2)[1]
    assert (first["totalPages"], first["until"]) == (2, at(1))
    sync(2, people(4, 5, 6))
    # By the number of pages that the first answer told, this is the last page.
    last = changes(since=at(0), pageSize=2, page=2)[1]
    assert [change["identifier"] for change in last["changes"]] == ["3", "4"]
    assert last["until"] == at(1)
    assert seen(since=last["until"]) == ["4", "5", "6"]
    # With the time of the first answer, the pages stay exactly as they were.
    fixed = changes(since=at(0), until=first["until"], pageSize=2, page=2)[1]
    assert ([change["identifier"] for change in fixed["changes"]], fixed["totalCount"]) == (["3"], 3)


def test_a_page_after_the_last_is_empty(sync: Any, changes: Any):
    sync(0)
    sync(1, people(1, 2))
    for page in (3, 2**62):
        answer = changes(since=at(0), page=page, pageSize=1)[1]
        assert (answer["changes"], answer["totalCount"], answer["page"], answer["until"]) == ([], 2, page, at(1))


def test_a_cursor_leads_through_all_changes_and_on_to_those_that_come(sync: Any, changes: Any):
    sync(0)
    sync(1, people(1, 2, 3))
    sync(2)
    cursor = changes(since=at(0), pageSize=1)[1]["nextCursor"]
    found: list[tuple[str, str, int]] = []
    for _ in range(3):
        answer = changes(cursor=cursor, pageSize=1)[1]
        found += [(c["identifier"], answer["until"], answer["totalCount"]) for c in answer["changes"]]
        cursor = answer["nextCursor"]
    # The time of a run is told once all its changes were.
    assert found == [("2", at(0), 2), ("3", at(2), 1)]
    sync(3, [modified("2", title="Ayşe"), removed("3")])
    types = [change["changeType"] for change in changes(cursor=cursor)[1]["changes"]]
    assert types == ["modified", "removed"]


def test_only_a_cursor_of_this_list_is_accepted(sync: Any, changes: Any):
    for kind in (EINVOICE, ELDERS):
        sync(0, kind=kind)
        sync(1, people(1, 2), kind)
    own, foreign = (changes(kind, since=at(0), pageSize=1)[1]["nextCursor"] for kind in ("einvoice", "elders"))
    assert changes(cursor=own)[0] == 200
    tampered = [f"{own[:place]}{'B' if own[place] == 'A' else 'A'}{own[place + 1 :]}" for place in range(len(own))]
    for cursor in (foreign, "x", own + "A", own[:-4], own[:-1], f"{own}=", "A" * len(own), *tampered):
        status, problem = changes(cursor=cursor)
        assert (status, problem["code"], problem["errors"][0]["field"]) == (400, "invalid_value", "cursor"), cursor


def gone(answer: tuple[int, Any]) -> bool:
    status, problem = answer
    return (status, problem.get("code"), problem.get("archive")) == (410, "changes_gone", None)


def test_changes_before_the_first_run_are_gone(sync: Any, changes: Any):
    sync(0)
    assert gone(changes(since=at(-0.01)))
    assert changes(since=at(0))[0] == 200


def test_changes_beyond_the_retention_are_gone_also_while_they_are_still_there(services: Services, changes: Any):
    with services.db.transaction() as conn:
        for days in (40, 31, 29):
            add_run(conn, EINVOICE, FIRST + timedelta(days=9 - days), people(days))
    assert gone(changes(since=at(24 * -22)))
    assert changes(since=at(24 * -20.5))[0] == 200


def test_a_reader_of_the_last_run_has_missed_nothing_however_old_that_is(services: Services, changes: Any):
    with services.db.transaction() as conn:
        add_run(conn, EINVOICE, FIRST - timedelta(days=90))
    last = at(24 * -90)
    assert (changes(since=at(0))[1]["until"], changes(since=last)[0]) == (last, 200)


def test_deleted_changes_are_gone_by_time_and_by_cursor(services: Services, sync: Any, changes: Any):
    sync(0)
    sync(1, people(1, 2))
    sync(2, people(3))
    before, middle = (changes(since=at(0), pageSize=size)[1]["nextCursor"] for size in (1, 2))
    with services.db.transaction() as conn:
        forget_changes(conn, EINVOICE, 2)
    assert gone(changes(since=at(0))) and gone(changes(since=at(0), page=2, pageSize=2))
    assert gone(changes(cursor=before)) and gone(changes(cursor=before, pageSize=1))
    assert changes(since=at(1))[0] == changes(cursor=middle)[0] == 200


def test_a_cursor_is_gone_after_the_database_was_set_back(services: Services, sync: Any, changes: Any):
    sync(0)
    sync(1, people(1))
    cursor = changes(since=at(0))[1]["nextCursor"]
    with services.db.transaction() as conn:
        for statement in (
            "DELETE FROM roster_changes WHERE document_type = 1",
            "DELETE FROM sync_metadata WHERE document_type = 1 AND last_position = 1",
            "UPDATE roster_states SET last_position = 0 WHERE document_type = 1",
        ):
            conn.execute(text(statement))
    assert gone(changes(cursor=cursor))
    sync(2, people(7, 8))
    assert gone(changes(cursor=cursor))


def test_a_list_that_was_never_read_and_an_unknown_one_are_not_found(changes: Any):
    assert changes("edespatch", since=at(0))[1]["code"] == "no_list_yet"
    assert changes("edespatch", cursor="abcd")[1]["code"] == "no_list_yet"
    status, problem = changes("gas", since=at(0))
    assert (status, problem["code"]) == (404, "unknown_kind")


CONSUMERS = "/api/v1/roster/consumers"


def test_a_consumer_reads_its_kind_until_it_is_revoked(app: Any, call: Any, sync: Any, db: Any):
    sync(0)
    made = call("admin", "POST", CONSUMERS, {"kind": "einvoice", "name": "Vergi"})
    assert made.status_code == 201
    consumer, token = made.json["consumer"], made.json["token"]
    assert (consumer["kind"], consumer["scope"], consumer["usedAt"]) == ("einvoice", "READ", None)
    assert made.headers["Location"] == f"{CONSUMERS}/{consumer['id']}"

    def read(kind: str) -> tuple[int, str | None]:
        path = f"/api/v1/{kind}/changes?{urlencode({'since': at(0)})}"
        response = app.test_client().get(path, headers={"Authorization": f"Bearer {token}"})
        return response.status_code, json.loads(response.data).get("code")

    assert read("einvoice") == (200, None)
    assert read("elders") == read("gas") == (403, "consumer_forbidden")
    listed = call("admin", "GET", CONSUMERS)
    (shown,) = [item for item in listed.json["items"] if item["id"] == consumer["id"]]
    assert shown["usedAt"] is not None and token not in listed.text
    with db.reading() as conn:
        assert token not in str(conn.execute(text("SELECT c::text FROM roster_consumers c")).all())
    for _ in range(2):
        assert call("admin", "DELETE", f"{CONSUMERS}/{consumer['id']}").status_code == 204
    assert read("einvoice") == (401, "token_invalid")
    trail = [entry["subject"] for entry in call("admin", "GET", "/api/v1/audit").json["items"]]
    # Each with a repeat that changed nothing.
    deeds = [f"DELETE {CONSUMERS}/{{consumerId}}"] * 2 + [f"POST {CONSUMERS}"]
    assert trail == deeds
    assert call("admin", "DELETE", f"{CONSUMERS}/999").status_code == 404


def test_the_use_of_a_token_is_noted_once_a_minute(app: Any, db: Any, world: Any):
    def noted_after(pause: str) -> bool:
        """Whether a use is noted if the one before was so long ago."""
        with db.transaction() as conn:
            set_back = f"UPDATE roster_consumers SET used_at = clock_timestamp() - interval '{pause}' RETURNING used_at"
            before = conn.execute(text(set_back)).scalar_one()
        path = "/api/v1/students/changes?since=2100-01-01T00:00:00"
        assert app.test_client().get(path, headers={"Authorization": "Bearer yr_world"}).status_code == 200
        with db.reading() as conn:
            return conn.execute(text("SELECT used_at FROM roster_consumers")).scalar_one() > before

    assert not noted_after("50 seconds")
    assert noted_after("70 seconds")


def test_a_consumer_that_makes_no_sense_is_refused(call: Any):
    wrong: dict[str, dict[str, Any]] = {
        "kind": {"kind": "gas", "name": "Vergi"},
        "name": {"kind": "elders"},
        "scope": {"kind": "elders", "name": "Vergi", "scope": "WRITE"},
    }
    for field, body in wrong.items():
        refused = call("admin", "POST", CONSUMERS, body)
        assert (refused.status_code, json.loads(refused.data)["errors"][0]["field"]) == (400, field)


@pytest.mark.parametrize("by", ["cursor", "since"])
def test_changes_that_are_forgotten_in_the_middle_of_a_page_are_gone(
    services: Services, sync: Any, changes: Any, by: str
):
    sync(0)
    sync(1, people(1, 2))
    begin = {"cursor": changes(since=at(0), pageSize=1)[1]["nextCursor"], "since": at(0)}
    sync(2, people(3, 4))
    forgotten: list[int] = []

    def forget(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().startswith("SELECT position") and not forgotten:
            forgotten.append(3)
            with services.db.transaction() as conn:
                forget_changes(conn, EINVOICE, 3)

    event.listen(services.db.engine, "before_cursor_execute", forget)
    try:
        status, answer = changes(**{by: begin[by]})
    finally:
        event.remove(services.db.engine, "before_cursor_execute", forget)
    assert (status, answer["code"], forgotten) == (410, "changes_gone", [3])
