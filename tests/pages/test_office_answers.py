"""What the views of the console are tested with has the fields of the API, no more and no fewer."""

import json
import re
from typing import Any

import pytest

from app.api.openapi import describe, to_bytes
from app.api.views.catalogue import ROUTES
from tests.pages.office_answers import ANSWERS

DOCUMENT: dict[str, Any] = json.loads(to_bytes(describe(ROUTES)))


@pytest.mark.parametrize("name", ANSWERS)
def test_answer_has_the_fields_of_the_api(name: str) -> None:
    method, path = name.split(" ")
    # A path without parameters comes first: `jobs/catalogue` is not the job with that id.
    paths = sorted(DOCUMENT["paths"], key=lambda one: "{" in one)
    found = next(one for one in paths if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", one), path))
    answer = DOCUMENT["paths"][found][method.lower()]["responses"]["200"]
    _compare(ANSWERS[name], answer["content"]["application/json"]["schema"], name)


def _compare(value: Any, schema: Any, place: str) -> None:
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    if isinstance(value, dict) and "anyOf" in schema:
        _compare(value, schema["anyOf"][0], place)
    if isinstance(value, dict) and "properties" in schema:
        assert set(value) == set(schema["properties"]), place
        for field, below in schema["properties"].items():
            _compare(value[field], below, f"{place}.{field}")
    if isinstance(value, list) and "items" in schema:
        for item in value:
            _compare(item, schema["items"], place)
