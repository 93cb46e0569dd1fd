"""The operations of the OpenAPI document as methods: their names, their types, and their lines in the table."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from typed_client.schema_types import comment_on, type_of

Json = dict[str, Any]

JSON = "application/json"
FILE = "application/octet-stream"
# Pages have no use for the rest: metrics and documents for people, archives that are read in parts, and streams, which
# events.js reads.
_ANSWERS = {JSON, FILE}
_NO_BODY = "Nothing"


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    described: Json

    @property
    def name(self) -> str:
        """The operationId in camel case. A verb alone gets the noun that it acts on: `acceptTask`."""
        words = self.described["operationId"].split("_")
        if len(words) == 1 and self.path_parameters:
            words.append(self.path.split("/")[1].removesuffix("s"))
        return words[0] + "".join(word.capitalize() for word in words[1:])

    @property
    def path_parameters(self) -> list[Json]:
        return [parameter for parameter in self.described["parameters"] if parameter["in"] == "path"]

    @property
    def query(self) -> list[Json]:
        return [parameter for parameter in self.described["parameters"] if parameter["in"] == "query"]

    @property
    def headers(self) -> dict[str, str]:
        """The name of the option, and the header that it sets."""
        names = [parameter["name"] for parameter in self.described["parameters"] if parameter["in"] == "header"]
        return {_camel(name): name for name in names}

    @property
    def is_for_signed_in(self) -> bool:
        return bool(self.described["security"])

    @property
    def error_codes(self) -> list[str]:
        return self.described["x-error-codes"]

    @property
    def answers(self) -> list[tuple[str, str, Json]]:
        """Status, media type and schema of each answer that is no error; no media type if it has no body."""
        return [
            (status, media_type, content.get("schema", {}))
            for status, answer in self.described["responses"].items()
            if status < "400"
            for media_type, content in (answer.get("content") or {"": {}}).items()
            if not media_type.endswith("problem+json")
        ]

    @property
    def is_for_pages(self) -> bool:
        return {media_type for _, media_type, _ in self.answers} <= {*_ANSWERS, ""} and self.path != "/openapi.json"

    @property
    def takes_body(self) -> bool:
        return self._content.get(JSON, {}).get("schema", {}).get("$ref", _NO_BODY).rpartition("/")[2] != _NO_BODY

    @property
    def takes_file(self) -> bool:
        return bool(self._content.keys() - {JSON})

    @property
    def gives_file(self) -> bool:
        return any(media_type == FILE for _, media_type, _ in self.answers)

    @property
    def _content(self) -> Json:
        return self.described.get("requestBody", {}).get("content", {})

    def is_list(self, schemas: Json) -> bool:
        """True if the answer is a page of a list, so that there may be more."""
        return any(parameter["name"] == "cursor" for parameter in self.query) and any(
            {"items", "nextCursor"} <= schemas.get(type_of(schema), {}).get("properties", {}).keys()
            for _, _, schema in self.answers
        )

    def line(self, schemas: Json) -> str:
        kinds = [kind for kind, applies in self._kinds(schemas).items() if applies]
        if len(kinds) > 1:
            raise ValueError(f"{self.name} needs {' and '.join(kinds)}, and calls.ts does one of them in a call")
        return f"  {self.name}: {json.dumps([self.method, self.path, *kinds])},"

    def _kinds(self, schemas: Json) -> dict[str, bool]:
        is_list = self.is_list(schemas)
        return {
            "body": self.takes_body,
            "file": self.takes_file,
            "query": bool(self.query) and not is_list,
            "list": is_list,
            "blob": self.gives_file,
        }

    def signature(self, schemas: Json) -> str:
        comment = comment_on({"description": f"{self.described['summary']}."}, "  ")
        return f"{comment}  {self.name}({', '.join(self._arguments())}): {self._answer(schemas)};"

    def _arguments(self) -> Iterator[str]:
        for parameter in self.path_parameters:
            yield f"{parameter['name']}: {type_of(parameter['schema'])}"
        if self.takes_body:
            optional = "" if self.described["requestBody"]["required"] else "?"
            yield f"body{optional}: {type_of(self._content[JSON]['schema'])}"
        if self.takes_file:
            yield "file: Blob | ArrayBuffer"
        if self.query:
            fields = "; ".join(
                f"{parameter['name']}{'' if parameter['required'] else '?'}: {type_of(parameter['schema'])}"
                for parameter in self.query
            )
            optional = "" if any(parameter["required"] for parameter in self.query) else "?"
            yield f"query{optional}: {{ {fields} }}"
        headers = "; ".join(f"{name}?: string" for name in self.headers)
        yield f"options?: CallOptions{f' & {{ {headers} }}' if headers else ''}"

    def _answer(self, schemas: Json) -> str:
        types = [
            {JSON: type_of(schema), FILE: "Blob", "": "null"}[media_type] for _, media_type, schema in self.answers
        ]
        answer = " | ".join(dict.fromkeys(types))
        return f"Listing<{answer}>" if self.is_list(schemas) else f"Promise<{answer}>"


def operations_of(document: Json) -> list[Operation]:
    everything = [
        Operation(method.upper(), path, described)
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    ]
    return [operation for operation in everything if operation.is_for_pages]


def _camel(header: str) -> str:
    first, *others = header.split("-")
    return first.lower() + "".join(others)
