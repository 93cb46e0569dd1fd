"""`demo --live` through the API in this process, with a clock that does not wait."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from app.api.services import Services
from app.api.tokens import LocalTokens
from app.bootstrap.api import create_app
from app.cli.live.agenda import Agenda
from app.cli.live.copy_client import CopyAnswer, CopyUnreachable
from app.cli.live.habits import Habits, StudentReply
from app.cli.live.town_life import LifeRefused, TownLife
from app.cli.run_live_demo import dwellers_of
from app.jobs import service as jobs
from app.users import service as users
from app.users.models import Role


class AppCaller:
    """As CopyClient, without a network."""

    def __init__(self, app: Any, token_of: Callable[[int], str]) -> None:
        self._app = app
        self._token_of = token_of
        self.down_for = 0
        self.called: set[int] = set()

    def call(self, user_id: int, method: str, path: str, body: Any = None) -> CopyAnswer:
        if self.down_for:
            self.down_for -= 1
            raise CopyUnreachable("it is down")
        self.called.add(user_id)
        headers = {"Authorization": f"Bearer {self._token_of(user_id)}"}
        response = self._app.test_client().open(path, method=method, json=body, headers=headers)
        return CopyAnswer(response.status_code, response.get_json(force=True) if response.data else None, 3.0)


class Town:
    """With a clock of its own: to wait is to move it."""

    def __init__(
        self,
        services: Services,
        token_of: Callable[[int], str] | None = None,
        always: StudentReply | None = None,
    ) -> None:
        with services.db.transaction() as conn:
            self.ids = jobs.settle_neighbourhood(conn, "Europe/Istanbul")
        self.said: list[str] = []
        self.now = 0.0
        self.until = 0.0
        tokens = LocalTokens(services.settings.auth_secret or "")
        self.caller = AppCaller(create_app(services), token_of or tokens.issue)
        self.agenda = Agenda(lambda: self.now, self._wait, self.said.append)
        dwellers = dwellers_of(self.ids, always)
        admin = self.ids[users.demo_key(Role.ADMIN, 1)]
        self.dwellers = dwellers.keys() | {admin}
        TownLife(dwellers, admin, self.caller, Habits(Random(7), 10, always), self.agenda, self.said.append).begin()

    def _wait(self, seconds: float) -> bool:
        self.now += seconds
        return self.now > self.until

    def live(self, seconds: float) -> str:
        self.until = self.now + seconds
        self.agenda.run()
        return "\n".join(self.said)


@pytest.fixture
def environ() -> dict[str, Any]:
    return {"tasks_per_hour": 1}


@pytest.fixture
def town(services: Services) -> Town:
    return Town(services)


def test_people_press_answer_and_help_and_survive_a_restart(town: Town) -> None:
    assert "presses the button" in town.live(1)
    town.caller.down_for = 3
    told = town.live(24)
    for deed in ("accepts.", "cannot come.", "is at the door.", "has helped.", "goes on duty.", "goes off duty."):
        assert deed in told, told
    assert told.count("The copy does not answer") == told.count("The copy answers again.") == 1
    assert "has pressed too often and waits 3 s." in told
    # Whoever tries the demo is left alone.
    assert town.caller.called <= town.dwellers


def test_students_of_the_readme_answer_only_where_an_app_is_tested(services: Services) -> None:
    town = Town(services, always=StudentReply.ACCEPT)
    ayse, ahmet = town.ids[users.demo_key(Role.ELDER, 1)], town.ids[users.demo_key(Role.STUDENT, 1)]
    pressed = town.caller.call(ayse, "POST", "/tasks", {})
    assert pressed.status == 201
    town.live(20)
    task = town.caller.call(ayse, "GET", f"/tasks/{pressed.body['id']}").body
    assert (task["status"], task["student"]["id"]) == ("COMPLETED", ahmet)
    assert "Ayşe Yılmaz presses" not in "\n".join(town.said)


def test_a_copy_with_another_secret_is_not_called_over_and_over(services: Services) -> None:
    town = Town(services, LocalTokens("x" * 40).issue)
    with pytest.raises(LifeRefused, match="token_invalid"):
        town.live(60)
