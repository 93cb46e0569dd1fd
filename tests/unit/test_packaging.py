"""Lock files, image and compose file agree with each other and with the code."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

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
        assert "DATABASE_URL" in services[role]["environment"]


def test_compose_has_no_secret_and_asks_for_each() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    for secret in ("AUTH_SECRET", "POSTGRES_PASSWORD", "REDIS_PASSWORD"):
        assert f"${{{secret}:?" in text
    assert not re.search(r"(?:PASSWORD|SECRET)(?::|=) *(?!\$\{)\w", text)


def test_compose_configures_redis_for_expiry_events() -> None:
    command = compose()["services"]["redis"]["command"]
    assert command[command.index("--notify-keyspace-events") + 1] == "Ex"


def test_image_has_what_the_service_reads_and_is_not_root() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    ignored = (ROOT / ".dockerignore").read_text().split()
    copied = re.findall(r"^COPY (?!--from)(\S+)", dockerfile, re.MULTILINE)
    assert set(copied) == {"${LOCK}", "app", "migrations"}
    assert f"ARG LOCK={RUNTIME}" in dockerfile
    assert all(f"!{name}" in ignored for name in (RUNTIME, CLUSTER, "app", "migrations"))
    assert re.search(r"^USER (?!root|0)\w+", dockerfile, re.MULTILINE)
    assert "/readyz" in dockerfile
