"""Lock files, image and compose file agree with each other and with the code."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from machine import postgres as postgres_settings
from machine.environment import OWNER, ROLE
from sqlalchemy import make_url

from app.cli.supervisor import ROLES

ROOT = Path(__file__).resolve().parents[2]
RUNTIME, CLUSTER, DEVELOPMENT = "requirements.lock", "requirements-cluster.lock", "requirements-dev.lock"


def pins(lock: str) -> set[str]:
    return set(re.findall(r"^[\w.-]+==[^\\\n]+", (ROOT / lock).read_text(), re.MULTILINE))


def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


@pytest.mark.parametrize("lock", [RUNTIME, CLUSTER, DEVELOPMENT])
def test_every_pin_has_a_hash_and_no_index_is_named(lock: str) -> None:
    text = (ROOT / lock).read_text()
    entries = re.split(r"\n(?=\S)", text.strip())
    assert all("--hash=sha256:" in entry for entry in entries)
    assert not re.search(r"://|--index|--find-links|file:|^#", text, re.MULTILINE)


def test_development_installs_exactly_what_production_runs() -> None:
    assert pins(RUNTIME) and pins(RUNTIME) < pins(CLUSTER) < pins(DEVELOPMENT)


def test_compose_runs_one_container_per_role_from_one_image() -> None:
    services = compose()["services"]
    own = {
        name: service
        for name, service in services.items()
        if service["image"] == "yaninda" and "profiles" not in service
    }
    assert set(own) == {*ROLES, "migrate"}
    assert all(service["command"] == [name] for name, service in own.items())


def test_compose_starts_a_cluster_only_if_it_is_asked_to_and_opens_no_port() -> None:
    cluster = {name: service for name, service in compose()["services"].items() if "profiles" in service}
    assert {name: service["command"] for name, service in cluster.items()} == {
        "jobs-scheduler": ["cluster", "scheduler"],
        "jobs-worker": ["cluster", "worker"],
    }
    for service in cluster.values():
        assert service["profiles"] == ["cluster"] and "ports" not in service
        assert service["volumes"] == [f"jobs-tls:{service['environment']['JOBS_TLS_DIR']}"]
        assert service["environment"]["JOBS_ENGINE"] == "dask://jobs-scheduler:8786"


def test_compose_starts_roles_after_healthy_stores_and_finished_migrations() -> None:
    services = compose()["services"]
    for role in ROLES:
        conditions = {name: how["condition"] for name, how in services[role]["depends_on"].items()}
        assert conditions == {
            "postgres": "service_healthy",
            "redis": "service_healthy",
            "migrate": "service_completed_successfully",
        }
    assert all("test" in services[name]["healthcheck"] for name in ("postgres", "redis", "matcher", "delivery", "jobs"))


def test_compose_asks_each_role_for_its_health_on_the_port_it_is_given() -> None:
    services = compose()["services"]
    for role in ("matcher", "delivery", "jobs"):
        port = services[role]["environment"][f"{role.upper()}_METRICS_PORT"]
        assert f":{port}/metrics" in services[role]["healthcheck"]["test"][-1]
        assert "DATABASE_URL_FILE" in services[role]["environment"]


@pytest.mark.parametrize("name", compose()["services"])
def test_container_is_closed(name: str) -> None:
    service = compose()["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"] and "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.get("privileged") and service.get("user") != "root"


def test_secrets_are_files_and_reach_only_those_who_need_them() -> None:
    document = compose()
    used: dict[str, set[str]] = {}
    for name, service in document["services"].items():
        for secret in service["secrets"]:
            used.setdefault(secret, set()).add(name)
        given = service.get("environment", {})
        secret = re.compile("PASSWORD|SECRET|(?<!PUBLIC_)KEY")
        assert not [key for key, value in given.items() if "${" in str(value) and secret.search(key)]
    assert used.keys() == document["secrets"].keys()
    assert all(how == {"file": f"./secrets/{secret}"} for secret, how in document["secrets"].items())
    assert used["migration_database_url"] == {"migrate"}
    assert used["audit_key"] == {"delivery"}
    assert used["firebase_credentials"] == used["vapid_private_key"] == {"api", "delivery"}
    assert used["owner_password"] == used["service_password"] == used["postgres_password"] == {"postgres"}


def test_every_secret_of_the_compose_file_is_made() -> None:
    """The program runs in a copy of its folder."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "scripts" / "compose" / "make-secrets"
        program.parent.mkdir(parents=True)
        shutil.copy(ROOT / "scripts/compose/make-secrets", program)
        subprocess.run([program], check=True)
        made = {path.name: path.read_text() for path in (Path(folder) / "secrets").iterdir()}
        subprocess.run([program], check=True)
        assert made == {path.name: path.read_text() for path in (Path(folder) / "secrets").iterdir()}
        assert (Path(folder) / "secrets").stat().st_mode & 0o077 == 0
    assert made.keys() == compose()["secrets"].keys()
    # The service has a role that owns nothing; only migrations have the owner's password.
    assert (
        make_url(made["database_url"]).username == ROLE and make_url(made["migration_database_url"]).username == OWNER
    )
    assert make_url(made["database_url"]).password == made["service_password"] != made["owner_password"]
    long = {name for name, value in made.items() if len(value) >= 32}
    assert long >= {"auth_secret", "audit_key", "metrics_token", "redis_password"}


def test_superuser_of_compose_is_for_nobody() -> None:
    postgres = compose()["services"]["postgres"]
    assert postgres["environment"]["POSTGRES_USER"] not in (OWNER, ROLE)
    assert "./scripts/compose/roles.sh:/docker-entrypoint-initdb.d/20-roles.sh:ro" in postgres["volumes"]
    roles = (ROOT / "scripts/compose/roles.sh").read_text()
    assert re.findall(r"CREATE ROLE (\w+) LOGIN PASSWORD", roles) == [OWNER, ROLE]
    assert "SUPERUSER" not in roles


def test_postgres_logs_no_personal_data() -> None:
    command = compose()["services"]["postgres"]["command"]
    for name in ("log_parameter_max_length", "log_error_verbosity"):
        assert f"-c{name}={postgres_settings.SETTINGS[name]}" in command
    assert postgres_settings.SETTINGS["log_parameter_max_length"] == "0"


def test_every_image_can_be_chosen_by_its_digest() -> None:
    document = compose()
    images = {name: service["image"] for name, service in document["services"].items() if service["image"] != "yaninda"}
    assert all(image.startswith(f"${{{name.upper()}_IMAGE:-") for name, image in images.items())
    assert "PYTHON_IMAGE" in document["x-app"]["build"]["args"]
    assert set(re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)) == {"${PYTHON_IMAGE}"}


def test_compose_configures_redis_for_expiry_events() -> None:
    command = compose()["services"]["redis"]["command"]
    assert command[command.index("--notify-keyspace-events") + 1] == "Ex"


def test_image_has_what_the_service_reads_and_is_not_root() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    ignored = (ROOT / ".dockerignore").read_text().split()
    copied = re.findall(r"^COPY (?!--from)(\S+)", dockerfile, re.MULTILINE)
    compiler = "scripts/machine/compile_libraries.py"
    assert set(copied) == {"${LOCK}", compiler, "app", "migrations"}
    assert f"ARG LOCK={RUNTIME}" in dockerfile
    assert all(f"!{name}" in ignored for name in (RUNTIME, CLUSTER, compiler, "app", "migrations"))
    assert re.search(r"^USER (?!root|0)\w+", dockerfile, re.MULTILINE)
    assert "/readyz" in dockerfile


def test_image_compiles_everything_at_the_level_at_which_it_runs() -> None:
    """Python takes no files of another level, and a container cannot write its own."""
    _, build, image = re.split(r"^FROM ", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    level, stdlib, ours = r"PYTHONOPTIMIZE=(\d)", "compileall -q -x", "compileall -q app migrations"
    compiles = re.search(f"{level}.*/compile_libraries.py", build, re.DOTALL)
    runs = re.search(f"{level}.*{stdlib}.*COPY app app.*COPY migrations migrations.*{ours}", image, re.DOTALL)
    assert compiles and runs and compiles[1] == runs[1]
