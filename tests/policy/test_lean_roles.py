"""What the modules of a role load. Each library costs every start of every process time and memory."""

import json
import subprocess
import sys

import pytest

from tests.policy.modules import APP

# In a process of its own, as `python -m app` loads a role.
PROGRAM = """
import json, sys
from importlib import import_module
from app.foundation.loading import lean_imports
with lean_imports():
    import app.foundation.logs, app.settings.settings
    role = import_module("app.cli.run_" + sys.argv[1])
if sys.argv[1] == "api":
    role.import_app()
print(json.dumps(sorted(sys.modules)))
# What was left out can be imported later, by the script of a job or by what verifies the tokens of Firebase.
import rich, cryptography.x509
from redis.asyncio import Redis
from sqlalchemy.dialects.postgresql.asyncpg import dialect
"""
NEVER = ("alembic", "firebase_admin", "google", "requests", "httpx", "h2", "opentelemetry", "rich", "sqlalchemy.orm")
NOT_IN = {
    "api": (*NEVER, "cryptography", "httpcore", "xml", "smtplib", "app.delivery.sending"),
    "matcher": (*NEVER, "httpcore", "limits", "flask", "werkzeug", "app.api", "app.roster", "app.jobs"),
    "delivery": (*NEVER, "limits", "flask", "werkzeug", "app.api", "app.matching", "app.roster", "app.jobs"),
}


@pytest.mark.parametrize("role", NOT_IN)
def test_a_role_loads_only_what_it_uses(role: str) -> None:
    loaded = _loaded(role)
    found = {name for name in loaded if any(f"{name}.".startswith(f"{left_out}.") for left_out in NOT_IN[role])}
    assert sorted(found) == []


def _loaded(role: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, role], cwd=APP.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
