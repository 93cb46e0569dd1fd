"""Renders the OpenAPI document as one HTML page, without scripts and without outside assets."""

from collections.abc import Mapping
from html import escape
from typing import Any

from app.api.errors import FieldCode

Json = dict[str, Any]


def render(document: Json) -> bytes:
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    tags = [tag["name"] for tag in document["tags"]]
    sections = "".join(_section(tag, [item for item in operations if tag in item[2]["tags"]]) for tag in tags)
    schemas = "".join(_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items()))
    info = document["info"]
    links = "".join(f'<a href="#{_id(name)}">{escape(name)}</a>' for name in [*tags, "Errors", "Schemas"])
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(info["title"])} API</title><style>{STYLE}</style></head>
<body><header><h1>{escape(info["title"])} <small>API {escape(info["version"])}</small></h1>
{"".join(f"<p>{_prose(part)}</p>" for part in info["description"].split(chr(10) * 2))}
<nav>{links}<a href="/openapi.json">openapi.json</a></nav></header>
<main>{sections}{_errors(document["x-errors"])}<section id="schemas"><h2>Schemas</h2>{schemas}</section></main>
</body></html>
"""
    return page.encode()


def _section(tag: str, operations: list[tuple[str, str, Json]]) -> str:
    body = "".join(_operation(*item) for item in operations)
    return f'<section id="{_id(tag)}"><h2>{escape(tag)}</h2>{body}</section>'


def _body(content: Mapping[str, Any]) -> str:
    [(media_type, described)] = content.items()
    return _type(described["schema"]) if media_type == "application/json" else escape(media_type)


def _operation(method: str, path: str, operation: Json) -> str:
    paragraphs = "".join(f"<p>{_prose(part)}</p>" for part in operation["description"].split("\n\n"))
    parameters = "".join(_parameter(item) for item in operation["parameters"])
    body = operation.get("requestBody")
    takes = f"<p>Takes {_body(body['content'])}</p>" if body else ""
    answers = "".join(_response(status, item) for status, item in operation["responses"].items())
    table = f"<table><tr><th>Parameter<th>Where<th>Form</tr>{parameters}</table>" if parameters else ""
    return (
        f'<details id="call-{escape(operation["operationId"])}"><summary><b class="{method.lower()}">{method}</b>'
        f"<code>{_breakable(path)}</code><span>{escape(operation['summary'])}</span></summary>"
        f"<div>{paragraphs}{table}{takes}<table><tr><th>Status<th>Answer</tr>{answers}</table></div></details>"
    )


def _parameter(parameter: Json) -> str:
    about = parameter.get("description", "")
    about = f"<br>{escape(about)}" if about else ""
    name, form = escape(parameter["name"]), _type(parameter["schema"])
    return f"<tr><td><code>{name}</code><td>{parameter['in']}<td>{form}{about}"


def _response(status: str, response: Json) -> str:
    schemas = [item["schema"] for item in response.get("content", {}).values() if item["schema"]]
    shown = " or ".join(_type(schema) for schema in schemas if not schema.get("$ref", "").endswith("/Problem"))
    return f"<tr><td>{status}<td>{shown} {_prose(response['description'])}"


def _errors(errors: list[Json]) -> str:
    rows = "".join(
        f'<tr id="error-{row["code"]}"><td>{row["status"]}<td><code>{row["code"]}</code><td>{_prose(row["meaning"])}'
        for row in errors
    )
    fields = ", ".join(f"<code>{code.value}</code>" for code in FieldCode)
    return (
        '<section id="errors"><h2>Errors</h2><p>Rely on <code>code</code>; the texts may change.</p>'
        f"<table><tr><th>Status<th>Code<th>Meaning</tr>{rows}</table><p>Codes of single fields: {fields}.</p></section>"
    )


def _schema(name: str, schema: Json) -> str:
    required = set(schema.get("required", ()))
    rows = "".join(
        f"<tr><td><code>{escape(field)}</code>{'' if field in required else ' <i>optional</i>'}<td>{_type(form)}"
        + (f"<br>{_prose(form['description'])}" if "description" in form else "")
        for field, form in schema.get("properties", {}).items()
    )
    about = f"<p>{_prose(schema['description'])}</p>" if "description" in schema else ""
    shown = f"<table><tr><th>Field<th>Form</tr>{rows}</table>" if rows else f"<p>{_type(schema)}</p>"
    title = escape(name)
    return f'<details id="schema-{title}"><summary><code>{title}</code></summary><div>{about}{shown}</div></details>'


def _type(schema: Json) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#schema-{escape(name)}">{escape(name)}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return " ".join(f"<code>{escape(str(choice))}</code>" for choice in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return " ".join([escape(str(schema.get("format") or schema.get("type") or "anything")), *_limits(schema)])


def _limits(schema: Json) -> list[str]:
    limits: list[str] = []
    for least, most, unit in (("minimum", "maximum", ""), ("minLength", "maxLength", " characters")):
        if least in schema or most in schema:
            limits.append(f"<small>{schema.get(least, 'up')} to {schema.get(most, 'any')}{unit}</small>")
    return limits


def _prose(text: str) -> str:
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


def _breakable(path: str) -> str:
    return escape(path).replace("/", "/<wbr>")


def _id(name: str) -> str:
    return name.lower()


STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--ink:#1f5fbf}
@media(prefers-color-scheme:dark){:root{--ink:#8ab8ff}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:56rem;padding:1rem}
h1{margin:.2rem 0}h1 small{font-size:.5em;opacity:.7}h2{margin:2rem 0 .6rem}
a{color:var(--ink)}nav{display:flex;flex-wrap:wrap;gap:.4rem 1rem}
details{border:1px solid var(--line);border-radius:.5rem;margin:.4rem 0}
details>div{padding:0 .8rem .6rem}details[open]>summary{border-bottom:1px solid var(--line)}
summary{cursor:pointer;display:flex;flex-wrap:wrap;gap:.2rem .8rem;align-items:baseline;padding:.5rem .8rem}
summary span{opacity:.75}summary b{font:700 .75rem/1.6 ui-monospace,monospace;min-width:4rem;text-align:center;
border-radius:.3rem;color:#fff;background:#555}b.get{background:#1f5fbf}b.post{background:#2a7a3b}b.put{background:#8a5a00}
b.patch{background:#75409a}b.delete{background:#b03030}
code{font:.9em ui-monospace,monospace;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;margin:.6rem 0;font-size:.92rem}
th,td{border-bottom:1px solid var(--line);padding:.3rem .4rem;text-align:left;vertical-align:top}
td:not(:last-child) code,th{overflow-wrap:normal}td:last-child{overflow-wrap:anywhere}
@media(max-width:34rem){td:not(:last-child) code{overflow-wrap:anywhere}}
th{font-weight:600;background:var(--soft)}small,i{opacity:.75}
:target{outline:2px solid var(--ink)}
"""
