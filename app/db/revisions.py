"""The schema revision of a database, and the newest revision in the code."""

import re
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"

PARTITION = re.compile(r"\w+_(\d{4}_\d\d|default)|roster_rows_\d+")


def is_compared(_item: Any, name: str | None, kind: str, reflected: bool, _other: Any) -> bool:
    """False for what the models do not declare: partitions, and the table of PostGIS."""
    is_of_others = PARTITION.fullmatch(name or "") or name == "spatial_ref_sys"
    return not (kind == "table" and reflected and is_of_others)


def alembic_config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def head_revision() -> str:
    head = ScriptDirectory.from_config(alembic_config()).get_current_head()
    assert head is not None, "the migrations folder holds no migration"
    return head


def current_revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()
