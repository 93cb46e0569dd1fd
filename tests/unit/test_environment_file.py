"""`<dir>/env`: stored settings, given settings, and how a shell reads the file."""

import socket
import stat
import subprocess
from pathlib import Path

from machine import environment, processes

from app.settings.settings import Settings


def test_given_settings_win_and_are_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "env"
    environment.write(path, {"AUTH_SECRET": "s", "PUSH": "recording"}, {"OFFER_TTL_S": "5", "PUSH": "fcm"})
    assert environment.read(path, with_given=True) == {"AUTH_SECRET": "s", "PUSH": "fcm", "OFFER_TTL_S": "5"}
    assert environment.read(path, with_given=False) == {"AUTH_SECRET": "s", "PUSH": "recording"}


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "env"
    environment.write(path, {"A": "1"}, {})
    environment.write(path, {"A": "2"}, {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_shell_reads_the_same_values(tmp_path: Path) -> None:
    path = tmp_path / "env"
    value = 'it\'s $HOME & "more" #1'
    environment.write(path, {"A": value}, {})
    printed = subprocess.run(["sh", "-c", '. "$0"; printf %s "$A"', str(path)], capture_output=True, check=True)
    assert printed.stdout.decode() == value == environment.read(path, with_given=True)["A"]


def test_lines_added_by_hand_are_read(tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.write_text("# mine\n\nexport OFFER_TTL_S=7\nLOG_LEVEL = DEBUG\nnonsense\nODD=it's\n")
    assert environment.read(path, with_given=False) == {"OFFER_TTL_S": "7", "LOG_LEVEL": "DEBUG", "ODD": "it's"}


def test_store_is_read_back_from_its_address() -> None:
    store = environment.new_store()
    assert environment.store_from(store.database_url) == store
    assert environment.store_from(store.redis_url) == store


def test_addresses_of_other_servers_are_no_private_stores() -> None:
    for url in (
        None,
        "",
        "postgresql://u:p@db.example:5432/x",
        "postgresql://127.0.0.1/x",
        "http://[",
        "x://127.0.0.1:a",
    ):
        assert environment.store_from(url) is None


def test_port_is_kept_unless_another_process_uses_it() -> None:
    store = environment.new_store()
    assert store.with_free_port() == store
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", store.port))
        taken.listen()
        moved = store.with_free_port()
    assert moved.port != store.port
    assert moved.password == store.password


def test_process_is_found_by_its_folder(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "60"], cwd=tmp_path)
    try:
        assert processes.running_in(tmp_path, "sleep") == [child.pid]
        assert processes.running_in(tmp_path, "postgres") == []
        assert processes.running_in(tmp_path.parent, "sleep") == []
    finally:
        child.kill()
        child.wait()
    assert processes.running_in(tmp_path, "sleep") == []


def test_names_of_settings_are_found_without_the_packages_of_the_service() -> None:
    assert environment.names_of_settings() == [name.upper() for name in Settings.model_fields]
