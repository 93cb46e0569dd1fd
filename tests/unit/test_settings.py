"""Invalid settings end the start, with the name of the variable and without its value."""

import pytest

from app.settings.settings import Environment, Settings, SettingsError, load_settings

SECRET = "0123456789-0123456789-0123456789-abc"
GOOD = {
    "DATABASE_URL": "postgresql://yaninda:hidden@127.0.0.1/yaninda",
    "REDIS_URL": "redis://127.0.0.1/0",
    "AUTH_SECRET": SECRET,
}
PRODUCTION = GOOD | {
    "ENVIRONMENT": "production",
    "AUTH_MODE": "firebase",
    "FIREBASE_PROJECT_ID": "yaninda",
    "PUSH": "fcm",
    "FIREBASE_CREDENTIALS": "/etc/yaninda/service-account.json",
    "METRICS_TOKEN": "8f14e45fceea167a5a36dedd4bea2543",
}


def test_defaults_are_those_of_the_design() -> None:
    settings = load_settings(GOOD)
    assert (settings.offer_ttl_s, settings.match_radius_m, settings.candidate_cap) == (600, 1000.0, 50)
    assert (settings.search_limit_s, settings.start_limit_s, settings.complete_limit_s) == (3600, 1800, 14_400)
    assert settings.time_zone == "Europe/Istanbul"


@pytest.mark.parametrize(("number", "called"), [("+90 (216) 555-00-00", "+902165550000"), ("153", "153")])
def test_helpline_is_a_number_that_can_be_called(number: str, called: str) -> None:
    assert load_settings(GOOD | {"HELPLINE_PHONE": number}).helpline_phone == called


def test_empty_variable_counts_as_unset() -> None:
    assert load_settings(GOOD | {"OFFER_TTL_S": " "}).offer_ttl_s == 600


def test_folder_of_scripts_that_is_not_mounted_stops_no_role() -> None:
    assert load_settings(GOOD | {"JOBS_DIR": "/not/mounted"}).jobs_dir == "/not/mounted"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JOBS_DIR", "scripts"),
        ("OFFER_TTL_S", "0"),
        ("OFFER_TTL_S", "ten"),
        ("MATCH_RADIUS_M", "-1"),
        ("MATCH_RADIUS_M", "nan"),
        ("MATCH_RADIUS_M", "inf"),
        ("TIME_ZONE", "Istanbul"),
        ("PORT", "70000"),
        ("PUSH", "carrier-pigeon"),
        ("LOG_LEVEL", "LOUD"),
        ("HELPLINE_PHONE", "+90 216 call me"),
        ("HELPLINE_PHONE", "15"),
        ("CANDIDATE_CAP", "0"),
        ("JOBS_ENGINE", "celery"),
        ("JOBS_ENGINE", "dask://scheduler"),
        ("JOBS_ENGINE", "dask://scheduler:8786/path"),
        ("JOBS_ENGINE", "dask://scheduler:99999"),
        ("JOBS_ENGINE", "tcp://scheduler:8786"),
        ("WEBHOOK_SECRET", "c2VjcmV0LXdpdGhvdXQtYS1wcmVmaXgtMDEyMzQ1"),
        ("WEBHOOK_SECRET", "whsec_no-base64"),
        ("WEBHOOK_SECRET", "whsec_" + "A" * 28),
        ("WEBHOOK_SECRET", "whsec_" + "A" * 88),
        ("SIGN_IN_PAGE", "javascript:alert(1)"),
        ("SIGN_IN_PAGE", "http://giris.ornek.org"),
        ("TILE_ADDRESS", "http://tiles.ornek.org/{z}/{x}/{y}.png"),
        ("TILE_ADDRESS", "https://{s}.tiles.ornek.org/{z}/{x}/{y}.png"),
        ("TILE_ADDRESS", "https://tiles.ornek.org/{z}/{x}.png"),
        ("TILE_ADDRESS", "https://tiles.ornek.org;script-src/{z}/{x}/{y}.png"),
    ],
)
def test_wrong_value_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        load_settings(GOOD | {name: value})


@pytest.mark.parametrize("key", ["A" * 32, "A" * 84 + "AA=="], ids=["24 bytes", "64 bytes"])
def test_webhook_secret_may_be_short_or_long(key: str) -> None:
    assert load_settings(GOOD | {"WEBHOOK_SECRET": f"whsec_{key}"}).webhook_secret == f"whsec_{key}"


def test_missing_variable_is_named() -> None:
    with pytest.raises(SettingsError, match="DATABASE_URL"):
        load_settings({"REDIS_URL": "redis://127.0.0.1/0", "AUTH_SECRET": SECRET})


def test_error_does_not_quote_values() -> None:
    with pytest.raises(SettingsError) as error:
        load_settings(GOOD | {"AUTH_SECRET": "too-short-but-secret"})
    assert "AUTH_SECRET" in str(error.value) and "too-short" not in str(error.value)


def test_production_starts_with_everything_in_place() -> None:
    assert load_settings(PRODUCTION).environment is Environment.PRODUCTION


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"AUTH_MODE": "local"}, "AUTH_MODE"),
        ({"FIREBASE_AUTH_EMULATOR_HOST": "127.0.0.1:9099"}, "FIREBASE_AUTH_EMULATOR_HOST"),
        ({"PUSH": "recording"}, "PUSH"),
        ({"FIREBASE_CREDENTIALS": ""}, "FIREBASE_CREDENTIALS"),
        ({"FIREBASE_PROJECT_ID": ""}, "FIREBASE_PROJECT_ID"),
        ({"WEBHOOK_ALLOW_PRIVATE": "true"}, "WEBHOOK_ALLOW_PRIVATE"),
        ({"DEMO_SIGN_IN": "true"}, "DEMO_SIGN_IN"),
        ({"FCM_BASE_URL": "http://fcm.googleapis.com"}, "FCM_BASE_URL"),
        ({"SMS_GATEWAY_URL": "http://sms.ornek.org"}, "SMS_GATEWAY_URL"),
        ({"TWILIO_BASE_URL": "http://127.0.0.1:9000"}, "TWILIO_BASE_URL"),
        ({"WHATSAPP_BASE_URL": "http://graph.facebook.com"}, "WHATSAPP_BASE_URL"),
        (
            {"DATABASE_URL": "postgresql://yaninda@db/yaninda?sslmode=require"},
            "DATABASE_URL names .* without a password",
        ),
        (
            {"DATABASE_URL": "postgresql://yaninda:9f8ekq@db/yaninda?sslmode=prefer"},
            "DATABASE_URL names .* without TLS",
        ),
        ({"DATABASE_URL": "postgresql:///yaninda?host=10.0.0.5&password=9f8ekq"}, "DATABASE_URL names .* without TLS"),
        ({"DATABASE_URL": "postgresql://yaninda:yaninda@db/yaninda?sslmode=require"}, "DATABASE_URL .* known default"),
        ({"REDIS_URL": "redis://127.0.0.1@redis/0"}, "REDIS_URL names .* without a password"),
        ({"REDIS_URL": "redis://:9f8ekq@redis/0"}, "REDIS_URL names .* without TLS"),
        ({"METRICS_TOKEN": ""}, "METRICS_TOKEN"),
        ({"METRICS_TOKEN": "8f14e45fceea167a5a36dedd4bea254"}, "METRICS_TOKEN must have at least 32"),
        ({"METRICS_TOKEN": "a" * 64}, "METRICS_TOKEN repeats"),
        ({"METRICS_TOKEN": "8f14e45f" * 8}, "METRICS_TOKEN repeats"),
        ({"METRICS_TOKEN": "change-me-CHANGE-ME-change-me-2026"}, "METRICS_TOKEN is a known default"),
        ({"WEBHOOK_SECRET": f"whsec_{'A' * 32}"}, "WEBHOOK_SECRET repeats"),
        ({"SMS_GATEWAY_TOKEN": "changeme"}, "SMS_GATEWAY_TOKEN is a known default"),
        (
            {"MIGRATION_DATABASE_URL": "postgresql://owner@db/yaninda?sslmode=require"},
            "MIGRATION_.* without a password",
        ),
        ({"MIGRATION_DATABASE_URL": "postgresql://owner:9f8ekq@db/yaninda"}, "MIGRATION_DATABASE_URL .* without TLS"),
        ({"AUDIT_KEY": "a" * 64, "AUDIT_HEADS_DIR": "/srv/heads"}, "AUDIT_KEY repeats"),
        (
            {"AUDIT_KEY": "8f14e45fceea167a5a36dedd4bea2543 " + "change-me-" * 4, "AUDIT_HEADS_DIR": "/srv/heads"},
            "AUDIT_KEY is a known default",
        ),
        ({"SMTP_URL": "smtp://y:changeme@mail:587", "SMTP_FROM": "a@ornek.org"}, "SMTP_URL has a password"),
        (
            {"ROSTER_SOURCES": '{"students": {"a": "/srv/a.zip", "b": "HTTP://lists.ornek.org/b.zip"}}'},
            "ROSTER_SOURCES must begin with https://",
        ),
    ],
)
def test_production_refuses_settings_for_development(changed: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        load_settings(PRODUCTION | changed)


@pytest.mark.parametrize(
    "stores",
    [
        {"DATABASE_URL": "postgresql://y:9f8ekq@db/y?sslmode=verify-full", "REDIS_URL": "rediss://:9f8ekq@redis/0"},
        {
            "DATABASE_URL": "postgresql://y:9f8ekq@db,db2/y",
            "REDIS_URL": "redis://:9f8ekq@redis/0",
            "PRIVATE_NETWORK": "true",
        },
        {"DATABASE_URL": "postgresql:///yaninda?host=/run/postgresql", "REDIS_URL": "redis://[::1]/0"},
    ],
    ids=["TLS", "private network", "this host"],
)
def test_production_takes_stores_that_nobody_can_listen_to(stores: dict[str, str]) -> None:
    assert load_settings(PRODUCTION | stores).environment is Environment.PRODUCTION


@pytest.mark.parametrize("secret", ["", "changeme", "short", "changeme-changeme-changeme-changeme"])
def test_local_tokens_need_a_real_secret(secret: str) -> None:
    with pytest.raises(SettingsError, match="AUTH_SECRET"):
        load_settings(GOOD | {"AUTH_SECRET": secret})


def test_pages_get_the_addresses_that_the_settings_name() -> None:
    tiles = "https://tiles.ornek.org/{z}/{x}/{y}.png?style=sade"
    settings = load_settings(GOOD | {"TILE_ADDRESS": tiles, "SIGN_IN_PAGE": "http://localhost:5000/giris"})
    assert (settings.tile_address, settings.sign_in_page) == (tiles, "http://localhost:5000/giris")


def test_settings_are_immutable() -> None:
    settings = load_settings(GOOD)
    with pytest.raises(ValueError, match="frozen"):
        settings.port = 1


def test_every_setting_has_a_description() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


SMTP = {"SMTP_URL": "smtps://yaninda:sakli@posta.ornek.org", "SMTP_FROM": "Yanında <bildirim@ornek.org>"}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"SMTP_URL": "http://yaninda:sakli@posta.ornek.org"}, "SMTP_URL"),
        ({"SMTP_FROM": ""}, "SMTP_FROM"),
        ({"SMTP_FROM": "sakli"}, "SMTP_FROM"),
        ({"SMTP_CA_FILE": "/nowhere/sakli.pem"}, "SMTP_CA_FILE"),
        ({"SMTP_CA_FILE": __file__}, "SMTP_CA_FILE"),
    ],
)
def test_invalid_email_settings_are_refused_without_being_quoted(changed: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named) as error:
        load_settings(GOOD | SMTP | changed)
    assert "sakli" not in str(error.value)


def test_secrets_are_not_in_the_repr_of_settings() -> None:
    settings = load_settings(GOOD | SMTP | {"WEBHOOK_SECRET": f"whsec_{'c2FrbGk' * 8}"})
    for shown in (repr(settings), str(settings), f"{settings}", repr([settings])):
        assert not any(secret in shown for secret in ("sakli", "c2Frb", GOOD["DATABASE_URL"]))


def test_production_sends_no_e_mail_unencrypted() -> None:
    plain = SMTP | {"SMTP_URL": "smtp://posta.ornek.org?tls=none"}
    assert load_settings(GOOD | plain).mail_server is not None
    with pytest.raises(SettingsError, match="SMTP_URL"):
        load_settings(PRODUCTION | plain)
    assert load_settings(PRODUCTION | SMTP).mail_server is not None


TWILIO = {"TWILIO_ACCOUNT_SID": "AC0", "TWILIO_AUTH_TOKEN": "hidden", "TWILIO_FROM": "+15005550006"}
WHATSAPP = {"WHATSAPP_PHONE_NUMBER_ID": "106540352242922", "WHATSAPP_ACCESS_TOKEN": "hidden"}
GATEWAY = {"SMS_GATEWAY_URL": "https://gateway.ornek.org/send"}


@pytest.mark.parametrize("given", [TWILIO, WHATSAPP, GATEWAY, TWILIO | WHATSAPP, GATEWAY | WHATSAPP])
def test_each_complete_phone_provider_is_accepted(given: dict[str, str]) -> None:
    settings = load_settings(GOOD | given)
    assert ("SMS" in settings.recorded_types) == (given == WHATSAPP)
    assert ("WHATSAPP" in settings.recorded_types) == ("WHATSAPP_ACCESS_TOKEN" not in given)


@pytest.mark.parametrize("missing", [*TWILIO, *WHATSAPP])
def test_incomplete_account_names_the_missing_variable(missing: str) -> None:
    given = {name: value for name, value in (TWILIO | WHATSAPP).items() if name != missing}
    with pytest.raises(SettingsError, match=f"{missing} must be set together with") as error:
        load_settings(GOOD | given)
    assert "hidden" not in str(error.value)


def test_only_one_sms_provider_is_accepted() -> None:
    with pytest.raises(SettingsError, match="SMS_GATEWAY_URL and TWILIO_ACCOUNT_SID"):
        load_settings(GOOD | TWILIO | GATEWAY)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SMS_GATEWAY_REQUEST", "{{ text"),
        ("SMS_GATEWAY_REQUEST", '{"text": "{{ text }}"}'),
        ("SMS_GATEWAY_ANSWER", "{{ nosuch }}"),
        ("SMS_GATEWAY_URL", "gateway.ornek.org"),
        ("SMS_GATEWAY_URL", "https://"),
        ("SMS_GATEWAY_URL", "https://gateway.ornek.org/a b"),
        ("TWILIO_BASE_URL", "ftp://api.twilio.com"),
        ("WHATSAPP_BASE_URL", "graph.facebook.com"),
    ],
)
def test_invalid_provider_settings_end_the_start(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^{name}: "):
        load_settings(GOOD | {name: value})


def test_a_cluster_without_certificates_is_refused() -> None:
    with pytest.raises(SettingsError, match="JOBS_TLS_DIR must name a folder"):
        load_settings(GOOD | {"JOBS_ENGINE": "dask://scheduler:8786"})
    settings = load_settings(GOOD | {"JOBS_ENGINE": "dask://scheduler:8786", "JOBS_TLS_DIR": "/srv/jobs-tls"})
    assert settings.jobs_tls_dir == "/srv/jobs-tls"
