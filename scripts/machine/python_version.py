"""Restarts the script under Python 3.11 or newer. This module itself works in any Python 3."""

import os
import shutil
import sys


def require():
    if sys.version_info >= (3, 11):  # noqa: UP036
        return
    for name in ("python3.11", "python3.12", "python3.13", "python3.14"):
        path = shutil.which(name)
        if path:
            os.execv(path, [path] + sys.argv)  # noqa: RUF005
    sys.exit(
        "This needs Python 3.11 or newer, and python3 here is "
        + sys.version.split()[0]
        + ". What to do: install a newer one, for example with `apt-get install python3.11`."
    )
