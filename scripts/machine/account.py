"""The user account that runs the stores. PostgreSQL refuses to run as root, so root uses an unprivileged account."""

import contextlib
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from machine.steps import SetupFailed

# The one capability that is kept: to enter folders that only root may enter, such as a clone under /root.
_THROUGH_CLOSED_FOLDERS = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")


@dataclass(frozen=True)
class Account:
    uid: int
    gid: int
    prefix: tuple[str, ...] = ()

    def own(self, path: Path, mode: int) -> None:
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.gid)
        path.chmod(mode)

    def folder(self, path: Path) -> Path:
        """Creates the folder if it is missing, and gives it and its content to the account."""
        path.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0 and path.stat().st_uid != self.uid:
            for inside in path.rglob("*"):
                os.chown(inside, self.uid, self.gid, follow_symlinks=False)
        self.own(path, 0o700)
        return path


def store_account(folder: Path) -> Account:
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    user = _unprivileged_user()
    setpriv = shutil.which("setpriv") or "setpriv"
    plain = (setpriv, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
    for prefix in (plain, (*plain, *_THROUGH_CLOSED_FOLDERS)):
        account = Account(user.pw_uid, user.pw_gid, prefix)
        if _can_enter(account, folder):
            return account
    raise SetupFailed(
        f"PostgreSQL does not run as root, and the user {user.pw_name} cannot enter {folder}",
        "choose a folder that every user can enter, for example --dir /var/lib/yaninda.",
    )


def _unprivileged_user() -> pwd.struct_passwd:
    for name in ("postgres", "redis", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise SetupFailed("this machine has no unprivileged user", "create one with `useradd --system postgres`.")


def _can_enter(account: Account, folder: Path) -> bool:
    command = [*account.prefix, "sh", "-c", 'cd "$0"', str(folder)]
    try:
        return subprocess.run(command, cwd="/", capture_output=True, check=False).returncode == 0
    except OSError as error:
        raise SetupFailed(f"setpriv could not be started: {error}", "install the package util-linux.") from None
