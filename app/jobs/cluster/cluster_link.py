"""The connection of an engine to the scheduler, and the tasks that were handed over. Lives in one event loop.

Dask runs a task again if the worker that has it dies. If the scheduler dies, all that it knew is gone: the link
connects again and hands over every task that has no end yet. It waits with this for as long as a worker that has not
noticed the death may run their scripts.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from dask.base import annotate
from distributed import Client, Security

from app.foundation.logs import describe_error
from app.foundation.loop import DoublingPause
from app.jobs.cluster.cluster_scheduler import look, place_of
from app.jobs.cluster.cluster_wire import PROGRESS, pack_task, unpack_finished
from app.jobs.cluster.cluster_worker import begun_tasks, cancel_task, run_task
from app.jobs.cluster.knock import knock
from app.jobs.engine.engine import Finished
from app.jobs.engine.process_pool import PREFIXES
from app.jobs.engine.result import Result
from app.jobs.engine.task import Task, TaskType

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 0.5
ANSWER_WITHIN_S = 10.0
"""A scheduler that takes longer is treated as one that is gone."""
LONGEST_PAUSE_S = 1.0
"""Between two attempts to connect."""
_STATUS_EVERY_S = 0.1
_HAND_OVER_EVERY_S = 0.01
PREFETCH = 2
"""Tasks that are handed over for each thread of the cluster, so that the next one is there when a task ends."""


@dataclass
class _Sent:
    task: Task
    key: str
    future: Any = None
    waiting: "asyncio.Task[None] | None" = None


class ClusterLink:
    """`take` gives the next task that waits; `ended` and `progressed` are called in the thread of the loop."""

    def __init__(
        self,
        address: str,
        security: Security,
        key_of: Callable[[str], str],
        take: Callable[[TaskType], Task | None],
        ended: Callable[[Finished], None],
        progressed: Callable[[str, int, int | None, str], None],
        worker_lease_s: float,
    ) -> None:
        self._address = address
        self._security = security
        self._key_of = key_of
        self._take = take
        self._ended = ended
        self._progressed = progressed
        self._worker_lease_s = worker_lease_s
        self._scheduler_id: str | None = None
        self._held_back: set[str] = set()
        """The keys of tasks that may run for a scheduler that is gone."""
        self._held_back_until = 0.0
        self._sent: dict[str, _Sent] = {}
        self._client: Any = None
        self._bell = asyncio.Event()
        self._lost = asyncio.Event()
        self._paused = False
        self._first_counts: dict[str, Counter[str]] | None = None
        self._last_counts: dict[str, Counter[str]] = {}
        # Read by other threads.
        self.is_connected = False
        self.slots: Counter[str] = Counter()
        self.taken_by_others: Counter[str] = Counter()
        self.in_flight: Counter[str] = Counter()
        self.workers: dict[str, dict[str, Any]] = {}

    @property
    def counts(self) -> Counter[str]:
        """What the engines of the workers have counted since this link has known them."""
        first = self._first_counts or {}
        return _sum(last - first.get(address, Counter[str]()) for address, last in self._last_counts.items())

    def ring(self) -> None:
        """A task may be waiting."""
        self._bell.set()

    def pause(self) -> None:
        self._paused = True

    async def run(self) -> None:
        """Until it is cancelled."""
        pause = DoublingPause(longest_s=LONGEST_PAUSE_S)
        problem = ""
        while True:
            try:
                client = await self._connect()
            except Exception as error:
                # Also what TLS, another version of dask or another program at this address cause.
                if problem != type(error).__name__:
                    problem = type(error).__name__
                    log.warning("cluster_unreachable", address=self._address, error_type=problem)
                await asyncio.sleep(pause.next_s())
                continue
            pause.reset()
            problem = ""
            log.info("cluster_connected", tasks=len(self._sent))
            try:
                await self._serve(client)
                log.error("cluster_lost", tasks=len(self._sent))
            finally:
                await self._leave(client)

    async def _connect(self) -> Any:
        await knock(self._address)
        client: Any = Client(
            self._address, security=self._security, asynchronous=True, set_as_default=False, timeout=ANSWER_WITHIN_S
        )
        try:
            return await asyncio.wait_for(client, ANSWER_WITHIN_S)
        except BaseException:
            await _close(client)
            raise

    async def _serve(self, client: Any) -> None:
        """Until the scheduler is lost."""
        self._client = client
        self._lost.clear()
        self._hold_back(client.scheduler_info()["id"])
        self._hand_over(list(self._sent.values()))
        self._bell.set()
        parts = (self._watch(), self._feed(), self._lost.wait(), _until_lost(client))
        loops = [asyncio.create_task(part) for part in parts]
        try:
            done, _ = await asyncio.wait(loops, return_when=asyncio.FIRST_COMPLETED)
            for loop in done:
                if isinstance(error := loop.exception(), Exception):
                    log.warning("cluster_link_broke", error_type=type(error).__name__)
        finally:
            for loop in loops:
                loop.cancel()

    def _hold_back(self, scheduler_id: str) -> None:
        if scheduler_id != self._scheduler_id:
            self._scheduler_id = scheduler_id
            self._held_back = {*self._sent}
            self._held_back_until = time.monotonic() + self._worker_lease_s

    def _hand_over_held_back(self) -> None:
        if self._held_back and time.monotonic() >= self._held_back_until:
            held_back, self._held_back = self._held_back, set()
            self._hand_over([sent for key in held_back if (sent := self._sent.get(key)) is not None])

    async def _leave(self, client: Any) -> None:
        self.is_connected = False
        self._client = None
        self.slots.clear()
        self.workers = {}
        for sent in self._sent.values():
            if sent.waiting is not None:
                sent.waiting.cancel()
            sent.future = sent.waiting = None
        await _close(client)

    async def _watch(self) -> None:
        while True:
            # Each time, because dask forgets what a client listens to when it connects again by itself.
            self._client.subscribe_topic(PROGRESS, self._hear)
            mine = Counter(self.in_flight)
            workers = await asyncio.wait_for(self._client.run_on_scheduler(look), ANSWER_WITHIN_S)
            self._note(workers, mine)
            self.is_connected = True
            self._hand_over_held_back()
            self._bell.set()
            await asyncio.sleep(LOOK_EVERY_S)

    def _note(self, workers: dict[str, dict[str, Any]], mine: Counter[str]) -> None:
        counts = {address: Counter[str](worker["counts"]) for address, worker in workers.items()}
        if self._first_counts is None:
            self._first_counts = counts
        self._last_counts |= counts
        self.workers = workers
        self.slots = _sum(Counter[str](worker["slots"]) for worker in workers.values())
        self.taken_by_others = _sum(Counter[str](worker["taken"]) for worker in workers.values()) - mine

    async def _feed(self) -> None:
        while True:
            await self._bell.wait()
            self._bell.clear()
            batch: list[_Sent] = []
            for type_, prefix in PREFIXES.items():
                room = PREFETCH * self.slots[prefix] - self.in_flight[prefix]
                while not self._paused and room > 0 and (task := self._take(type_)) is not None:
                    batch.append(self._add(task))
                    room -= 1
            self._hand_over(batch)
            # Handing over one task costs as much as handing over twenty.
            await asyncio.sleep(_HAND_OVER_EVERY_S)

    def _add(self, task: Task) -> _Sent:
        prefix = PREFIXES[task.task_type]
        # Dask keeps statistics for the first word of a key.
        key = f"{prefix}-{self._key_of(task.id)}"
        if (before := self._sent.get(key)) is not None:
            # The same work under an older id, which nobody waits for any more.
            self._end(before, Finished(Result.cancelled(before.task.id), 1))
        self._sent[key] = sent = _Sent(task, key)
        self.in_flight[prefix] += 1
        return sent

    def _hand_over(self, batch: Sequence[_Sent]) -> None:
        for type_, prefix in PREFIXES.items():
            group = [sent for sent in batch if sent.task.task_type is type_ and sent.key not in self._held_back]
            if not group:
                continue
            with annotate(executor=prefix):
                futures = self._client.map(
                    run_task,
                    [pack_task(sent.key, sent.task) for sent in group],
                    key=[sent.key for sent in group],
                    resources={prefix: 1},
                    # In the order of submission.
                    fifo_timeout="0 ms",
                )
            for sent, future in zip(group, futures, strict=True):
                sent.future = future
                sent.waiting = asyncio.create_task(self._wait(sent, future))

    async def _wait(self, sent: _Sent, future: Any) -> None:
        try:
            values = await future
        except Exception as error:
            if future.status != "error":
                # Dask cancels its futures when it loses the scheduler.
                self._lost.set()
                return
            self._end(sent, Finished(Result.failed(sent.task.id, f"the cluster failed: {error}"), 1))
        else:
            self._end(sent, unpack_finished(values, sent.task.id))

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        _, said = event
        if (sent := self._sent.get(said["key"])) is not None:
            self._progressed(sent.task.id, said["done"], said["total"], said["note"])

    def _end(self, sent: _Sent, finished: Finished) -> None:
        self.let_go([sent])
        self._ended(finished)

    def let_go(self, sents: Iterable[_Sent]) -> None:
        """Dask stops what no client wants."""
        for sent in sents:
            if self._sent.get(sent.key) is sent:
                del self._sent[sent.key]
                self.in_flight[PREFIXES[sent.task.task_type]] -= 1
            if sent.waiting is not None and sent.waiting is not asyncio.current_task():
                sent.waiting.cancel()
            if sent.future is not None:
                sent.future.release()
        self._bell.set()

    def let_all_go(self) -> None:
        self.let_go(list(self._sent.values()))

    async def cancel(self, task_id: str) -> None:
        """Again and again, because the task may just be moving to another worker."""
        while (sent := next((sent for sent in self._sent.values() if sent.task.id == task_id), None)) is not None:
            if not await self._cancel_where_it_runs(sent):
                if self._sent.get(sent.key) is sent:
                    self._end(sent, Finished(Result.cancelled(task_id), 1))
                return
            await asyncio.sleep(LOOK_EVERY_S)

    async def _cancel_where_it_runs(self, sent: _Sent) -> bool:
        """False if it has not begun, if another engine wants it too, or if nobody answers."""
        client = self._client
        if client is None:
            return False
        try:
            place = await asyncio.wait_for(client.run_on_scheduler(place_of, sent.key, client.id), ANSWER_WITHIN_S)
            if place is None:
                return False
            told = await asyncio.wait_for(client.run(cancel_task, sent.key, workers=[place]), ANSWER_WITHIN_S)
            return any(told.values())
        except Exception as error:
            log.warning("cancel_not_delivered", task_id=sent.task.id, **describe_error(error))
            return False

    async def drain(self) -> None:
        """Lets go of the tasks that wait at a worker, and waits until those have ended that run."""
        self.pause()
        client = self._client
        if client is None:
            return
        begun: set[str] = set()
        # A worker that does not answer has begun nothing that will end here.
        told = await asyncio.wait_for(client.run(begun_tasks, on_error="ignore"), ANSWER_WITHIN_S)
        for keys in told.values():
            begun |= keys
        self.let_go([sent for sent in self._sent.values() if sent.key not in begun])
        while self._sent and self._client is client:
            await asyncio.sleep(0.02)


async def _until_lost(client: Any) -> None:
    """Dask tries to connect again by itself, and does not say so."""
    while client.status == "running":
        await asyncio.sleep(_STATUS_EVERY_S)


def _sum(counters: Iterable[Counter[str]]) -> Counter[str]:
    return sum(counters, Counter[str]())


async def _close(client: Any) -> None:
    # A scheduler that is gone cannot say goodbye.
    with contextlib.suppress(Exception):
        await asyncio.wait_for(client.close(), 2.0)
