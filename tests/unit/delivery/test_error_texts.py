"""Every error code that a channel or the sender gives by itself is explained to operators."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.delivery.messages.error_texts import REASONS, explain

DELIVERY = Path(__file__).resolve().parents[3] / "app" / "delivery"
MODULES = sorted(
    [*(DELIVERY / "channels").glob("*.py"), DELIVERY / "sending" / "sender.py", DELIVERY / "messages" / "outcomes.py"]
)
CODE = re.compile(r"[A-Z]+(?:_[A-Z0-9]+)+")
# The answers of providers are explained by their code: HTTP_503, SMTP_550.
PROVIDERS_OWN = re.compile(r"HTTP_\d+|SMTP_\d+")
RESULTS = {"SendResult", "MessageRefused", "Verdict", "_after_pause"}


def codes_in(path: Path) -> Iterator[str]:
    """The codes in the arguments of results, and the constants that are named after the code that they hold."""
    tree = ast.parse(path.read_text())
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    yield from (value for name, value in constants.items() if name == value)
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in RESULTS:
            for node in ast.walk(call):
                value = node.value if isinstance(node, ast.Constant) else None
                value = constants.get(node.id) if isinstance(node, ast.Name) else value
                if isinstance(value, str) and CODE.fullmatch(value) and not PROVIDERS_OWN.fullmatch(value):
                    yield value


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_an_error_code_has_its_sentence(path: Path) -> None:
    assert set(codes_in(path)) <= REASONS.keys()


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("HTTP_404", "404 (Not Found): it does not take the message as it is"),
        ("HTTP_503", "broken or overloaded"),
        ("HTTP_429", "send more slowly"),
        ("HTTP_799", "the status 799"),
        ("SMTP_550", "for good (reply 550)"),
        ("SMTP_451", "later (reply 451)"),
        ("TWILIO_21635", "https://www.twilio.com/docs/api/errors/21635"),
        ("WHATSAPP_131049", "under 131049"),
        ("GATEWAY_51", "its own code GATEWAY_51; its documentation"),
        ("INVALID_ARGUMENT", "a field of the message"),
        ("HTTP_x" * 9, "its documentation"),
    ],
)
def test_code_of_a_provider_is_explained(code: str, part: str) -> None:
    assert part in explain(code)


def test_nothing_is_said_of_a_directory_that_may_not_hold_the_address() -> None:
    assert "If it is in the directory" in explain("HTTP_410")


def test_codes_are_found() -> None:
    found = {code for path in MODULES for code in codes_in(path)}
    assert {"PERSON_NOT_FOUND", "NO_SECRET", "CHALLENGE_FAILED", "NO_DEVICE", "CHANNEL_ERROR"} <= found
