"""The OpenAPI document and its page: complete, consistent, and without external files."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from app.api.access import Open
from app.api.docs import render
from app.api.openapi import describe, errors_of, to_bytes
from app.api.routing import Route
from app.api.views.catalogue import ROUTES

DOCUMENT: dict[str, Any] = json.loads(to_bytes(describe(ROUTES)))
PAGE = render(DOCUMENT).decode()


def _refs(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if "$ref" in node else set()
        return own.union(*(_refs(value) for value in node.values()))
    if isinstance(node, list):
        return set().union(*(_refs(value) for value in node))
    return set()


def test_document_is_openapi_3_1_and_its_references_resolve():
    assert DOCUMENT["openapi"].startswith("3.1")
    known = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}
    assert _refs(DOCUMENT) <= known
    assert known <= _refs(DOCUMENT), "a schema that nothing uses"


@pytest.mark.parametrize("route", ROUTES, ids=[route.name for route in ROUTES])
def test_every_route_is_described(route: Route):
    operation = DOCUMENT["paths"][route.path][route.method.lower()]
    assert operation["summary"]
    assert (operation["security"] == []) == isinstance(route.who, Open)
    assert {str(status) for status in route.answers} <= set(operation["responses"])
    for error in errors_of(route):
        assert error.code in operation["x-error-codes"]
    for word, parameter in zip(re.findall(r"\{(\w+)\}", route.path), operation["parameters"], strict=False):
        assert {"name": word, "in": "path", "required": True}.items() <= parameter.items()


def test_bodies_refuse_unknown_fields():
    schemas = DOCUMENT["components"]["schemas"]
    bodies = [name for name in schemas if name.endswith("Body") or name in ("Point", "Nothing")]
    assert len(bodies) >= 7
    for name in bodies:
        assert schemas[name]["additionalProperties"] is False, name


FIELDS_OF_APPS = {
    "Task": "id status createdAt note asked remaining nextStepAt location elder student currentOffer",
    "Me": "id role name locale onDuty openTask offer",
    "MyOffer": "taskId deadline distanceM elderName note",
    "Offer": "studentId rank completedThisMonth distanceM state reason offeredAt deadline",
    "NewTaskBody": "note location",
    "NewUserBody": "role name phone locale location institutionId firebaseUid active",
    "DeviceBody": "token platform addressKind",
    "RecordedPush": "id notificationId title body data recordedAt",
    "AvailabilityBody": "onDuty",
    "Point": "lat lon",
    "Notification": "id notificationType recipient subject body priority status metadata createdAt",
    "TaskPage": "items nextCursor",
}


@pytest.mark.parametrize(("name", "fields"), FIELDS_OF_APPS.items())
def test_fields_that_apps_use_are_described(name: str, fields: str):
    assert set(fields.split()) <= set(DOCUMENT["components"]["schemas"][name]["properties"])


def test_page_lists_every_error_code_and_every_route():
    for error in DOCUMENT["x-errors"]:
        assert f'id="error-{error["code"]}"' in PAGE
        assert error["meaning"]
    for route in ROUTES:
        assert f'id="call-{route.view.__name__}"' in PAGE


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")


def test_page_loads_nothing_and_its_links_resolve():
    reader = _Reader()
    reader.feed(PAGE)
    assert not reader.tags & {"script", "link", "img", "iframe", "object"}
    assert "url(" not in PAGE
    assert "@import" not in PAGE
    assert len(reader.ids) == len(set(reader.ids))
    for link in reader.links:
        assert link == "/openapi.json" or link.removeprefix("#") in reader.ids, link
