"""The README tells the truth about the settings. `python tests/policy/test_readme.py --write` renews its table."""

import re
import sys
from enum import StrEnum
from pathlib import Path

from pydantic_core import PydanticUndefined

from app.settings.settings import Settings

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN, END = "<!-- settings: written by tests/policy/test_readme.py --write -->", "<!-- /settings -->"


def shown(value: object) -> str:
    if value is PydanticUndefined:
        return "required"
    if value is None:
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{value.value if isinstance(value, StrEnum) else value}`"


def table() -> str:
    rows = [
        f"| `{name.upper()}` | {shown(field.default)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join([BEGIN, "", "| variable | default | |", "|---|---|---|", *rows, "", END])


def test_the_table_of_settings_is_true() -> None:
    assert table() in README.read_text()


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    text = README.read_text()
    README.write_text(re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: table(), text, flags=re.DOTALL))
