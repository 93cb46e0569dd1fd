"""The schema revision of a database, and the newest revision in the code.

Every process of the API and most commands import this, so only `alembic_config` loads Alembic, for a tenth of a second.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, text

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"

PARTITION = re.compile(r"\w+_(\d{4}_\d\d(_\d\d)?|default)|roster_rows_\d+")
OF_EXPRESSIONS = {"users_search_idx", "audit_entries_subjects_idx"}
"""Indexes that PostgreSQL writes in other words than the models."""


def is_compared(_item: Any, name: str | None, kind: str, reflected: bool, _other: Any) -> bool:
    """False for what the models do not declare: partitions, and the table of PostGIS; and for indexes of expressions,
    whose words Alembic would compare."""
    if kind == "index" and name in OF_EXPRESSIONS:
        return False
    is_of_others = PARTITION.fullmatch(name or "") or name == "spatial_ref_sys"
    return not (kind == "table" and reflected and is_of_others)


def alembic_config(connection: Connection | None = None) -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def head_revision() -> str:
    """The revision that no other one follows."""
    written = "".join(path.read_text() for path in (MIGRATIONS / "versions").glob("*.py"))
    followed = re.findall(r'^down_revision = "(\w+)"$', written, re.MULTILINE)
    [head] = set(re.findall(r'^revision = "(\w+)"$', written, re.MULTILINE)) - set(followed)
    return head


def current_revision(connection: Connection) -> str | None:
    """None for an empty database, in which the table does not exist."""
    if connection.execute(text("SELECT to_regclass('alembic_version')")).scalar_one() is None:
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
