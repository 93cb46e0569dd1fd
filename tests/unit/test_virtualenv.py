"""Which Python `.venv` is made with."""

import sys
from pathlib import Path

from machine.virtualenv import fastest_python


def test_the_distributions_python_is_preferred_where_it_suits(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    link = tmp_path / "python3.11"
    link.symlink_to(sys.executable)
    assert fastest_python(str(link)) == str(link)
    assert fastest_python(str(old)) == sys.executable, "too old, or without the modules that make environments"
    assert fastest_python(str(tmp_path / "none")) == sys.executable
