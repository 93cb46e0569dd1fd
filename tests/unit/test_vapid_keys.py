"""The keys of Web Push: printed by a command, taken by the settings, refused if they do not belong together."""

from typing import Any, cast

import pytest

from app.cli.make_vapid_keys import main
from app.settings.settings import SettingsError, load_settings
from app.settings.vapid_keys import create

GOOD = {
    "DATABASE_URL": "postgresql://yaninda:hidden@127.0.0.1/yaninda",
    "REDIS_URL": "redis://127.0.0.1/0",
    "AUTH_SECRET": "0123456789-0123456789-0123456789-abc",
}
PUBLIC, PRIVATE = create()
KEYS = {"VAPID_PUBLIC_KEY": PUBLIC, "VAPID_PRIVATE_KEY": PRIVATE, "VAPID_SUBJECT": "mailto:nobet@ornek.org"}


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, str]:
    assert main(load_settings(GOOD), list(argv)) == 0
    return dict(cast(Any, line.split("=", 1)) for line in capsys.readouterr().out.splitlines())


def test_command_prints_what_the_settings_take(capsys: pytest.CaptureFixture[str]) -> None:
    first = printed(capsys, "mailto:nobet@ornek.org")
    keys = load_settings(GOOD | first).vapid_keys
    assert keys is not None and len(keys.public) == 65
    assert printed(capsys, "mailto:nobet@ornek.org") != first


def test_without_a_subject_the_command_says_that_it_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(load_settings(GOOD | KEYS), []) == 0
    shown = capsys.readouterr()
    assert [line.partition("=")[0] for line in shown.out.splitlines()] == ["VAPID_PUBLIC_KEY", "VAPID_PRIVATE_KEY"]
    assert "VAPID_SUBJECT" in shown.err and "subscribe again" in shown.err
    with pytest.raises(SystemExit):
        main(load_settings(GOOD), ["nobet@ornek.org"])


def test_private_key_is_read_from_a_file_and_never_shown(tmp_path: Any) -> None:
    (tmp_path / "key").write_text(f"{PRIVATE}\n")
    given = {name: value for name, value in KEYS.items() if name != "VAPID_PRIVATE_KEY"}
    settings = load_settings(GOOD | given | {"VAPID_PRIVATE_KEY_FILE": str(tmp_path / "key")})
    assert settings.vapid_private_key == PRIVATE
    assert settings.vapid_keys is not None and str(settings.vapid_keys.private) not in repr(settings.vapid_keys)


@pytest.mark.parametrize("missing", KEYS)
def test_keys_are_set_all_or_none(missing: str) -> None:
    with pytest.raises(SettingsError, match=f"{missing} must be set together with"):
        load_settings({name: value for name, value in (GOOD | KEYS).items() if name != missing})
    assert load_settings(GOOD).vapid_keys is None


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"VAPID_PUBLIC_KEY": PRIVATE}, "^VAPID_PUBLIC_KEY: must be a public key"),
        ({"VAPID_PUBLIC_KEY": PUBLIC[:-4] + "AAAA"}, "^VAPID_PUBLIC_KEY: must be a public key"),
        ({"VAPID_PRIVATE_KEY": "not base64!"}, "^VAPID_PRIVATE_KEY: must be a private key"),
        ({"VAPID_PRIVATE_KEY": create()[1]}, "VAPID_PRIVATE_KEY is not the private key of VAPID_PUBLIC_KEY"),
        ({"VAPID_PRIVATE_KEY": "A" * 43}, "VAPID_PRIVATE_KEY is not the private key of VAPID_PUBLIC_KEY"),
        ({"VAPID_SUBJECT": "nobet@ornek.org"}, "^VAPID_SUBJECT: must be mailto:"),
        ({"VAPID_SUBJECT": "mailto:nobet"}, "^VAPID_SUBJECT: must be mailto:"),
        ({"VAPID_SUBJECT": "http://ornek.org"}, "^VAPID_SUBJECT: must be mailto:"),
    ],
)
def test_keys_that_cannot_be_are_refused_without_being_quoted(changed: dict[str, str], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem) as error:
        load_settings(GOOD | KEYS | changed)
    assert PRIVATE not in str(error.value)


def test_public_key_is_as_browsers_take_it() -> None:
    assert load_settings(GOOD | KEYS | {"VAPID_PUBLIC_KEY": f"{PUBLIC}="}).vapid_public_key == PUBLIC


def test_settings_with_keys_do_not_show_them() -> None:
    assert PRIVATE not in repr(load_settings(GOOD | KEYS))
