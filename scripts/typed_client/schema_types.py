"""TypeScript types from the JSON schemas of the OpenAPI document."""

import json
import re
import textwrap
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]

LINE_LENGTH = 120
_SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def declaration(name: str, schema: Json) -> str:
    comment = comment_on(schema)
    if "properties" not in schema:
        return f"{comment}export type {name} = {type_of(schema)};"
    open_ended = ["  [name: string]: unknown;"] if schema.get("additionalProperties") is True else []
    return "\n".join([f"{comment}export interface {name} {{", *members(schema, "  "), *open_ended, "}"])


def members(schema: Json, indent: str) -> list[str]:
    required = set(schema.get("required", ()))
    return [
        f"{comment_on(form, indent)}{indent}{name}{'' if name in required else '?'}: {type_of(form, indent)};"
        for name, form in schema["properties"].items()
    ]


def type_of(schema: Json, indent: str = "") -> str:
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(type_of(choice, indent) for choice in schema["anyOf"]))
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(choice) for choice in schema["enum"])
    if schema.get("type") == "array":
        return _array(type_of(schema["items"], indent))
    if schema.get("type") == "object":
        return _object(schema, indent)
    return _SIMPLE[schema["type"]] if "type" in schema else "unknown"


def _array(item: str) -> str:
    return f"({item})[]" if " | " in item else f"{item}[]"


def _object(schema: Json, indent: str) -> str:
    if "properties" in schema:
        return "\n".join(["{", *members(schema, f"{indent}  "), f"{indent}}}"])
    values = schema.get("additionalProperties", True)
    return f"Record<string, {type_of(values, indent) if isinstance(values, dict) else 'unknown'}>"


def union(name: str, choices: list[str]) -> str:
    """`NAME "a" | "b";`, on as many lines as it needs."""
    indent = " " * (len(name) - len(name.lstrip()) + 2)
    words = f"{name} {' | '.join(choices)};"
    # A bar stays with the choice after it.
    filled = textwrap.wrap(words.replace("| ", "|\0"), LINE_LENGTH, subsequent_indent=indent, break_long_words=False)
    return "\n".join(filled).replace("\0", " ")


def quoted(choices: Iterable[str]) -> list[str]:
    return [json.dumps(choice) for choice in sorted(choices)]


def comment_on(described: Json, indent: str = "") -> str:
    text = re.sub(r"\s+", " ", described.get("description", "")).replace("*/", "* /").strip()
    return f"{indent}/** {text} */\n" if text else ""
