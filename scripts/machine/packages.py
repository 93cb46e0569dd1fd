"""Installs system packages of the distribution, and neither starts nor changes any service of the machine."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence

from machine import postgres, redis
from machine.steps import ROOT, SetupFailed, run, say

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
UPDATE = ("apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", "update")

# Runs as root. At the end, `undo` reverts the temporary changes that this script made, and no others.
INSTALL = r"""
set -eu
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.d/yaninda.conf
main=/etc/postgresql-common/createcluster.conf
undo() {
    if [ -n "${made_policy:-}" ]; then rm -f "$policy"; fi
    if [ -n "${made_cluster:-}" ]; then rm -f "$cluster"; fi
    if [ -n "${saved_main:-}" ]; then cp -p "$saved_main" "$main"; rm -f "$saved_main"; fi
}
trap undo EXIT
get() {
    apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold install --no-install-recommends "$@"
}

# No package may start its service.
if [ ! -e "$policy" ]; then
    made_policy=1
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
fi
had_redis=$(command -v redis-server || true)
postgis=
for package in "$@"; do case $package in *postgis*) postgis=1;; esac; done
if [ -n "$postgis" ]; then
    # Without a cluster "main": this project creates its own.
    get postgresql-common
    if [ ! -e "$cluster" ]; then
        made_cluster=1
        mkdir -p "${cluster%/*}"
        echo "create_main_cluster = false" > "$cluster"
    fi
    if [ "$(pg_conftool "$main" show -bs create_main_cluster 2>/dev/null || true)" != off ]; then
        saved_main=$(mktemp)
        cp -p "$main" "$saved_main"
        echo "create_main_cluster = false" >> "$main"
    fi
fi
get "$@"
# A Redis that this script installed must not start at the next boot either.
if [ -z "$had_redis" ] && command -v update-rc.d > /dev/null; then
    for package in "$@"; do
        if [ "$package" = redis-server ]; then update-rc.d redis-server disable > /dev/null 2>&1 || true; fi
    done
fi
"""


def ensure_stores(want_postgres: bool = True, want_redis: bool = True) -> None:
    missing: list[str] = []
    if want_postgres:
        if versions := postgres.installed_versions():
            say(f"PostgreSQL {versions[0]} with PostGIS … already there")
        else:
            missing.append("PostGIS")
    if want_redis:
        if redis.server():
            say("Redis … already there")
        else:
            missing.append("Redis")
    if not missing:
        return
    install(missing)
    if (want_postgres and not postgres.installed_versions()) or (want_redis and not redis.server()):
        raise SetupFailed(
            "the packages are installed, but their programs are not in the folders that Debian uses",
            "look at `dpkg -L postgresql-common redis-server`; both must be the distribution's own packages.",
        )


def browser() -> str | None:
    """The program that tests of pages drive, wherever it comes from."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def ensure_browser() -> None:
    if browser() is None:
        install(["Chromium"])


def ensure_venv_module() -> None:
    if importlib.util.find_spec("ensurepip") and importlib.util.find_spec("venv"):
        return
    if not sys.executable.startswith("/usr/bin/"):
        raise SetupFailed(
            f"{sys.executable} cannot make virtual environments: it was built without ensurepip",
            "run this script with the distribution's Python: /usr/bin/python3 " + " ".join(map(shlex.quote, sys.argv)),
        )
    install(["venv"])
    importlib.invalidate_caches()


def install(missing: list[str]) -> None:
    """`missing` holds this project's names; `_package_names` finds the packages of the distribution."""
    if shutil.which("apt-get") is None:
        raise SetupFailed(
            f"{' and '.join(missing)} not found, and this machine has no apt",
            "install them by hand. DATABASE_URL and REDIS_URL may name servers that exist.",
        )
    root = _root_prefix()
    say(f"{' and '.join(missing)} … installing from the system's packages, without starting any service")
    names = _package_names(missing)
    if len(names) < len(missing):
        _apt([*root, *UPDATE], "apt-get update")
        names = _package_names(missing)
    if len(names) < len(missing):
        raise SetupFailed(
            f"apt knows no package for {' and '.join(missing)}",
            "enable the distribution's main (on Ubuntu also universe) repository, then start again."
            f" Ubuntu has no package of Chromium: install any of {', '.join(BROWSERS)} by hand.",
        )
    command = [*root, "sh", "-c", INSTALL, "install", *names]
    try:
        # An interrupted dpkg run is worse than a delayed Ctrl-C.
        _apt(command, "apt-get install", may_stop=False)
    except SetupFailed:
        # Old package lists name files that the mirror no longer has.
        _apt([*root, *UPDATE], "apt-get update")
        _apt(command, "apt-get install " + " ".join(names), may_stop=False)


def _apt(command: Sequence[str], what: str, *, may_stop: bool = True) -> None:
    run(
        command,
        failure=f"{what} failed",
        advice="check that the package mirror can be reached and that no other apt is running, then start again.",
        may_stop=may_stop,
    )


def _root_prefix() -> list[str]:
    if os.geteuid() == 0:
        return []
    allowed = ["sudo", "-n", "true"]
    if shutil.which("sudo") and subprocess.run(allowed, capture_output=True, check=False).returncode == 0:
        return ["sudo", "-n"]
    raise SetupFailed(
        "system packages are missing, and this user may not install them",
        f"run this once: sudo {shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'scripts' / 'run'))} --packages",
    )


def _package_names(missing: list[str]) -> list[str]:
    names = {
        "PostGIS": _postgis_package(),
        "Redis": "redis-server" if _apt_knows("redis-server") else None,
        "Chromium": "chromium" if _apt_knows("chromium") else None,
        "venv": f"python{sys.version_info.major}.{sys.version_info.minor}-venv",
    }
    return [name for what in missing if (name := names[what])]


def _postgis_package() -> str | None:
    printed = _apt_cache("pkgnames", "postgresql-")
    versions = sorted(int(found) for found in re.findall(r"^postgresql-(\d+)-postgis-3$", printed, re.MULTILINE))
    offered = [version for version in versions if _apt_knows(f"postgresql-{version}-postgis-3")]
    present = [version for version in offered if (postgres.LIBRARIES / str(version) / "bin" / "postgres").exists()]
    return f"postgresql-{(present or offered)[-1]}-postgis-3" if offered else None


def _apt_knows(package: str) -> bool:
    candidate = re.search(r"Candidate: (\S+)", _apt_cache("policy", package))
    return candidate is not None and candidate[1] != "(none)"


def _apt_cache(*arguments: str) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(
        ["apt-cache", *arguments], capture_output=True, text=True, env=environment, check=False
    ).stdout
