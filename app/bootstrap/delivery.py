"""The parts of the role `delivery`."""

from app.db.database import Database
from app.db.wake import Announcer
from app.delivery.actions.conductor import Conductor
from app.delivery.actions.intake import BLOCK_S, GROUP, Intake
from app.delivery.actions.result_format import PUBLISHED, Topic
from app.delivery.alarm import Alarm
from app.delivery.audit_heads import AuditHeads
from app.delivery.channels.base import Wiring
from app.delivery.channels.registry import Channels, open_channels
from app.delivery.messages.rules import DeliveryRules
from app.delivery.months_ahead import MonthsAhead
from app.delivery.role import FOLLOWERS, LEAVE_S, DeliveryRole
from app.delivery.sending.channel_worker import ChannelWorkerOptions
from app.delivery.sending.dispatcher import Dispatcher
from app.foundation.clock import Clock
from app.ops.submission_counter import SubmissionCounter
from app.redis_store import hints
from app.redis_store.breakers import RedisBreakers
from app.redis_store.client import open_client
from app.redis_store.publisher import Publisher
from app.redis_store.streams import Inlet, Outlet
from app.settings.settings import Settings

# The share of the drain time for sends that have begun: 30 s of 40. Sends that last longer are aborted.
_FINISH_SHARE = 0.75


def build_delivery(settings: Settings, db: Database, clock: Clock, channels: Channels) -> DeliveryRole:
    announcer = Announcer(settings.database_url)
    breakers = RedisBreakers(open_client(settings.redis_url))
    available_s = max(settings.drain_s - LEAVE_S, 1.0)
    dispatcher = Dispatcher(
        db,
        clock,
        channels,
        announcer=announcer,
        breakers=breakers,
        followers=FOLLOWERS,
        group_s=settings.delivery_group_s,
        drain_s=available_s * _FINISH_SHARE,
        abort_s=available_s * (1 - _FINISH_SHARE),
        options=ChannelWorkerOptions(
            capacity=settings.notification_queue_capacity,
            threads=settings.notification_queue_consumer_threads,
            poll_s=settings.delivery_poll_s,
            max_age_s=settings.notification_max_age_s,
            most_devices=settings.devices_per_person,
        ),
    )
    SubmissionCounter(dispatcher.metrics.registry).watch(db)
    return DeliveryRole(
        dispatcher,
        announcer,
        build_intake(settings, db),
        Conductor(db, DeliveryRules.from_settings(settings)),
        build_publisher(settings, db),
        Alarm(db, settings.dead_letter_alarm, max_age_s=settings.notification_max_age_s),
        MonthsAhead(db),
        AuditHeads(db, settings.audit_keys, settings.audit_heads_dir),
        breakers,
    )


def build_channels(settings: Settings, db: Database, clock: Clock) -> Channels:
    """Raises `OSError` or `ValueError` if a credentials file cannot be used."""
    pool_size = settings.notification_queue_consumer_threads
    return open_channels(Wiring(settings, db, clock, hints.connect(settings.redis_url, pool_size)))


def build_intake(settings: Settings, db: Database, block_s: float = BLOCK_S) -> Intake:
    stream = f"{settings.action_topic_prefix}.{Topic.REQUESTED}"
    return Intake(db, Inlet(settings.redis_url, stream, GROUP, block_s=block_s))


def build_publisher(settings: Settings, db: Database) -> Publisher:
    return Publisher(db, Outlet(settings.redis_url), settings.action_topic_prefix, PUBLISHED)
