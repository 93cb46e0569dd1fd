"""Refused requests and their errors. One row for each mistake that an app can make."""

import json
from typing import Any

import pytest

from tests.support.api import TASK_ID, FakeMatching, bearer

REFUSED: list[tuple[str, bytes, str, str]] = [
    ("latitude too large", b'{"location": {"lat": 90.1, "lon": 29}}', "location.lat", "out_of_range"),
    ("longitude too small", b'{"location": {"lat": 41, "lon": -180.5}}', "location.lon", "out_of_range"),
    ("not a number", b'{"location": {"lat": NaN, "lon": 29}}', "location.lat", "out_of_range"),
    ("infinity", b'{"location": {"lat": Infinity, "lon": 29}}', "location.lat", "out_of_range"),
    ("overflow", b'{"location": {"lat": 1e999, "lon": 29}}', "location.lat", "out_of_range"),
    ("a boolean for a number", b'{"location": {"lat": 41, "lon": false}}', "location.lon", "wrong_type"),
    ("text for a number", b'{"location": {"lat": "41", "lon": 29}}', "location.lat", "wrong_type"),
    ("half a place", b'{"location": {"lat": 41}}', "location.lon", "required"),
    ("a place with more in it", b'{"location": {"lat": 41, "lon": 29, "alt": 3}}', "location.alt", "unknown_field"),
    ("a place as a list", b'{"location": [41, 29]}', "location", "wrong_type"),
    ("an unknown field", b'{"nota": "x"}', "nota", "unknown_field"),
    ("snake case", b'{"elder_id": 1}', "elder_id", "unknown_field"),
    ("an unknown field with a strange name", b'{"+90 555 010 20 30": 1}', "(unknown)", "unknown_field"),
    ("NUL", b'{"note": "a\\u0000b"}', "note", "wrong_form"),
    ("escape", b'{"note": "a\\u001bb"}', "note", "wrong_form"),
    ("C1 control character", b'{"note": "a\\u0085b"}', "note", "wrong_form"),
    ("a long note", json.dumps({"note": "a" * 501}).encode(), "note", "too_long"),
    ("a number for text", b'{"note": 5}', "note", "wrong_type"),
    ("id zero", b'{"elderId": 0}', "elderId", "out_of_range"),
    ("an id PostgreSQL has no room for", b'{"elderId": 9223372036854775808}', "elderId", "out_of_range"),
    ("an enormous id", b'{"elderId": 99999999999999999999999999999999}', "elderId", "out_of_range"),
    ("a fraction for an id", b'{"elderId": 1.5}', "elderId", "wrong_type"),
    ("an enormous float for an id", b'{"elderId": 1e300}', "elderId", "out_of_range"),
    ("text for an id", b'{"elderId": "1"}', "elderId", "wrong_type"),
    ("a boolean for an id", b'{"elderId": true}', "elderId", "wrong_type"),
]


@pytest.mark.parametrize(("body", "field", "code"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused_value_is_named(client: Any, matching: FakeMatching, body: bytes, field: str, code: str):
    response = client.post("/tasks", data=body, content_type="application/json", headers=bearer("elder"))
    assert response.status_code == 400
    problem = response.get_json(force=True)
    assert problem["code"] == "invalid_input"
    assert [(entry["field"], entry["code"]) for entry in problem["errors"]] == [(field, code)]
    assert matching.calls == []


MALFORMED = [
    b"{",
    b"nope",
    b"{'note': 'x'}",
    b'{"note": "\xff"}',
    b'{"note": "\\ud800"}',
    b'{"note": "a\x00b"}',
    b"[" * 30_000,
    b'{"location": ' * 5_000,
    b'{"elderId": ' + b"9" * 6_000 + b"}",
]


@pytest.mark.parametrize("body", MALFORMED, ids=range(len(MALFORMED)))
def test_invalid_json_is_reported_as_malformed(client: Any, body: bytes):
    response = client.post("/tasks", data=body, content_type="application/json", headers=bearer("elder"))
    problem = response.get_json(force=True)
    assert (response.status_code, problem["code"]) == (400, "malformed_json")
    assert [entry["field"] for entry in problem["errors"]] == ["body"]


@pytest.mark.parametrize("body", [b"null", b"[]", b"1", b'"text"', b"true"])
def test_json_other_than_an_object_is_refused(client: Any, body: bytes):
    response = client.post("/tasks", data=body, content_type="application/json", headers=bearer("elder"))
    assert (response.status_code, response.get_json(force=True)["code"]) == (400, "invalid_input")
    assert response.get_json(force=True)["errors"] == [
        {"field": "body", "message": "must be an object", "code": "wrong_type"}
    ]


def test_place_in_malformed_json_is_named_and_nothing_of_it_quoted(client: Any):
    response = client.post("/tasks", data=b'{"a": secret}', content_type="application/json", headers=bearer("elder"))
    assert response.get_json(force=True)["errors"][0]["message"] == "cannot be read at line 1, column 7"


NOT_JSON = [
    None,
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "application/json; charset=utf-16",
    "application/jsonx",
]


@pytest.mark.parametrize("content_type", NOT_JSON)
def test_body_must_be_sent_as_json(client: Any, content_type: str | None):
    response = client.post("/tasks", data=b"{}", content_type=content_type, headers=bearer("elder"))
    problem = response.get_json(force=True)
    assert (response.status_code, problem["code"]) == (415, "unsupported_media_type")
    assert problem["errors"][0]["field"] == "Content-Type"


def test_compressed_body_is_refused(client: Any):
    headers = bearer("elder") | {"Content-Encoding": "gzip"}
    response = client.post("/tasks", data=b"\x1f\x8b", content_type="application/json", headers=headers)
    assert response.status_code == 415


def test_large_body_is_refused(client: Any):
    body = json.dumps({"note": "a" * 70_000}).encode()
    response = client.post("/tasks", data=body, content_type="application/json", headers=bearer("elder"))
    assert (response.status_code, response.get_json(force=True)["code"]) == (413, "body_too_large")


NOTHING = [
    (None, None),
    (b"", "application/json"),
    (b"{}", "application/json"),
    (b"", "application/x-www-form-urlencoded"),
    (b" {} ", "application/json; charset=UTF-8"),
]


@pytest.mark.parametrize(("data", "content_type"), NOTHING)
@pytest.mark.parametrize("path", ["/tasks", f"/tasks/{TASK_ID}/cancel"])
def test_no_body_and_an_empty_object_are_the_same(client: Any, path: str, data: bytes | None, content_type: str | None):
    method = "POST" if path == "/tasks" else "PUT"
    response = client.open(path, method=method, data=data, content_type=content_type, headers=bearer("elder"))
    assert response.status_code in (200, 201)


def test_call_without_a_body_refuses_fields(client: Any):
    response = client.put(f"/tasks/{TASK_ID}/cancel", json={"reason": "x"}, headers=bearer("elder"))
    assert response.get_json(force=True)["errors"][0]["code"] == "unknown_field"


def test_note_keeps_lines_and_turkish_letters(client: Any, matching: FakeMatching):
    note = "Ekmek, süt\n\tİlaç: ğüşıöç ĞÜŞİÖÇ"
    assert client.post("/tasks", json={"note": note}, headers=bearer("elder")).status_code == 201
    assert matching.calls[0][2].note == note


def test_coordinates_can_be_integers_and_limits_are_included(client: Any):
    for lat, lon in ((41, 29), (90, 180), (-90.0, -180.0)):
        body = {"location": {"lat": lat, "lon": lon}}
        assert client.post("/tasks", json=body, headers=bearer("elder")).status_code == 201


def test_last_of_two_equal_names_counts(client: Any, matching: FakeMatching):
    body = b'{"note": "a", "note": "b"}'
    client.post("/tasks", data=body, content_type="application/json", headers=bearer("elder"))
    assert matching.calls[0][2].note == "b"


QUERIES = [
    ("limit=0", "limit", "out_of_range"),
    ("limit=101", "limit", "out_of_range"),
    ("limit=-1", "limit", "invalid"),
    ("limit=1_0", "limit", "invalid"),
    ("limit=+5", "limit", "invalid"),
    ("limit=1e1", "limit", "invalid"),
    ("limit=%D9%A1", "limit", "invalid"),
    ("limit=", "limit", "invalid"),
    ("limit=1&limit=2", "limit", "given_twice"),
    ("limit=9999999999999999999999", "limit", "invalid"),
    ("status=pending", "status", "not_a_choice"),
    ("cursor=%00", "cursor", "wrong_form"),
    ("cursor=%FF", "cursor", "wrong_form"),
    ("cursor=" + "a" * 201, "cursor", "too_long"),
    ("colour=red", "colour", "unknown_field"),
    ("%F0%9F%98%80=1", "(unknown)", "unknown_field"),
]


@pytest.mark.parametrize(("query", "field", "code"), QUERIES)
def test_query_is_validated_as_strictly_as_a_body(client: Any, query: str, field: str, code: str):
    response = client.get(f"/tasks?{query}", headers=bearer("elder"))
    problem = response.get_json(force=True)
    assert response.status_code == 400, problem
    assert [(entry["field"], entry["code"]) for entry in problem["errors"]] == [(field, code)]


def test_unknown_query_parameters_are_refused(client: Any):
    response = client.get(f"/tasks/{TASK_ID}?full=1", headers=bearer("elder"))
    assert response.get_json(force=True)["errors"][0] == {
        "field": "full", "message": "is not known here", "code": "unknown_field"
    }  # fmt: skip


def test_page_has_twenty_items_by_default(client: Any, matching: FakeMatching):
    client.get("/tasks", headers=bearer("elder"))
    client.get("/tasks?limit=100&status=PENDING&cursor=abc", headers=bearer("elder"))
    assert [call[2]["limit"] for call in matching.calls] == [20, 100]


@pytest.mark.parametrize("word", ["x", "1", "01932c07-4b00-7000-8000-00000000000", "%00", "a" * 3000, "..", "ğ"])
def test_invalid_id_in_a_path_is_refused(client: Any, word: str):
    response = client.get(f"/tasks/{word}", headers=bearer("elder"))
    assert response.status_code in (400, 404)
    assert response.content_type == "application/problem+json"


@pytest.mark.parametrize("word", ["0", "-1", "1.0", "9223372036854775808", "1e3", "%D9%A1", "abc", " 1", "1%20"])
def test_id_of_a_user_fits_the_database(client: Any, word: str):
    response = client.get(f"/users/{word}", headers=bearer("admin"))
    assert (response.status_code, response.get_json(force=True)["code"]) == (400, "invalid_input")


@pytest.mark.parametrize("key", ["", "a" * 129, "schlüssel", "a\tb"])
def test_idempotency_key_is_short_and_printable(client: Any, key: str):
    headers = bearer("elder") | {"Idempotency-Key": key}
    response = client.post("/tasks", json={}, headers=headers)
    assert response.status_code == 400
    assert response.get_json(force=True)["errors"][0]["field"] == "Idempotency-Key"


USERS = [
    ({"role": "ELDER"}, "name", "required"),
    ({"name": "Ayşe"}, "role", "required"),
    ({"role": "CAT", "name": "Ayşe"}, "role", "not_a_choice"),
    ({"role": "ELDER", "name": "   "}, "name", "too_short"),
    ({"role": "ELDER", "name": "a" * 101}, "name", "too_long"),
    ({"role": "ELDER", "name": "Ayşe\nTeyze"}, "name", "wrong_form"),
    ({"role": "ELDER", "name": None}, "name", "wrong_type"),
    ({"role": "ELDER", "name": "Ayşe", "phone": "call me"}, "phone", "wrong_form"),
    ({"role": "ELDER", "name": "Ayşe", "phone": "+90555"}, "phone", "wrong_form"),
    ({"role": "ELDER", "name": "Ayşe", "phone": "+9055501020301234567"}, "phone", "wrong_form"),
    ({"role": "ELDER", "name": "Ayşe", "locale": "de"}, "locale", "not_a_choice"),
    ({"role": "ELDER", "name": "Ayşe", "active": 1}, "active", "wrong_type"),
    ({"role": "ELDER", "name": "Ayşe", "firebaseUid": "a b"}, "firebaseUid", "wrong_form"),
    ({"role": "ELDER", "name": "Ayşe", "firebaseUid": ""}, "firebaseUid", "too_short"),
    ({"role": "ELDER", "name": "Ayşe", "institutionId": 2**63}, "institutionId", "out_of_range"),
    ({"role": "ELDER", "name": "Ayşe", "id": 5}, "id", "unknown_field"),
]


@pytest.mark.parametrize(("body", "field", "code"), USERS)
def test_fields_of_a_user_are_validated(client: Any, body: dict[str, Any], field: str, code: str):
    response = client.post("/users", json=body, headers=bearer("admin"))
    problem = response.get_json(force=True)
    assert response.status_code == 400
    assert [(entry["field"], entry["code"]) for entry in problem["errors"]] == [(field, code)]


@pytest.mark.parametrize("query", ["\xff=1", "limit=\xff", "\xc3(=1"])
def test_query_that_is_not_utf8_is_refused(client: Any, query: str):
    response = client.get("/tasks", headers=bearer("elder"), environ_overrides={"QUERY_STRING": query})
    assert (response.status_code, response.get_json(force=True)["code"]) == (400, "bad_request")


@pytest.mark.parametrize("host", ["a" * 300, "..", "x y", "[::1", "ü.ü", "", "a:b:c", "\x00"])
def test_invalid_host_header_is_no_internal_error(client: Any, host: str):
    assert client.get("/healthz", environ_overrides={"HTTP_HOST": host}).status_code in (200, 400)
    assert client.get("/nowhere", environ_overrides={"HTTP_HOST": host}).status_code in (404, 400)
