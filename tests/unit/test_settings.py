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
    "METRICS_TOKEN": "9876543210-9876543210-9876543210-xyz",
}


def test_defaults_are_those_of_the_design() -> None:
    settings = load_settings(GOOD)
    assert (settings.offer_ttl_s, settings.match_radius_m, settings.candidate_cap) == (600, 1000.0, 50)
    assert (settings.search_limit_s, settings.start_limit_s, settings.complete_limit_s) == (3600, 1800, 14_400)
    assert settings.time_zone == "Europe/Istanbul"


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
        ({"METRICS_TOKEN": ""}, "METRICS_TOKEN"),
    ],
)
def test_production_refuses_settings_for_development(changed: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        load_settings(PRODUCTION | changed)


@pytest.mark.parametrize("secret", ["", "changeme", "short"])
def test_local_tokens_need_a_real_secret(secret: str) -> None:
    with pytest.raises(SettingsError, match="AUTH_SECRET"):
        load_settings(GOOD | {"AUTH_SECRET": secret})


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
