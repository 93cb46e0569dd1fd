"""Every subject and body arrives unchanged and adds no header."""

import re
from email import message_from_bytes, policy
from email.message import EmailMessage

from hypothesis import given
from hypothesis import strategies as st

from app.delivery.channels.email_message import compose
from app.settings.mail_server import parse_sender
from tests.support.delivery import notification

SENDER = parse_sender("Yanında <bildirim@ornek.org>")
HEADERS = 9

printable = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))
# Pieces that mail programs interpret.
tricks = st.sampled_from(["=?", "?=", "utf-8", "?q?", "?b?", "=0D=0A", "DQo=", "Bcc:", "ş", " ", "  ", "x" * 90, "👵"])
subjects = st.text(printable) | st.lists(tricks, max_size=30).map("".join)


def parsed(content: bytes) -> EmailMessage:
    message = message_from_bytes(content, policy=policy.default)
    assert isinstance(message, EmailMessage)
    return message


@given(subjects, st.sampled_from(["ayse@ornek.org", "ayşe@ornek.org"]))
def test_every_subject_arrives_unchanged(subject: str, recipient: str) -> None:
    content = compose(notification(subject=subject), SENDER, recipient).content
    message = parsed(content)
    assert message["Subject"] == subject
    assert len(message.keys()) == len(set(message.keys())) == HEADERS


@given(st.text(st.characters(exclude_categories=("Cs",))) | st.text(".\r\nş =", max_size=200))
def test_every_body_arrives_unchanged_in_short_lines(body: str) -> None:
    content = compose(notification(body=body), SENDER, "ayse@ornek.org").content
    head, _, words = content.partition(b"\r\n\r\n")
    assert len(parsed(content).keys()) == HEADERS and b"\r\n." not in head
    lines = re.split("\r\n|\r|\n", parsed(content).get_content().removesuffix("\r\n"))
    assert lines == re.split("\r\n|\r|\n", re.sub(r"(\r\n|\r|\n)\Z", "", body))
    assert all(len(line) <= 78 for line in content.split(b"\r\n")) and content.isascii()
    assert not re.search(rb"(?<!\r)\n|\r(?!\n)", words)
