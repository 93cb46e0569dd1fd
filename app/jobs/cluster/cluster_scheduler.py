"""The scheduler of the cluster: dask's, with a choice of worker that knows how many tasks of a type a worker can run.

Dask gives a task that needs a resource to a worker at once, even if it has to wait there, and compares how long it
expects the tasks of each worker to take. Nobody knows that about scripts: a report may take a second or an hour.
"""

import time
from typing import Any

import structlog
from distributed import Scheduler
from distributed.scheduler import TaskState, WorkerState
from tornado.ioloop import PeriodicCallback

from app.jobs.cluster.cluster_worker import LEASE_S

log = structlog.get_logger(__name__)

EVEN_OUT_S = 0.25
WORKER_LOST_S = 2 * LEASE_S
"""A worker that is silent for so long is given up. Longer than its lease, so that its scripts have been stopped."""
_MOST_PLACES = 10_000
_DEATHS = 1000
"""Of workers while they run a task, before the task is given up. Scripts run in processes of their own, so it is not
the script that ends a worker."""


class JobsScheduler(Scheduler):
    def __init__(self, *, worker_lost_s: float = WORKER_LOST_S, **dask: Any) -> None:
        self._let_go_early: list[tuple[list[Any], str]] = []
        self._places: dict[Any, str] = {}
        """Where tasks ran that a client let go of; the oldest first."""
        self._heard_at: dict[str, float] = {}
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            worker_ttl=worker_lost_s, allowed_failures=_DEATHS, dashboard=False, **dask
        )
        self.handlers["has_worker"] = self.has_worker  # pyright: ignore[reportUnknownMemberType]
        self.periodic_callbacks["even-out"] = PeriodicCallback(self.even_out, EVEN_OUT_S * 1000)
        self.periodic_callbacks["worker-ttl"] = PeriodicCallback(self.check_worker_ttl, worker_lost_s / 8 * 1000)

    def start_http_server(self, *_arguments: Any, **_options: Any) -> None:
        """None: it would answer anybody, without TLS."""

    def worker_objective(self, ts: TaskState, ws: WorkerState) -> tuple[float, ...]:
        """The worker with the smallest number gets the task: its share of threads of this type that are taken."""
        if self._places.get(ts.key) == ws.address:
            # Its script may have been told to stop there, and not have stopped. Here it would run beside that one.
            return (-1.0, 0)
        name = next(iter(ts.resource_restrictions or ws.resources))
        return (taken(ws, name) / ws.resources[name], len(ws.processing))

    def even_out(self) -> None:
        """Moves tasks that wait at one worker to others that could begin them."""
        for name in {name for ws in self.workers.values() for name in ws.resources}:
            room = {ws: int(ws.resources[name]) - taken(ws, name) for ws in self.running}
            for victim in self.workers.values():
                # A worker that is to stop begins nothing any more.
                for ts in self._waiting(victim, name, -room.get(victim, -taken(victim, name))):
                    thief = max(room, key=lambda ws: room[ws], default=None)
                    if thief is None or room[thief] <= 0:
                        break
                    room[thief] -= 1
                    # The victim is asked first, and says no if the task has begun.
                    self.extensions["stealing"].move_task_request(ts, victim, thief)

    def _waiting(self, ws: WorkerState, name: str, number: int) -> list[TaskState]:
        """The newest tasks, which begin last."""
        waiting = [ts for ts in of_type(ws, name) if ts not in ws.executing]
        return sorted(waiting, key=lambda ts: ts.priority or (), reverse=True)[: max(number, 0)]

    async def update_graph(self, *arguments: Any, **options: Any) -> None:
        await super().update_graph(*arguments, **options)  # pyright: ignore[reportUnknownMemberType]
        early, self._let_go_early = self._let_go_early, []
        for keys, client in early:
            if client in self.clients:
                self.client_releases_keys(keys, client)

    def client_releases_keys(self, keys: Any, client: str, stimulus_id: str | None = None) -> None:
        """A client may let go of a task whose graph is still being read, which would then run for nobody."""
        unknown = [key for key in keys if key not in self.tasks]
        self._remember_places(keys)
        if unknown and self._active_graph_updates:
            self._let_go_early.append((unknown, client))
        super().client_releases_keys(keys, client, stimulus_id)

    def _remember_places(self, keys: Any) -> None:
        for key in keys:
            if (ts := self.tasks.get(key)) is not None and ts.processing_on is not None:
                self._places.pop(key, None)
                self._places[key] = ts.processing_on.address
        while len(self._places) > _MOST_PLACES:
            del self._places[next(iter(self._places))]

    def has_worker(self, address: str) -> bool:
        """False if its tasks were given to others."""
        return self._known_as(address) in self.workers

    def heartbeat_worker(self, *, address: str, **more: Any) -> dict[str, Any]:
        self._heard_at[self._known_as(address)] = time.monotonic()
        return super().heartbeat_worker(address=address, **more)  # pyright: ignore[reportUnknownMemberType]

    def _known_as(self, address: str) -> str:
        return self.coerce_address(address)  # pyright: ignore[reportUnknownMemberType]

    async def check_worker_ttl(self) -> None:
        """Dask compares times of the wall clock. If that is set, all workers seem silent, or a silent one does not."""
        for ws in self.workers.values():
            ws.last_seen = time.time() - (time.monotonic() - self._heard_at[ws.address])
        self._heard_at = {address: self._heard_at[address] for address in self.workers}
        await super().check_worker_ttl()


def of_type(ws: WorkerState, name: str) -> list[TaskState]:
    return [ts for ts in ws.processing if name in (ts.resource_restrictions or ())]


def taken(ws: WorkerState, name: str) -> int:
    return len(of_type(ws, name))


# What follows is called by dask, by its name.


def look(dask_scheduler: Scheduler) -> dict[str, dict[str, Any]]:
    """The workers: what each can run at once, what it was given, and what its engine has counted."""
    return {
        address: {
            "slots": {name: int(number) for name, number in ws.resources.items()},
            "taken": {name: taken(ws, name) for name in ws.resources},
            "counts": dict(ws.metrics.get("jobs") or {}),
        }
        for address, ws in dask_scheduler.workers.items()
    }


def place_of(key: str, client: str, dask_scheduler: Scheduler) -> str | None:
    """The worker of a task that nobody but this client wants."""
    ts = dask_scheduler.tasks.get(key)
    if ts is None or any(wanting.client_key != client for wanting in ts.who_wants or ()):
        return None
    if ts.processing_on is not None:
        return ts.processing_on.address
    return next((ws.address for ws in ts.who_has or ()), None)
