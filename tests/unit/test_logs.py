"""Personal data is masked in logs, also if code logs it by mistake."""

import socket
import subprocess
import sys

import pytest

from app.foundation.logs import mask_personal_data, mask_text


@pytest.mark.parametrize("key", ["name", "phone", "token", "note", "lat", "lon", "body", "location"])
def test_personal_fields_are_masked(key: str) -> None:
    assert mask_personal_data(None, "info", {"event": "something", key: "Ayşe"})[key] == "***"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("could not reach +90 555 010 00 02 now", "could not reach *** now"),
        ("postgresql://yaninda:s3cret@db:5432/yaninda", "postgresql://***@db:5432/yaninda"),
        ("Authorization: Bearer abc.def.ghi", "Authorization: Bearer ***"),
        ("at 40.987012, 29.028011", "at ***, ***"),
        (
            "CheckViolation: no\nDETAIL:  Failing row contains (7, Ayşe,\n0555).\n\nThe above exception was the cause",
            "CheckViolation: no\nDETAIL: ***\n\nThe above exception was the cause",
        ),
        ("task 42 took 3.5 s", "task 42 took 3.5 s"),
    ],
)
def test_free_text_is_masked(text: str, left: str) -> None:
    assert mask_text(text) == left


def test_ids_and_event_names_stay() -> None:
    event = {"event": "offer_made", "task_id": "0190", "student_id": 7}
    assert mask_personal_data(None, "info", dict(event)) == event


@pytest.mark.parametrize("as_json", [False, True])
def test_each_line_is_one_write(as_json: bool) -> None:
    """Processes write to the same file, where the lines of two would mix otherwise."""
    code = f"""
import structlog
from app.foundation.logs import configure_logs
configure_logs("INFO", {as_json})
structlog.get_logger().info("offer_made")
"""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        subprocess.run([sys.executable, "-u", "-c", code], stderr=theirs, check=True)
        written = ours.recv(4096)
    assert b"offer_made" in written and written.endswith(b"\n")
