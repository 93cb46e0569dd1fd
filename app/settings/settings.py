"""Every setting, read from the environment once and checked at start.

A wrong value ends the process with the name of the variable. No other module reads the environment.
"""

import os
import re
import ssl
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import available_timezones

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from app.foundation import failpoints as places
from app.foundation.backoff import BACKOFF_S
from app.foundation.base64url import encode_base64url
from app.settings import gateway_templates, page_addresses, signing_secrets, vapid_keys
from app.settings.engine_address import EMBEDDED, parse_engine
from app.settings.job_schedule import SHIPPED_SCHEDULE, ScheduleEntry, parse_schedule
from app.settings.mail_server import MailSender, MailServer, Tls, parse_sender, parse_server
from app.settings.roster_sources import parse_sources
from app.settings.secret_strength import FEWEST_CHARACTERS, is_known_default, problem_with_secret
from app.settings.store_urls import problem_with_store
from app.settings.vapid_keys import VapidKeys


class SettingsError(Exception):
    """The settings are not valid; the message names each variable."""


class Environment(StrEnum):
    DEVELOPMENT = "development"
    PRODUCTION = "production"


class AuthMode(StrEnum):
    LOCAL = "local"
    FIREBASE = "firebase"


class PushMode(StrEnum):
    RECORDING = "recording"
    FCM = "fcm"


PositiveInt = Annotated[int, Field(ge=1)]
Days = Annotated[int, Field(ge=0)]
PositiveFloat = Annotated[float, Field(gt=0)]
Percent = Annotated[float, Field(ge=0, le=100)]
# An attempt has to end within the lease of its notification (30 s), and a call of a channel may take two time limits
# and some more, of the audit trail four.
Timeout = Annotated[float, Field(gt=0, le=12)]
AuditTimeout = Annotated[float, Field(gt=0, le=7)]
Retries = Annotated[int, Field(ge=0, le=20)]


def _read_pauses(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        pauses = tuple(float(pause) for pause in value.split(","))
    except ValueError:
        pauses = ()
    if not pauses or not all(0 < pause <= 3600 for pause in pauses):
        raise ValueError("must be seconds, each above 0 and at most 3600, with commas between them, such as 1,5,15")
    return pauses


Pauses = Annotated[tuple[float, ...], BeforeValidator(_read_pauses)]


class Settings(BaseModel):
    """Field names in upper case are the names of the environment variables."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    environment: Environment = Field(Environment.DEVELOPMENT, description="`production` refuses unsafe settings.")
    database_url: str = Field(description="PostgreSQL with PostGIS, `postgresql://user:password@host:port/name`.")
    migration_database_url: str | None = Field(
        None, description="The same database for `migrate`, as the role that owns it; `DATABASE_URL` if unset."
    )
    redis_url: str = Field(description="Redis, `redis://:password@host:port/0`.")
    private_network: bool = Field(
        False, description="Nobody else can read the network to the stores, so production needs no TLS there."
    )

    host: str = Field("127.0.0.1", description="Address the API listens on.")
    port: int = Field(8080, ge=1, le=65535, description="Port the API listens on.")
    api_workers: PositiveInt = Field(2, description="Processes of the API.")
    api_threads: PositiveInt = Field(8, description="Threads in each process of the API.")
    request_timeout_s: PositiveInt = Field(
        10, description="Longest time for a request, with its wait for a thread; after that the answer is 503."
    )
    queue_limit_s: PositiveFloat = Field(1.0, description="A request that waited longer for a thread gets 503 at once.")
    connections_per_address: PositiveInt = Field(
        1000, description="Connections from one address to each process of the API; a proxy is one address."
    )
    event_streams: PositiveInt = Field(2000, description="Open streams of events in each process of the API.")
    event_streams_per_person: PositiveInt = Field(
        8, description="Of one person, in each process of the API; one more gets 429."
    )
    events_days: PositiveInt = Field(7, description="Days for which a stream can be resumed; older events are deleted.")
    late_after_s: PositiveFloat = Field(5.0, description="A task overdue for longer makes `/readyz` answer `degraded`.")
    max_body_bytes: PositiveInt = Field(65_536, description="Largest request body.")
    drain_s: PositiveInt = Field(45, description="Time a role has to finish its work after SIGTERM.")
    log_level: str = Field("INFO", description="DEBUG, INFO, WARNING or ERROR.")
    log_json: bool = Field(False, description="Log one JSON object per line instead of text.")
    prometheus_multiproc_dir: str | None = Field(
        None, description="Folder where the roles of one machine add up their metrics; `serve` creates one if unset."
    )
    metrics_token: str | None = Field(
        None, description="Bearer token that `/metrics` requires; required in production."
    )

    auth_mode: AuthMode = Field(AuthMode.LOCAL, description="`local` or `firebase`.")
    auth_secret: str | None = Field(None, description="Key of local tokens, at least 32 characters.")
    firebase_project_id: str | None = Field(None, description="Project whose ID tokens are accepted.")
    firebase_tenant_id: str | None = Field(
        None, description="Tenant of that project whose tokens are accepted; without it, only tokens of no tenant."
    )
    firebase_auth_emulator_host: str | None = Field(None, description="Accepts unsigned tokens; never in production.")

    demo_sign_in: bool = Field(
        False,
        description="Anybody may sign in as a person of the demo; only with `AUTH_MODE=local`, never in production.",
    )
    sign_in_page: str | None = Field(None, description="Page to which the console sends people who have to sign in.")
    tile_address: str | None = Field(
        None, description="Tiles of the map, `https://…/{z}/{x}/{y}.png`; if unset, the map is a drawing."
    )
    tile_attribution: str | None = Field(
        None, max_length=200, description="Whom the map names as the source of its tiles."
    )

    push: PushMode = Field(PushMode.RECORDING, description="`fcm` sends pushes; `recording` only stores them.")
    fcm_base_url: str = Field("https://fcm.googleapis.com", description="Base URL of FCM.")
    fcm_connections: PositiveInt = Field(16, description="Pushes that a delivery process sends at the same time.")
    firebase_credentials: str | None = Field(
        None, description="Path of a service account file, for `PUSH=fcm` and to learn of revoked tokens."
    )

    vapid_public_key: str | None = Field(
        None, description="Sends pushes to browsers; `scripts/app vapid` prints a pair of keys."
    )
    vapid_private_key: str | None = Field(None, description="The private key of that pair.")
    vapid_subject: str | None = Field(
        None, description="Where push services reach the operator, `mailto:…` or `https://…`."
    )

    smtp_url: str | None = Field(
        None, description="`smtp://user:password@host:587` (STARTTLS) or `smtps://…:465`; percent-encode the password."
    )
    smtp_from: str | None = Field(None, description="Sender of e-mails, `Yanında <bildirim@ornek.org>`.")
    smtp_ca_file: str | None = Field(None, description="Certificates to trust for SMTP besides the system's.")
    sms_gateway_url: str | None = Field(None, description="HTTP gateway that sends SMS.")
    sms_gateway_token: str | None = Field(None, description="Bearer token of the gateway.")
    sms_gateway_content_type: str = Field("application/json", description="Content type of requests to the gateway.")
    sms_gateway_request: str | None = Field(None, description="Jinja template of a request; see docs/settings.md.")
    sms_gateway_answer: str | None = Field(
        None, description="Jinja template that reads an answer; see docs/settings.md."
    )
    twilio_account_sid: str | None = Field(None, description="Twilio account that sends SMS.")
    twilio_auth_token: str | None = Field(None, description="Auth token of the Twilio account.")
    twilio_from: str | None = Field(None, description="Twilio number, or `MG…` of a messaging service.")
    twilio_base_url: str = Field("https://api.twilio.com", description="Base URL of Twilio.")
    whatsapp_phone_number_id: str | None = Field(None, description="Cloud API id of the WhatsApp number that sends.")
    whatsapp_access_token: str | None = Field(None, description="Access token of the Cloud API.")
    whatsapp_base_url: str = Field("https://graph.facebook.com/v21.0", description="Base URL of the Cloud API.")
    webhook_secret: str | None = Field(
        None, description="Signs webhooks to addresses outside the directory; `whsec_` followed by base64."
    )
    webhook_allow_private: bool = Field(False, description="Lets webhooks go to private addresses; for tests.")
    country_code: str = Field("90", pattern=r"^[1-9][0-9]{0,3}$", description="Added to phone numbers that have none.")
    sms_countries: str = Field(
        "+90", description="Country codes, comma-separated, that SMS go to; they are sent to no other country."
    )
    dead_letter_alarm: PositiveInt = Field(20, description="Number of open dead letters that raises the alarm.")
    action_topic_prefix: str = Field("cinga", description="First word of the names of the action streams.")
    action_handover_types: str = Field(
        "device_downlink", description="Step types, comma-separated, that another service carries out."
    )

    helpline_phone: str | None = Field(
        None, description="Number of a person, which apps show at the end of every road: `+90 216 555 00 00` or `153`."
    )
    time_zone: str = Field("Europe/Istanbul", description="Time zone that decides when a month begins.")
    offer_ttl_s: PositiveInt = Field(600, description="Time a student has to answer.")
    match_radius_m: float = Field(1000.0, gt=0, le=100_000, description="How far from the task a student may be.")
    candidate_cap: int = Field(50, ge=1, le=1000, description="Most candidates listed at once; more are listed later.")
    search_limit_s: PositiveInt = Field(3600, description="A search makes no new offer after this time.")
    start_limit_s: PositiveInt = Field(1800, description="An accepted task not started in this time is reported.")
    complete_limit_s: PositiveInt = Field(
        14_400, description="An accepted task not completed in this time is reported."
    )
    tasks_per_minute: PositiveInt = Field(6, description="New tasks one elder may create in a minute.")
    tasks_per_hour: PositiveInt = Field(20, description="New tasks one elder may create in an hour.")
    place_cell_m: float = Field(
        130.0,
        ge=1,
        le=10_000,
        description="Cells of the map that hide places, in metres on the equator; 130 is about 100 in Turkey.",
    )
    cancels_per_student: int = Field(
        2,
        ge=2,
        description="A student asked for so many cancelled tasks of an elder in an hour is left in peace for an hour.",
    )
    alarm_interval_s: int = Field(
        600, ge=0, description="Alarms that nobody was found for the same elder are joined for this time; 0 joins none."
    )
    withdrawals_per_day: PositiveInt = Field(
        3, description="A student who withdraws so often in 24 hours is off duty until a coordinator says otherwise."
    )
    shortest_visit_s: int = Field(
        300,
        ge=0,
        description="A task that is completed sooner after the accept is a short visit; coordinators are told of a"
        " student who makes WITHDRAWALS_PER_DAY of them in 24 hours. 0 tells of none.",
    )
    fastest_kmh: PositiveFloat = Field(200.0, description="A student who moves faster is not asked for JUMP_PAUSE_S.")
    jump_pause_s: PositiveInt = Field(600, description="Time until the place of a student who moved too fast counts.")
    home_range_km: PositiveFloat = Field(25.0, description="How far from home an elder may ask for help.")
    locations_per_minute: PositiveInt = Field(60, description="Location updates one student may send in a minute.")

    matcher_listener: bool = Field(True, description="Follow Redis's expiry events.")
    matcher_ticker: bool = Field(True, description="Follow the sorted set of deadlines.")
    matcher_reconciler: bool = Field(True, description="Sweep PostgreSQL for deadlines the other two missed.")
    reconcile_interval_s: PositiveFloat = Field(2.0, description="Time between two sweeps.")
    matcher_batch: int = Field(200, ge=1, le=2000, description="Most tasks handled in one transaction.")
    matcher_metrics_port: int = Field(0, ge=0, le=65535, description="Port of the matcher's `/metrics`; 0 is off.")

    notification_queue_capacity: PositiveInt = Field(1000, description="Most notifications in memory for one channel.")
    notification_queue_consumer_threads: PositiveInt = Field(2, description="Threads that serve one channel.")
    notification_backlog_limit: PositiveInt = Field(
        100_000, description="Number of unsent notifications at which `POST /api/notifications` answers 503."
    )
    sends_per_minute: PositiveInt = Field(
        600, description="Messages and actions that one caller may submit over HTTP in a minute."
    )
    sends_per_day: PositiveInt = Field(10_000, description="The same in a day.")
    sends_per_recipient: PositiveInt = Field(
        60, description="Messages of one type that all callers may submit for one recipient in an hour."
    )
    notification_max_age_s: PositiveInt = Field(86_400, description="A notification that waited longer is EXPIRED.")
    push_timeout_s: Timeout = Field(3.0, description="PUSH: time limit of an attempt, at most 12.")
    push_retries: Retries = Field(2, description="PUSH: retries after the first attempt.")
    push_backoff_s: Pauses = Field(BACKOFF_S, description="PUSH: pauses between attempts; the last repeats.")
    in_app_timeout_s: Timeout = Field(2.0, description="IN_APP: time limit of an attempt, at most 12.")
    in_app_retries: Retries = Field(3, description="IN_APP: retries after the first attempt.")
    in_app_backoff_s: Pauses = Field(BACKOFF_S, description="IN_APP: pauses between attempts; the last repeats.")
    webhook_timeout_s: Timeout = Field(5.0, description="WEBHOOK: time limit of an attempt, at most 12.")
    webhook_retries: Retries = Field(3, description="WEBHOOK: retries after the first attempt.")
    webhook_backoff_s: Pauses = Field(BACKOFF_S, description="WEBHOOK: pauses between attempts; the last repeats.")
    email_timeout_s: Timeout = Field(10.0, description="EMAIL: time limit of an attempt, at most 12.")
    email_retries: Retries = Field(3, description="EMAIL: retries after the first attempt.")
    email_backoff_s: Pauses = Field(BACKOFF_S, description="EMAIL: pauses between attempts; the last repeats.")
    sms_timeout_s: Timeout = Field(8.0, description="SMS: time limit of an attempt, at most 12.")
    sms_retries: Retries = Field(2, description="SMS: retries after the first attempt.")
    sms_backoff_s: Pauses = Field(BACKOFF_S, description="SMS: pauses between attempts; the last repeats.")
    whatsapp_timeout_s: Timeout = Field(8.0, description="WHATSAPP: time limit of an attempt, at most 12.")
    whatsapp_retries: Retries = Field(1, description="WHATSAPP: retries after the first attempt.")
    whatsapp_backoff_s: Pauses = Field(BACKOFF_S, description="WHATSAPP: pauses between attempts; the last repeats.")
    audit_timeout_s: AuditTimeout = Field(2.0, description="AUDIT: time limit of an attempt, at most 7.")
    audit_retries: Retries = Field(0, description="AUDIT: retries after the first attempt.")
    audit_backoff_s: Pauses = Field(BACKOFF_S, description="AUDIT: pauses between attempts; the last repeats.")
    devices_per_person: PositiveInt = Field(10, description="Phones of one person that get pushes: the newest.")
    delivery_group_s: float = Field(
        0.01,
        ge=0,
        le=1,
        description="Longest time, in seconds, that what became of a message waits to be recorded together with others."
        " With 0 each is recorded by itself and at once, which takes three times as much processor time.",
    )
    delivery_poll_s: PositiveFloat = Field(1.0, description="Longest wait for a notification whose hint was lost.")
    delivery_metrics_port: int = Field(0, ge=0, le=65535, description="Port of delivery's `/metrics`; 0 is off.")

    jobs_engine: str = Field(
        EMBEDDED, description="`embedded`, worker processes of the role, or `dask://host:port`, a cluster of machines."
    )
    jobs_tls_dir: str | None = Field(
        None, description="Folder with the certificates of the cluster; required for `dask://`."
    )
    jobs_cluster_host: str = Field(
        "127.0.0.1", description="Address that the scheduler or a worker of the cluster listens on."
    )
    jobs_dir: str | None = Field(None, description="Folder with scripts of your own, besides those that are shipped.")
    jobs_schedule: str = Field(
        SHIPPED_SCHEDULE, description="JSON list of jobs that run by themselves; see docs/jobs.md."
    )
    jobs_io_workers: PositiveInt = Field(1, description="Processes for scripts that mostly wait (`io_bound`).")
    jobs_io_threads: PositiveInt = Field(8, description="Threads in each of these processes.")
    jobs_cpu_workers: int = Field(
        0, ge=0, le=1024, description="Processes for scripts that compute (`cpu_bound`); 0 is one for each core."
    )
    jobs_cpu_threads: PositiveInt = Field(1, description="Threads in each of these processes.")
    jobs_worker_memory_mb: PositiveInt = Field(1024, description="Most memory of one of these processes.")
    jobs_input_capacity: PositiveInt = Field(1000, description="Most tasks in the engine's input queue.")
    jobs_lease_s: float = Field(60.0, ge=3, le=3600, description="A job whose process died runs again after this time.")
    jobs_most_claims: int = Field(
        5, ge=0, le=1000, description="A job whose process died more often than this has failed."
    )
    jobs_timeout_s: PositiveFloat = Field(3600.0, description="Longest time of one try, unless the script has its own.")
    jobs_cancel_grace_s: PositiveFloat = Field(
        10.0, description="A cancelled script that does not return in this time is killed."
    )
    jobs_artifact_bytes: int = Field(10_000_000, ge=1, le=200_000_000, description="Largest file that a job may leave.")
    jobs_artifacts_bytes_per_job: PositiveInt = Field(50_000_000, description="Most bytes of all files of one job.")
    jobs_metrics_port: int = Field(0, ge=0, le=65535, description="Port of the role's `/metrics`; 0 is off.")
    roster_dir: str | None = Field(None, description="Folder for lists and archives; required for the roster.")
    roster_change_retention_days: int = Field(30, ge=1, le=365, description="For how long changes can be read.")
    roster_sources: str = Field(
        "{}", description="JSON: where the lists of students and elders are; see docs/roster.md."
    )
    roster_list_bytes: PositiveInt = Field(256 << 20, description="Largest archive of a list.")
    roster_unpacked_bytes: PositiveInt = Field(1 << 30, description="Largest list in an archive.")
    roster_download_timeout_s: PositiveFloat = Field(600.0, description="Longest time of a download.")
    roster_bad_rows_percent: Percent = Field(1.0, description="A list with more bad rows is refused.")
    roster_least_rows: int = Field(10, ge=0, description="Of a list that became shorter than this nobody is removed.")
    roster_removed_floor: int = Field(5, ge=0, description="So many changes are applied whatever their share is.")
    roster_removed_percent: Percent = Field(10.0, description="If a list removes more of its people, all of them stay.")
    roster_removed_week_percent: Percent = Field(25.0, description="The same over the last seven days.")
    roster_modified_percent: Percent = Field(50.0, description="If a list modifies more rows, all stay as they are.")
    roster_modified_week_percent: float = Field(
        150.0, ge=0, description="The same over the last seven days, in which a row may be modified several times."
    )
    roster_blanked_percent: Percent = Field(
        20.0, description="If a list empties a column in more of the rows that had a value, all rows stay as they are."
    )
    roster_blanked_week_percent: Percent = Field(40.0, description="The same over the last seven days.")
    retain_notes_days: Days = Field(30, description="Notes and idempotency keys of ended tasks; 0 is for ever.")
    retain_places_days: Days = Field(30, description="Exact places of ended tasks, and of students who are not active.")
    retain_messages_days: Days = Field(30, description="Words and addresses of messages, and variables of actions.")
    retain_in_app_days: Days = Field(90, description="Messages in the app.")
    retain_keys_days: Days = Field(7, description="Idempotency keys of notifications, and verification codes.")
    retain_dead_letters_days: Days = Field(90, description="Dead letters, from their end.")
    retain_attempts_days: Days = Field(90, description="Attempts, in whole months.")
    retain_notifications_days: Days = Field(180, description="Rows of notifications, in whole months.")
    retain_actions_days: Days = Field(180, description="Rows of actions.")
    retain_devices_days: Days = Field(270, description="Tokens of phones whose app was not opened.")
    retain_roster_days: Days = Field(365, description="That somebody who left was on a list, and as whom.")
    retain_jobs_days: Days = Field(90, description="Jobs that have ended, with their output and files.")
    retain_addresses_days: Days = Field(90, description="Names and addresses that were removed from the directory.")

    audit_key: str | None = Field(
        None,
        description="Key that signs the audit trail, at least 32 characters. After a space, earlier ones that are still"
        " known.",
    )
    audit_heads_dir: str | None = Field(
        None, description="Folder for signed heads of the audit trail, better not on the machine of the database."
    )

    failpoints: str | None = Field(
        None, description="Places where a test kills or pauses a process; never in production."
    )

    @field_validator("time_zone")
    @classmethod
    def _known_time_zone(cls, value: str) -> str:
        if value not in available_timezones():
            raise ValueError("is not a time zone of the IANA database, such as Europe/Istanbul")
        return value

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, value: str) -> str:
        if value.upper() not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
            raise ValueError("must be DEBUG, INFO, WARNING or ERROR")
        return value.upper()

    @field_validator("jobs_engine")
    @classmethod
    def _known_engine(cls, value: str) -> str:
        parse_engine(value)
        return value

    @field_validator("failpoints")
    @classmethod
    def _readable_failpoints(cls, value: str | None) -> str | None:
        places.parse(value or "")
        return value

    @field_validator("jobs_dir")
    @classmethod
    def _folder_of_jobs(cls, value: str | None) -> str | None:
        # Whether it exists concerns only jobs. The matcher has to start also while the folder is not mounted.
        if value is not None and not Path(value).is_absolute():
            raise ValueError("must be the absolute path of a folder")
        return value

    @field_validator("jobs_schedule")
    @classmethod
    def _readable_schedule(cls, value: str) -> str:
        parse_schedule(value)
        return value

    @field_validator("roster_sources")
    @classmethod
    def _readable_sources(cls, value: str) -> str:
        parse_sources(value)
        return value

    @field_validator("webhook_secret")
    @classmethod
    def _usable_webhook_secret(cls, value: str | None) -> str | None:
        if value is not None:
            signing_secrets.decode(value)
        return value

    @field_validator("vapid_public_key")
    @classmethod
    def _usable_public_key(cls, value: str | None) -> str | None:
        # Browsers take it without padding.
        return value and encode_base64url(vapid_keys.read_public_key(value))

    @field_validator("vapid_private_key")
    @classmethod
    def _usable_private_key(cls, value: str | None) -> str | None:
        if value is not None:
            vapid_keys.read_private_key(value)
        return value

    @field_validator("vapid_subject")
    @classmethod
    def _readable_subject(cls, value: str | None) -> str | None:
        if value is not None:
            vapid_keys.check_subject(value)
        return value

    @field_validator("smtp_url")
    @classmethod
    def _readable_smtp_url(cls, value: str | None) -> str | None:
        if value is not None:
            parse_server(value)
        return value

    @field_validator("smtp_from")
    @classmethod
    def _readable_smtp_from(cls, value: str | None) -> str | None:
        if value is not None:
            parse_sender(value)
        return value

    @field_validator("smtp_ca_file")
    @classmethod
    def _usable_smtp_ca_file(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(value)
            except OSError as error:
                raise ValueError(f"holds no readable certificates ({type(error).__name__})") from None
        return value

    @field_validator("sign_in_page")
    @classmethod
    def _page_to_sign_in(cls, value: str | None) -> str | None:
        return page_addresses.sign_in_page(value)

    @field_validator("tile_address")
    @classmethod
    def _readable_tile_address(cls, value: str | None) -> str | None:
        return page_addresses.tile_address(value)

    @field_validator("sms_gateway_url", "twilio_base_url", "whatsapp_base_url")
    @classmethod
    def _whole_url(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"https?://[^/\s?#]+\S*$", value):
            raise ValueError("must be a URL that begins with https:// or http://")
        return value

    @field_validator("helpline_phone")
    @classmethod
    def _callable_helpline(cls, value: str | None) -> str | None:
        """Phones call it, so it is kept without the characters between the digits. Emergency numbers are short."""
        if value is None:
            return None
        if not re.fullmatch(r"\+?[0-9](?:[ ()-]{0,2}[0-9]){2,14}", value):
            raise ValueError("must be a phone number of 3 to 15 digits, such as +90 216 555 00 00")
        return re.sub("[^0-9+]", "", value)

    @field_validator("sms_countries")
    @classmethod
    def _readable_countries(cls, value: str) -> str:
        if not re.fullmatch(r"\+?[1-9][0-9]{0,6}(?: *, *\+?[1-9][0-9]{0,6})*", value):
            raise ValueError("must be country codes with commas between them, such as +90,+49")
        return value

    @field_validator("sms_gateway_answer")
    @classmethod
    def _readable_answer_template(cls, value: str | None) -> str | None:
        gateway_templates.answer_template(value)
        return value

    @property
    def signs_in_demo_people(self) -> bool:
        return self.demo_sign_in and self.auth_mode is AuthMode.LOCAL

    @property
    def vapid_keys(self) -> VapidKeys | None:
        """None if no pushes are sent to browsers."""
        public, private, subject = self.vapid_public_key, self.vapid_private_key, self.vapid_subject
        if public is None or private is None or subject is None:
            return None
        return VapidKeys(vapid_keys.read_public_key(public), vapid_keys.read_private_key(private), subject)

    @property
    def mail_server(self) -> MailServer | None:
        return parse_server(self.smtp_url) if self.smtp_url else None

    @property
    def mail_sender(self) -> MailSender | None:
        return parse_sender(self.smtp_from) if self.smtp_from else None

    @property
    def job_schedule(self) -> tuple[ScheduleEntry, ...]:
        return parse_schedule(self.jobs_schedule)

    @property
    def sms_country_codes(self) -> tuple[str, ...]:
        return tuple(code.strip().removeprefix("+") for code in self.sms_countries.split(","))

    @property
    def handover_types(self) -> frozenset[str]:
        """The types of `action_handover_types` as a set."""
        types = (type_.strip() for type_ in self.action_handover_types.split(","))
        return frozenset(type_ for type_ in types if type_)

    @property
    def audit_keys(self) -> tuple[str, ...]:
        """The key that signs, and then the earlier ones."""
        return tuple((self.audit_key or "").split())

    @property
    def recorded_types(self) -> frozenset[str]:
        """The types that are recorded instead of sent, because no provider is set up for them. Of PUSH, those to
        phones or those to browsers."""
        has_no_provider = {
            "PUSH": self.push is PushMode.RECORDING or self.vapid_public_key is None,
            "EMAIL": self.smtp_url is None,
            "SMS": self.sms_gateway_url is None and self.twilio_account_sid is None,
            "WHATSAPP": self.whatsapp_phone_number_id is None,
        }
        production = self.environment is Environment.PRODUCTION
        return frozenset(type_ for type_, is_recorded in has_no_provider.items() if is_recorded and not production)

    def __repr__(self) -> str:
        """Hides all values, so that no secret reaches a log or a trace."""
        return f"{type(self).__name__}(environment={self.environment.value!r}, …)"

    __str__ = __repr__

    @model_validator(mode="after")
    def _safe_together(self) -> "Settings":
        problems = self._auth_problems() + self._push_problems() + self._mail_problems() + self._phone_problems()
        problems += self._cluster_problems() + self._audit_problems() + self._only_for_tests()
        problems += self._unsafe_in_production()
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _auth_problems(self) -> list[str]:
        problems: list[str] = []
        production = self.environment is Environment.PRODUCTION
        if self.auth_mode is AuthMode.FIREBASE:
            if not self.firebase_project_id:
                problems.append("FIREBASE_PROJECT_ID must be set when AUTH_MODE=firebase")
        elif production:
            problems.append("AUTH_MODE=local issues its own tokens and is refused in production; use firebase")
        elif len(self.auth_secret or "") < FEWEST_CHARACTERS or is_known_default(self.auth_secret or ""):
            problems.append("AUTH_SECRET must be set to at least 32 random characters when AUTH_MODE=local")
        if production and self.demo_sign_in:
            problems.append("DEMO_SIGN_IN gives tokens to anybody and is refused in production")
        if production and self.metrics_token is None:
            problems.append("METRICS_TOKEN must be set in production, where /metrics would be open without it")
        if production and self.firebase_auth_emulator_host:
            problems.append("FIREBASE_AUTH_EMULATOR_HOST accepts unsigned tokens and is refused in production")
        return problems

    def _push_problems(self) -> list[str]:
        problems: list[str] = []
        if self.push is PushMode.FCM and not self.firebase_credentials:
            problems.append("FIREBASE_CREDENTIALS must name a service account file when PUSH=fcm")
        if self.push is PushMode.RECORDING and self.environment is Environment.PRODUCTION:
            problems.append("PUSH=recording reaches no phone and is refused in production; use fcm")
        return problems + self._vapid_problems()

    def _vapid_problems(self) -> list[str]:
        problems = self._half_set("vapid_public_key", "vapid_private_key", "vapid_subject")
        keys = self.vapid_keys
        if keys is None:
            return problems
        try:
            is_pair = vapid_keys.public_key_of(keys.private) == keys.public
        except ValueError:
            is_pair = False
        return problems if is_pair else ["VAPID_PRIVATE_KEY is not the private key of VAPID_PUBLIC_KEY"]

    def _mail_problems(self) -> list[str]:
        problems: list[str] = []
        server = self.mail_server
        if server is not None and self.smtp_from is None:
            problems.append("SMTP_FROM must be set to the sender of e-mails when SMTP_URL is set")
        if server is not None and server.tls is Tls.NONE and self.environment is Environment.PRODUCTION:
            problems.append("SMTP_URL with ?tls=none sends e-mails unencrypted and is refused in production")
        return problems

    def _phone_problems(self) -> list[str]:
        problems = self._half_set("twilio_account_sid", "twilio_auth_token", "twilio_from")
        problems += self._half_set("whatsapp_phone_number_id", "whatsapp_access_token")
        if self.sms_gateway_url and self.twilio_account_sid:
            problems.append("SMS_GATEWAY_URL and TWILIO_ACCOUNT_SID are both set, but only one of them can send SMS")
        try:
            gateway_templates.request_template(self.sms_gateway_request, self.sms_gateway_content_type)
        except gateway_templates.InvalidTemplate as error:
            problems.append(f"SMS_GATEWAY_REQUEST: {error}")
        return problems

    def _half_set(self, *names: str) -> list[str]:
        """Problems with settings that are only useful together."""
        missing = [name for name in names if getattr(self, name) is None]
        given = [name.upper() for name in names if name not in missing]
        return [f"{name.upper()} must be set together with {', '.join(given)}" for name in missing if given]

    def _cluster_problems(self) -> list[str]:
        if parse_engine(self.jobs_engine) is not None and not self.jobs_tls_dir:
            return ["JOBS_TLS_DIR must name a folder made by `cluster certificates` when JOBS_ENGINE=dask://…"]
        return []

    def _unsafe_in_production(self) -> list[str]:
        if self.environment is not Environment.PRODUCTION:
            return []
        providers = ("fcm_base_url", "sms_gateway_url", "twilio_base_url", "whatsapp_base_url")
        unencrypted = [name for name in providers if (getattr(self, name) or "https://")[:8].lower() != "https://"]
        lists = (
            location for of_source in parse_sources(self.roster_sources).values() for location in of_source.values()
        )
        if any(location.lower().startswith("http://") for location in lists):
            unencrypted.append("roster_sources")
        given = {
            name: getattr(self, name) for name in ("sms_gateway_token", "twilio_auth_token", "whatsapp_access_token")
        }
        found: dict[str, str | None] = dict.fromkeys(unencrypted, "must begin with https:// in production")
        stores = ("database_url", "migration_database_url", "redis_url")
        found |= {
            name: problem_with_store(url, self.private_network) for name in stores if (url := getattr(self, name))
        }
        found |= {name: "is a known default" for name, secret in given.items() if is_known_default(secret or "")}
        if self.mail_server is not None and is_known_default(self.mail_server.password):
            found["smtp_url"] = "has a password that is a known default"
        found["metrics_token"] = problem_with_secret(self.metrics_token or "")
        found["audit_key"] = next(filter(None, map(problem_with_secret, self.audit_keys)), None)
        # The rest of a webhook secret is base64.
        signing = (self.webhook_secret or "").removeprefix(signing_secrets.PREFIX)
        found["webhook_secret"] = problem_with_secret(signing) if signing else None
        return [f"{name.upper()} {problem}" for name, problem in found.items() if problem]

    def _audit_problems(self) -> list[str]:
        if any(len(key) < 32 for key in self.audit_keys):
            return ["AUDIT_KEY must be at least 32 random characters"]
        return self._half_set("audit_key", "audit_heads_dir")

    def _only_for_tests(self) -> list[str]:
        problems: list[str] = []
        if self.environment is not Environment.PRODUCTION:
            return problems
        if self.failpoints:
            problems.append("FAILPOINTS kills processes on purpose and is refused in production")
        if self.webhook_allow_private:
            problems.append("WEBHOOK_ALLOW_PRIVATE lets webhooks into our own network and is refused in production")
        return problems


# Each of these may also be read from a file. The variable with the suffix `_FILE` holds the path.
SECRETS = frozenset(
    {
        "database_url",
        "migration_database_url",
        "redis_url",
        "audit_key",
        "auth_secret",
        "metrics_token",
        "smtp_url",
        "sms_gateway_token",
        "twilio_auth_token",
        "vapid_private_key",
        "whatsapp_access_token",
        "webhook_secret",
    }
)


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    source = os.environ if environ is None else environ
    given = {name: _read(source, name) for name in Settings.model_fields}
    values: dict[str, Any] = {name: value for name, value in given.items() if value}
    try:
        return Settings(**values)
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(item) for item in error.errors())) from None


def trusted_certificates() -> str | None:
    """The file or folder of trusted certificates for HTTPS, from the usual variables of Python services. They are not
    settings of this service."""
    return os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or None


def _read(source: Mapping[str, str], name: str) -> str:
    variable = name.upper()
    path = source.get(f"{variable}_FILE", "").strip() if name in SECRETS else ""
    value = source.get(variable, "").strip()
    if not path:
        return value
    if value:
        raise SettingsError(f"{variable}: is set both directly and by {variable}_FILE")
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{variable}_FILE: cannot be read ({type(error).__name__})") from None


def _explain(item: Any) -> str:
    """One line for one problem: the variable's name, and never its value, which may be a secret."""
    message = str(item["msg"]).removeprefix("Value error, ")
    variable = ".".join(str(part) for part in item["loc"]).upper()
    return f"{variable}: {message}" if variable else message
