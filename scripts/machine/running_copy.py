"""One running copy of the service in a folder: starts private stores and the roles, and stops them in order."""

import contextlib
import fcntl
import os
import secrets
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from machine import environment, packages, processes, virtualenv
from machine.account import store_account
from machine.postgres import Postgres
from machine.redis import Redis
from machine.steps import ROOT, SetupFailed, interrupts, say

MARK = "YANINDA_COPY"
OWNER_URL = "MIGRATION_DATABASE_URL"
DEFAULT_PORT = "8080"
# Silences end soon, and nobody has to rest, however fast the demo goes.
LIVE_SETTINGS = {"OFFER_TTL_S": "45", "TASKS_PER_HOUR": "1000"}
DEMO_HELPLINE = "+905550100001"
"""Of the demo's coordinator."""
HOSTS_OF_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")
READY_WITHIN_S = 90.0
LOG_LIMIT_BYTES = 10_000_000
BESIDES_DRAIN_S = 15.0


@dataclass(frozen=True)
class Options:
    folder: Path
    port: int | None
    empty: bool
    pace: float | None = None
    """Of the demo people who live by themselves; None if they do not."""


class RunningCopy:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.folder = options.folder
        self.env_file = self.folder / "env"
        self.logs = self.folder / "log"
        self.postgres: Postgres | None = None
        self.redis: Redis | None = None
        self.serve: subprocess.Popen[bytes] | None = None
        self.live: subprocess.Popen[bytes] | None = None
        self.is_prepared = False
        self.env: dict[str, str] = {}
        self.owner_url = ""
        self.restarts: dict[str, tuple[int, float]] = {}

    # Starting ---------------------------------------------------------------------------------------------------

    def run(self) -> int:
        self._make_folder()
        lock = self._lock()
        try:
            self._end_leftover_roles()
            packages.ensure_stores(not os.environ.get("DATABASE_URL"), not os.environ.get("REDIS_URL"))
            virtualenv.ensure(virtualenv.RUNTIME)
            interrupts.check()
            self._settle_environment()
            # Imports its modules while the stores start, and waits for `_prepare`.
            self._start_serve("--prepare", "database" if self.options.empty else "demo")
            self._start_stores()
            self._prepare()
            self._wait_until_ready()
            self._print_addresses()
            if self.options.pace is not None:
                self._start_live(self.options.pace)
            self._keep_running()
            return 0
        finally:
            self._stop()
            os.close(lock)

    def _make_folder(self) -> None:
        for folder in (self.folder, self.logs):
            if not folder.exists():
                folder.mkdir(parents=True)
                # Regardless of the umask, the stores' user must reach its folder inside. Secret files have mode 600.
                folder.chmod(0o700 if folder == self.logs else 0o755)

    def _lock(self) -> int:
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(lock, 20).decode().strip() or "unknown"
            os.close(lock)
            raise SetupFailed(
                f"a copy is already running in {self.folder} (process {pid})",
                f"stop it with Ctrl-C there or `kill {pid}`, or start another one: scripts/run --dir … --port …",
            ) from None
        os.truncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        return lock

    def _end_leftover_roles(self) -> None:
        if pids := processes.running_with(MARK, str(self.folder)):
            say("Roles are still running from a start that was killed: draining them first")
            processes.end_strangers(pids, ((signal.SIGTERM, 45.0), (signal.SIGKILL, 5.0)))

    def _settle_environment(self) -> None:
        kept = environment.read(self.env_file, with_given=False)
        kept.setdefault("ENVIRONMENT", "development")
        kept.setdefault("AUTH_MODE", "local")
        kept.setdefault("AUTH_SECRET", secrets.token_urlsafe(48))
        kept.setdefault("PUSH", "recording")
        kept.setdefault("ROSTER_DIR", str(self.folder / "roster"))
        kept.setdefault("AUDIT_KEY", secrets.token_urlsafe(48))
        kept.setdefault("AUDIT_HEADS_DIR", str(self.folder / "audit-heads"))
        kept["PORT"] = str(self.options.port or os.environ.get("PORT") or DEFAULT_PORT)
        given = self._given()
        self._check_live(kept | given)
        kept["DEMO_SIGN_IN"] = self._demo_sign_in(kept | given)
        if not self.options.empty:
            kept.setdefault("HELPLINE_PHONE", DEMO_HELPLINE)
        self._check_port(kept | given)
        account = store_account(self.folder)
        if "DATABASE_URL" not in given:
            self.postgres = Postgres(self.folder / "postgres", account, self._log("postgres"))
            kept |= self._settle_postgres(self.postgres, kept)
        else:
            given.setdefault(OWNER_URL, given["DATABASE_URL"])
        if "REDIS_URL" not in given:
            self.redis = Redis(self.folder / "redis", account, self._log("redis"))
            kept["REDIS_URL"] = self._settle_redis(self.redis, kept.get("REDIS_URL"))
        environment.write(self.env_file, kept, given)
        # Later values win: variables such as PATH, then the file, then the settings given to this start.
        self.env = {**os.environ, **kept, **given, MARK: str(self.folder)}
        # Only migrations run as the owner of the tables.
        self.owner_url = self.env.pop(OWNER_URL)

    def _check_live(self, values: Mapping[str, str]) -> None:
        if self.options.pace is not None and values["AUTH_MODE"] != "local":
            raise SetupFailed(
                "people of the demo cannot live by themselves where Firebase issues the tokens",
                "start without --live, or with AUTH_MODE=local.",
            )

    def _demo_sign_in(self, values: Mapping[str, str]) -> str:
        """Anybody who reaches the copy may sign in as a demo person, so only this machine may reach it."""
        only_here = values.get("HOST", HOSTS_OF_THIS_MACHINE[0]) in HOSTS_OF_THIS_MACHINE
        return "true" if only_here and values["AUTH_MODE"] == "local" and not self.options.empty else "false"

    def _given(self) -> dict[str, str]:
        """The settings in the environment of this start."""
        names = environment.names_of_settings()
        given = {name: os.environ[name] for name in names if os.environ.get(name, "").strip()}
        if self.options.pace is not None:
            given = LIVE_SETTINGS | given
        if self.options.port:
            given["PORT"] = str(self.options.port)
        return given

    def _check_port(self, values: dict[str, str]) -> None:
        port, host = values["PORT"], values.get("HOST", "127.0.0.1")
        if not port.isdigit() or not 1 <= int(port) <= 65535:
            raise SetupFailed(f"{port} is not a port", "choose a number from 1 to 65535 with --port.")
        if not processes.is_free(int(port), host):
            raise SetupFailed(f"port {port} of {host} is taken", "choose another one: scripts/run --port 8081.")

    def _settle_postgres(self, postgres: Postgres, kept: Mapping[str, str]) -> dict[str, str]:
        """Makes what is missing. Returns the URLs of the role of the service and of the owner of the tables."""
        # A copy from before there were two roles has one URL, the owner's.
        owner = environment.store_from(kept.get(OWNER_URL) or kept.get("DATABASE_URL"))
        service = environment.store_from(kept.get("DATABASE_URL")) if OWNER_URL in kept else None
        if owner is None or not postgres.data.exists():
            owner, service = environment.new_store(), None
            say(
                "PostgreSQL … "
                + ("setting a new password" if postgres.data.exists() else "creating a private database")
            )
            postgres.end_leftovers()
            if not postgres.create(environment.OWNER, owner.password, environment.DATABASE):
                postgres.change_password(environment.OWNER, owner.password)
        postgres.end_leftovers()
        if service is None:
            service = environment.new_store()
            postgres.set_role(environment.ROLE, service.password)
        # Written before the server starts, so that a power cut from here on does not lose the passwords.
        owner = owner.with_free_port()
        service = environment.Store(owner.port, service.password)
        urls = {"DATABASE_URL": service.database_url, OWNER_URL: owner.url_of(environment.OWNER)}
        self._remember(urls)
        return urls

    def _settle_redis(self, redis: Redis, known: str | None) -> str:
        redis.end_leftovers()
        return (environment.store_from(known) or environment.new_store()).with_free_port().redis_url

    def _start_stores(self) -> None:
        """Redis while PostgreSQL is starting."""
        postgres, redis = environment.store_from(self.owner_url), environment.store_from(self.env["REDIS_URL"])
        if self.postgres and postgres:
            self.postgres.begin_start(postgres.port)
        if self.redis and redis:
            self.redis.start(redis.port, redis.password)
            say(f"Redis … running on 127.0.0.1:{redis.port}, its data in {self.redis.folder}")
        if self.postgres and postgres:
            self.postgres.wait_until_ready()
            version, folder = self.postgres.version, self.postgres.folder
            say(f"PostgreSQL {version} … running on 127.0.0.1:{postgres.port}, its data in {folder}")

    def _remember(self, values: Mapping[str, str]) -> None:
        kept = environment.read(self.env_file, with_given=False)
        environment.write(self.env_file, {**kept, **values}, {})

    def _log(self, name: str) -> Path:
        path = self.logs / f"{name}.log"
        if path.exists() and path.stat().st_size > LOG_LIMIT_BYTES:
            path.replace(path.with_suffix(".log.1"))
        return path

    def _start_serve(self, *arguments: str) -> None:
        command = [str(virtualenv.PYTHON), "-m", "app", "serve", *arguments]
        stdin = subprocess.PIPE if arguments else subprocess.DEVNULL
        self.serve = processes.spawn(command, env=self.env, cwd=ROOT, log=None, stdin=stdin)

    def _prepare(self) -> None:
        """Tells `serve` that the stores run, and waits until it has prepared them, however long a migration takes."""
        say("Migrations … running" if self.options.empty else "Migrations and demo neighbourhood … running")
        assert self.serve is not None and self.serve.stdin is not None
        # If it has ended already, `_wait_until_ready` says so.
        with contextlib.suppress(BrokenPipeError):
            self.serve.stdin.write(f"{self.owner_url}\n".encode())
            self.serve.stdin.flush()
        reader_left = select.poll()
        reader_left.register(self.serve.stdin, 0)
        while not reader_left.poll(100):
            interrupts.check()
        self.is_prepared = True

    def _start_live(self, pace: float) -> None:
        command = [str(virtualenv.PYTHON), "-m", "app", "demo", "--live", "--pace", f"{pace:g}"]
        self.live = processes.spawn(command, env=self.env, cwd=ROOT, log=None)

    def _wait_until_ready(self) -> None:
        say("Roles … starting")
        until = time.monotonic() + READY_WITHIN_S
        while not self._is_ready():
            interrupts.check()
            if self.serve is None or self.serve.poll() is not None:
                raise SetupFailed(
                    "the service ended while it started",
                    "read its last lines above, fix the reason that they name, then start again;"
                    f" the logs of the stores are in {self.logs}.",
                )
            if time.monotonic() > until:
                raise SetupFailed(
                    f"{self._url()}/readyz did not say 200 within {READY_WITHIN_S:.0f} s",
                    f"look at `curl {self._url()}/readyz` while it starts; the lines above name the reason.",
                )
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        host, port = self._address()
        return processes.is_ready(port, host)

    def _address(self) -> tuple[str, int]:
        host = self.env.get("HOST", "").strip() or "127.0.0.1"
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), int(self.env["PORT"])

    def _url(self) -> str:
        host, port = self._address()
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def _print_addresses(self) -> None:
        default = self.folder == ROOT / ".run"
        app = "scripts/app" if default else f"scripts/app --dir {shlex.quote(str(self.folder))}"
        say(f"Ready: {self._url()}")
        with contextlib.suppress(OSError):
            print(
                f"\n    Open            {self._url()}\n"
                f"    The API         {self._url()}/docs\n"
                f"    A token         {app} token --admin\n"
                f"    Environment     {self.env_file}\n"
                f"    Logs of stores  {self.logs}\n"
                "\n    Ctrl-C stops everything; the data stays.\n",
                flush=True,
            )

    # Running ----------------------------------------------------------------------------------------------------

    def _keep_running(self) -> None:
        while not interrupts.count:
            if self.serve is not None and self.serve.poll() is not None:
                self._restart("serve", "The supervisor", self._start_serve_again)
            if self.live is not None and self.live.poll() is not None and self.options.pace is not None:
                self._restart("live", "The live demo", partial(self._start_live, self.options.pace))
            if self.postgres and self.postgres.process and self.postgres.process.poll() is not None:
                self._store_ended("postgres", "PostgreSQL", self.postgres)
            if self.redis and self.redis.process and self.redis.process.poll() is not None:
                self._store_ended("redis", "Redis", self.redis)
            time.sleep(0.1)

    def _store_ended(self, key: str, title: str, store: Postgres | Redis) -> None:
        assert store.process is not None
        if store.process.returncode == 0:
            # It was shut down on purpose, perhaps to test the service without it.
            say(f"{title} was shut down; it stays down until the next start")
            store.process = None
        else:
            self._restart(key, title, store.start_again)

    def _start_serve_again(self) -> None:
        of_the_live_demo = {self.live.pid} if self.live else set[int]()
        left = set(processes.running_with(MARK, str(self.folder))) - of_the_live_demo
        processes.end_strangers(left, ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)))
        self._start_serve()

    def _restart(self, key: str, title: str, start: Callable[[], None]) -> None:
        """Starts it again after 0.2 s. Each death within 60 s of the one before doubles the pause, up to 10 s."""
        deaths, last = self.restarts.get(key, (0, 0.0))
        deaths = deaths + 1 if time.monotonic() - last < 60 else 0
        self.restarts[key] = (deaths, time.monotonic())
        pause_s = min(0.2 * 2**deaths, 10.0)
        say(f"{title} died; starting it again in {pause_s:.1f} s")
        until = time.monotonic() + pause_s
        while time.monotonic() < until and not interrupts.count:
            time.sleep(0.05)
        if not interrupts.count:
            start()

    # Stopping ---------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Stops the live demo and the roles, and the stores after the last role. No signal interrupts this."""
        if self.live is not None:
            processes.end(self.live, ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)))
        if self.serve is not None and not self.is_prepared:
            processes.end(self.serve, ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)))
        if self.serve is not None and self.serve.poll() is None:
            say("Draining the roles (Ctrl-C again: without waiting for them)")
            interrupts.count = max(interrupts.count, 1)
            interrupts.on_next_signal = self._hurry
            clean = processes.end(self.serve, ((signal.SIGTERM, self._drain_s()), (signal.SIGKILL, 5.0)))
            say(
                "Roles … drained"
                if clean and self.serve.returncode == 0
                else "Roles … not all of them ended by themselves"
            )
        with contextlib.suppress(OSError):
            left = processes.running_with(MARK, str(self.folder))
            processes.end_strangers(left, ((signal.SIGTERM, 2.0), (signal.SIGKILL, 5.0)))
        for title, store in (("Redis", self.redis), ("PostgreSQL", self.postgres)):
            if store is not None:
                store.stop()
                say(f"{title} … stopped")

    def _hurry(self) -> None:
        if self.serve is not None and self.serve.poll() is None:
            self.serve.send_signal(signal.SIGTERM)

    def _drain_s(self) -> float:
        try:
            return float(self.env.get("DRAIN_S", "").strip() or 45) + BESIDES_DRAIN_S
        except ValueError:
            return 45 + BESIDES_DRAIN_S
