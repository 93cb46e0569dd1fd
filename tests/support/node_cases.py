"""Runs the cases of JavaScript modules that need no page, in Node."""

import re
import subprocess
from pathlib import Path

from typed_client.client_files import NODE


def names(cases: Path) -> list[str]:
    return re.findall(r'^test\("([^"]+)"', cases.read_text(), re.MULTILINE)


def report(cases: Path) -> str:
    """All cases in one process, as TAP."""
    done = subprocess.run(
        [NODE, "--test", "--test-isolation=none", "--test-reporter=tap", cases],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


def assert_passed(said: str, name: str) -> None:
    assert re.search(rf"^ok \d+ - {re.escape(name)}$", said, re.MULTILINE), said
