"""A private PostgreSQL with PostGIS in a folder of its own, listening on 127.0.0.1 only."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from machine import processes
from machine.account import Account
from machine.steps import SetupFailed, Stopped, interrupts, run, say, tail

LIBRARIES = Path("/usr/lib/postgresql")
EXTENSIONS = "/usr/share/postgresql/{version}/extension/postgis.control"
ADVICE = "read the log that is named above; if you do not need the data, delete the folder and start again."

# The caller's variables, such as PGPORT or PGDATA, must not affect the private server.
CLEAN_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "HOME": "/"}

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_duration_statement": "1s",
    # Without parameters, and without the details of errors: both hold names and phone numbers.
    "log_parameter_max_length": "0",
    "log_error_verbosity": "terse",
}
# For data that is deleted at the end.
NOT_DURABLE = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "400",
    # Tests open many connections, and without this each loads the library again: 10 ms of processor time.
    "shared_preload_libraries": "postgis-3",
}

FAST_SHUTDOWN = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))


def installed_versions() -> list[int]:
    """Versions of PostgreSQL on this machine that have PostGIS, newest first."""
    found = [int(path.name) for path in LIBRARIES.glob("*") if path.name.isdigit()]
    return sorted((version for version in found if _complete(version)), reverse=True)


def _complete(version: int) -> bool:
    programs = LIBRARIES / str(version) / "bin"
    return (
        all((programs / name).exists() for name in ("initdb", "postgres"))
        and Path(EXTENSIONS.format(version=version)).exists()
    )


@dataclass
class Postgres:
    folder: Path
    account: Account
    log: Path
    settings: dict[str, str] = field(default_factory=dict[str, str])
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def version(self) -> int:
        version_file = self.data / "PG_VERSION"
        versions = installed_versions()
        if not version_file.exists():
            return versions[0]
        version = int(version_file.read_text())
        if version not in versions:
            raise SetupFailed(
                f"{self.data} was created by PostgreSQL {version}, which is not installed",
                f"install it: apt-get install postgresql-{version}-postgis-3",
            )
        return version

    def program(self, name: str) -> str:
        return str(LIBRARIES / str(self.version) / "bin" / name)

    def create(self, user: str, password: str, database: str, superuser: bool = False) -> bool:
        """Creates the data folder; False if it exists already. An interrupted creation leaves no data folder."""
        self.account.folder(self.folder)
        if self.data.exists():
            return False
        self._remove_unfinished()
        # A unique name, because the initdb of a killed start may still write to its own folder.
        unfinished = self.folder / f"unfinished-{os.getpid()}-{time.time_ns()}"
        options = ["--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", "--auth=trust", "--no-instructions"]
        if self.settings.get("fsync") == "off":
            options.append("--no-sync")
        self._run([self.program("initdb"), f"--pgdata={unfinished}", *options], "initdb failed")
        # No login was possible before, and from here on every login needs a password.
        (unfinished / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")
        with (unfinished / "postgresql.conf").open("a") as main:
            main.write("\ninclude 'yaninda.conf'\n")
        self._write_settings(unfinished, port=1)
        rights = "SUPERUSER LOGIN" if superuser else "LOGIN"
        self._run_single_user(unfinished, "template1", f"CREATE ROLE {user} {rights} PASSWORD '{password}'")
        self._run_single_user(unfinished, "template1", f"CREATE DATABASE {database} OWNER {user}")
        self._run_single_user(unfinished, database, "CREATE EXTENSION postgis")
        unfinished.rename(self.data)
        return True

    def change_password(self, user: str, password: str) -> None:
        self._run_single_user(self.data, "template1", f"ALTER ROLE {user} PASSWORD '{password}'")

    def set_role(self, user: str, password: str) -> None:
        """Makes a role that may only log in, or gives it another password."""
        known = f"EXISTS (SELECT FROM pg_roles WHERE rolname = '{user}')"
        change = f"IF {known} THEN ALTER ROLE {user} PASSWORD '{password}'; "
        create = f"ELSE CREATE ROLE {user} LOGIN PASSWORD '{password}'; END IF;"
        self._run_single_user(self.data, "template1", f"DO $$ BEGIN {change}{create} END $$")

    def start(self, port: int) -> None:
        self.begin_start(port)
        self.wait_until_ready()

    def begin_start(self, port: int) -> None:
        """Something else may be started until `wait_until_ready` is called."""
        self.end_leftovers()
        self._write_settings(self.data, port)
        self._spawn()

    def start_again(self) -> None:
        self.end_leftovers()
        self._spawn()

    def stop(self) -> None:
        if self.process is not None:
            processes.end(self.process, FAST_SHUTDOWN)
            self.process = None
        self.end_leftovers()

    def end_leftovers(self) -> None:
        """Stops the processes of a killed start, and removes its pid file, whose pid may belong to another process
        now."""
        if not self.data.exists():
            return
        if pids := processes.running_in(self.data, "postgres"):
            say("PostgreSQL is still running from a start that was killed: stopping it first")
            # Only the postmaster gets SIGINT, because for a backend it means "cancel the query". Backends without a
            # postmaster end by themselves.
            postmasters = [pid for pid in pids if pid == self._pid_in_file()]
            processes.end_strangers(postmasters, FAST_SHUTDOWN[:1])
            processes.end_strangers(processes.running_in(self.data, "postgres"), FAST_SHUTDOWN[1:])
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _spawn(self) -> None:
        command = [*self.account.prefix, self.program("postgres"), "-D", str(self.data)]
        self.process = processes.spawn(command, env=CLEAN_ENVIRONMENT, cwd="/", log=self.log)

    def wait_until_ready(self, patience_s: float = 300.0) -> None:
        assert self.process is not None
        started = time.monotonic()
        has_reported = False
        while not self._is_ready():
            interrupts.check()
            waited_s = time.monotonic() - started
            if self.process.poll() is not None or waited_s > patience_s:
                raise SetupFailed(f"PostgreSQL did not start; {self.log} ends with\n{tail(self.log)}", ADVICE)
            if waited_s > 5 and not has_reported:
                has_reported = True
                say("PostgreSQL is still starting; after a power cut it repairs its data, which can take a minute")
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        lines = self._pid_file_lines()
        return (
            self.process is not None
            and len(lines) >= 8
            and lines[0] == str(self.process.pid)
            and lines[7].strip() == "ready"
        )

    def _pid_in_file(self) -> int | None:
        lines = self._pid_file_lines()
        return int(lines[0]) if lines and lines[0].isdigit() else None

    def _pid_file_lines(self) -> list[str]:
        with contextlib.suppress(OSError):
            return (self.data / "postmaster.pid").read_text().splitlines()
        return []

    def _write_settings(self, data: Path, port: int) -> None:
        settings = SETTINGS | self.settings | {"port": str(port)}
        path = data / "yaninda.conf"
        path.write_text("".join(f"{name} = '{value}'\n" for name, value in settings.items()))
        self.account.own(path, 0o600)

    def _run_single_user(self, data: Path, database: str, statement: str) -> None:
        command = [self.program("postgres"), "--single", "-D", str(data), database]
        printed = self._run(command, "PostgreSQL did not start", statement + "\n")
        # The exit code does not show whether the statement failed.
        if problem := re.search(r"^.*\b(?:ERROR|FATAL|PANIC):.*$", printed, re.MULTILINE):
            raise SetupFailed(f"PostgreSQL refused a set-up statement: {problem[0].replace(statement, '…')}", ADVICE)

    def _remove_unfinished(self) -> None:
        for folder in self.folder.glob("unfinished-*"):
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, command: list[str], failure: str, text: str = "") -> str:
        try:
            command = [*self.account.prefix, *command]
            return run(command, failure=failure, advice=ADVICE, text=text, env=CLEAN_ENVIRONMENT, cwd="/")
        except Stopped:
            self._remove_unfinished()
            raise
