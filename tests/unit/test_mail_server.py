"""Parsing of `SMTP_URL` and `SMTP_FROM`. Errors do not quote the values."""

import pytest

from app.settings.mail_server import MailSender, MailServer, Tls, parse_sender, parse_server


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://posta.ornek.org", MailServer("posta.ornek.org", 587, Tls.STARTTLS)),
        ("smtps://posta.ornek.org/", MailServer("posta.ornek.org", 465, Tls.IMPLICIT)),
        ("smtp://127.0.0.1:1025?tls=none", MailServer("127.0.0.1", 1025, Tls.NONE)),
        ("smtp://[::1]:2525", MailServer("::1", 2525, Tls.STARTTLS)),
        (
            "smtp://ay%40ornek.org:%2F%23%3F%20%C3%BC%25@posta.ornek.org:25",
            MailServer("posta.ornek.org", 25, Tls.STARTTLS, "ay@ornek.org", "/#? ü%"),
        ),
    ],
)
def test_server_is_parsed(url: str, server: MailServer) -> None:
    assert parse_server(url) == server


@pytest.mark.parametrize(
    "url",
    [
        "",
        "posta.ornek.org:587",
        "http://sakli@posta.ornek.org",
        "smtp://",
        "smtp://sakli:sakli@",
        "smtp://sakli:sak/li@posta.ornek.org",
        "smtp://sakli:sak#li@posta.ornek.org",
        "smtp://sakli:sak?li@posta.ornek.org",
        "smtp://sakli@posta.ornek.org",
        "smtp://:sakli@posta.ornek.org",
        "smtp://sakli:sak%00li@posta.ornek.org",
        "smtp://sakli:sakli@posta.ornek.org:0",
        "smtp://sakli:sakli@posta.ornek.org:sakli",
        "smtp://sakli:sakli@posta.ornek.org:70000",
        "smtp://sakli:sakli@posta..ornek.org",
        "smtp://sakli:sakli@pos ta.ornek.org",
        "smtp://sakli:sakli@posta.ornek.org/sakli",
        "smtp://sakli:sakli@posta.ornek.org?tls=sakli",
        "smtps://sakli:sakli@posta.ornek.org?tls=none",
        "smtp://[sakli",
    ],
)
def test_invalid_server_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_server(url)
    assert "sak" not in str(error.value)


def test_password_is_not_shown() -> None:
    assert "sakli" not in repr(parse_server("smtp://yaninda:sakli@posta.ornek.org"))


@pytest.mark.parametrize(
    ("text", "sender"),
    [
        ("bildirim@ornek.org", MailSender("", "bildirim", "ornek.org")),
        ("Yanında <bildirim@ornek.org>", MailSender("Yanında", "bildirim", "ornek.org")),
        ('"Yanında, ekip" <bildirim@Ornek.ORG>', MailSender("Yanında, ekip", "bildirim", "ornek.org")),
        ("<bildirim@yanında.org>", MailSender("", "bildirim", "xn--yannda-r9a.org")),
    ],
)
def test_sender_is_parsed(text: str, sender: MailSender) -> None:
    assert parse_sender(text) == sender


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sakli",
        "sakli@",
        "@sakli.org",
        "sakli@sakli",
        "şakli@sakli.org",
        "a <sakli@sakli.org> b",
        "<sakli@sakli.org",
        "a@sakli.org, b@sakli.org",
        "Yanında\r\nBcc: x@sakli.org <sakli@sakli.org>",
        "sakli@-sakli.org",
        "sakli@sakli..org",
    ],
)
def test_invalid_sender_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_sender(text)
    assert "sakli" not in str(error.value)
