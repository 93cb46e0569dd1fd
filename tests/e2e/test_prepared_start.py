"""`serve --prepare`, which `scripts/run` starts before the stores run, where the preparation fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = "postgresql://owner:password@127.0.0.1:1/none"


@pytest.mark.parametrize("told", ["", f"{NOWHERE}\n"], ids=["the script has ended", "the database does not answer"])
def test_no_role_starts_before_the_database_is_prepared(told: str) -> None:
    environment = {"PATH": os.environ["PATH"], "DATABASE_URL": NOWHERE, "REDIS_URL": "redis://:p@127.0.0.1:1/0"}
    done = subprocess.run(
        [sys.executable, "-m", "app", "serve", "--prepare", "database"],
        cwd=ROOT,
        env=environment | {"AUTH_SECRET": "a-secret-for-tests-that-is-long-enough-0123456789"},
        input=told,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "role_started" not in done.stderr
    assert ("Connection refused" in done.stderr) == bool(told)
