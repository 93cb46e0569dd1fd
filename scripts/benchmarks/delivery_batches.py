"""Batches of pushes through FCM, which takes one message per request."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http.client import HTTPConnection
from queue import SimpleQueue
from uuid import uuid4

from app.delivery.channels.base import OutgoingMessage
from app.delivery.channels.fcm import FcmChannel
from app.delivery.channels.fcm_wire import encode_message
from app.delivery.messages.values import Device, Notification, Outcome, Priority
from app.foundation.clock import FakeClock
from app.users.models import AddressKind
from benchmarks import backlog
from benchmarks.bench import Bench, say
from benchmarks.figures import in_turns, number
from benchmarks.provider import Behaviour
from benchmarks.report import Row, Section
from benchmarks.stand_in import PROJECT, StandIn, stand_in

BATCH, CONNECTIONS, LATENCY_S = 500, 16, 0.050
"""16 is the default of FCM_CONNECTIONS."""

TITLE = (
    f"delivery-batches: pushes a second in batches of {BATCH} over {CONNECTIONS} connections to a stand-in for FCM that"
    f" answers after {LATENCY_S * 1e3:.0f} ms; floor: {CONNECTIONS} threads of bare http.client"
)


def measure(bench: Bench) -> Section:
    passes = bench.size(4, 1)
    messages = [_message() for _ in range(bench.size(BATCH, 2 * CONNECTIONS))]
    with stand_in(bench) as provider:
        provider.behave(PUSH=Behaviour(latency_s=LATENCY_S))
        say("delivery-batches")
        channel = FcmChannel(str(provider.credentials), FakeClock(), base_url=provider.url, connections=CONNECTIONS)
        floor = _Bare(provider, messages)
        implementations = {"ours": lambda _: _hand_over(channel, messages), "floor": lambda _: floor.send()}
        took = in_turns(implementations, [0], passes)
        channel.close()
        floor.close()
    rates = {name: len(messages) * len(samples) / sum(samples) * 1e3 for name, samples in took.items()}
    row = Row(f"{len(messages)} tokens at once", rates["ours"], rates["floor"], facts={"ms": took}, more_is_better=True)
    most = CONNECTIONS / LATENCY_S
    notes = [f"{CONNECTIONS} connections with that latency allow at most {number(most)} a second."]
    return Section("delivery-batches", TITLE, [row], notes)


def _message() -> OutgoingMessage:
    id_ = uuid4()
    notification = Notification(
        id=id_,
        notification_type="PUSH",
        recipient="user:7",
        subject=backlog.SUBJECT,
        body=backlog.BODY,
        priority=Priority.HIGH,
        created_at=datetime.now(UTC),
        metadata={"data": {"notificationId": str(id_)}},
    )
    return OutgoingMessage(notification, Device("phone", f"token-{id_}", AddressKind.TOKEN))


def _hand_over(channel: FcmChannel, messages: Sequence[OutgoingMessage]) -> None:
    results = channel.handle(messages)
    taken = sum(result is not None and result.outcome is Outcome.SENT for result in results)
    assert taken == len(messages), f"the provider took only {taken} of {len(messages)}"


class _Bare:
    """Sends the same bytes, encoded beforehand, by bare http.client."""

    def __init__(self, provider: StandIn, messages: Sequence[OutgoingMessage]) -> None:
        self._bodies = [encode_message(message, datetime.now(UTC)) for message in messages]
        self._pool = ThreadPoolExecutor(CONNECTIONS)
        self._idle: SimpleQueue[HTTPConnection] = SimpleQueue()
        for _ in range(CONNECTIONS):
            self._idle.put(HTTPConnection("127.0.0.1", provider.port))

    def send(self) -> None:
        names = list(self._pool.map(self._post, self._bodies))
        assert all(name.startswith("projects/") for name in names)

    def _post(self, body: bytes) -> str:
        connection = self._idle.get()
        headers = {"Content-Type": "application/json; charset=UTF-8", "Authorization": "Bearer ya29.bench"}
        connection.request("POST", f"/v1/projects/{PROJECT}/messages:send", body, headers)
        answer = json.loads(connection.getresponse().read())
        self._idle.put(connection)
        return answer["name"]

    def close(self) -> None:
        self._pool.shutdown()
        while not self._idle.empty():
            self._idle.get().close()
