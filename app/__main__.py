"""`python -m app COMMAND`: starts a role or runs an operator's command."""

import os
import select
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

from app.foundation.allocator import save_memory
from app.foundation.loading import lean_imports

if TYPE_CHECKING:
    from app.settings.settings import Settings

BROKEN_PIPE = 141
"""As a shell reports a program that SIGPIPE has ended."""
# Each command is a module that is imported only when the command runs, so that a role loads only the code it uses.
COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("app.cli.serve", "run every role here, each as a child process (default)"),
    "api": ("app.cli.run_api", "role: HTTP"),
    "matcher": ("app.cli.run_matcher", "role: deadlines and the cascade"),
    "delivery": ("app.cli.run_delivery", "role: sends notifications"),
    "jobs": ("app.cli.run_jobs", "role: runs jobs; jobs run NAME … | list | show ID"),
    "cluster": ("app.cli.run_jobs_cluster", "roles of JOBS_ENGINE=dask://…: scheduler | worker; certificates FOLDER"),
    "roster": ("app.cli.manage_roster", "roster sync [--kind K] [--dry-run] | runs | show RUN | approve RUN"),
    "migrate": ("app.cli.migrate", "bring the database to the newest schema"),
    "demo": ("app.cli.demo", "load the demo neighbourhood; --live lets its people live"),
    "token": ("app.cli.token", "print a bearer token: token USER_ID | token --admin"),
    "audit": ("app.cli.verify_audit", "audit verify: check that the audit trail was not changed"),
    "vapid": ("app.cli.make_vapid_keys", "print a pair of keys for pushes to browsers: vapid mailto:…"),
    "users": ("app.cli.manage_users", "users add … | users list | users forget ID"),
    "dead-letters": (
        "app.cli.manage_dead_letters",
        "dead-letters list | show ID | redrive … | discard …",
    ),
}


def usage() -> str:
    rows = "\n".join(f"  {name:<12} {about}" for name, (_, about) in COMMANDS.items())
    return f"usage: python -m app [COMMAND] [ARGUMENTS]\n\n{rows}\n"


def main(argv: list[str]) -> int:
    name, *rest = argv or ["serve"]
    if name in {"-h", "--help", "help"}:
        print(usage())
        return 0
    if name not in COMMANDS:
        print(f"There is no command {name!r}.\n\n{usage()}", file=sys.stderr)
        return 2
    save_memory()
    with lean_imports():
        from app.foundation import failpoints
        from app.foundation.logs import configure_logs
        from app.settings.engine_address import ClusterMisconfigured
        from app.settings.settings import SettingsError, load_settings
    try:
        settings = load_settings()
    except SettingsError as error:
        print(f"These settings need attention:\n{error}", file=sys.stderr)
        return 78
    configure_logs(settings.log_level, settings.log_json)
    failpoints.arm(failpoints.parse(settings.failpoints or ""))
    with lean_imports():
        command: Callable[[Settings, list[str]], int] = import_module(COMMANDS[name][0]).main
    try:
        code = command(settings, rest)
        sys.stdout.flush()
        return code
    except (ClusterMisconfigured, SettingsError) as error:
        print(f"These settings need attention:\n{error}", file=sys.stderr)
        return 78
    except BrokenPipeError:
        broken = [stream for stream in (sys.stdout, sys.stderr) if _is_broken(stream)]
        if not broken:
            raise
        # Python would report the rest, which it writes at its end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in broken:
            os.dup2(nowhere, stream.fileno())
        return BROKEN_PIPE


def _is_broken(stream: TextIO) -> bool:
    """True if the program that read the stream, such as `head`, has ended."""
    poll = select.poll()
    poll.register(stream, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
