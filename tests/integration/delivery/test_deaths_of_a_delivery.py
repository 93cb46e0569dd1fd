"""A delivery is killed between any two of its statements: what it had in hand is shown once, by whoever comes next."""

from collections import Counter

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.users.models import Caller, Role
from tests.support import mishaps
from tests.support.delivery import add_user, post, shown, statuses
from tests.support.depth import passages

PLACES = ("sql.statement", "sql.commit", "sql.committed", "delivery.claimed", "delivery.sent", "delivery.recording")
MOST = 40
NOBODY = Caller(0, Role.ADMIN, "", "tr", None)
WHAT = ("deliver", NOBODY, None, "")


@pytest.mark.parametrize("place", PLACES)
def test_a_death_between_any_two_steps_loses_no_push_and_shows_none_twice(services: Services, place: str) -> None:
    person = add_user(services.db, "phone", "tablet")
    for turn, passage in enumerate(passages(MOST), 1):
        ids = post(services.db, [person] * 3)
        died = mishaps.Step(services.settings, f"{place}=kill@{passage}", *WHAT).end().died
        with services.db.transaction() as conn:
            conn.execute(text("UPDATE notifications SET due_at = clock_timestamp() WHERE status = 'SENDING'"))
        mishaps.do(services, *WHAT)
        pushes = Counter((one.notification_id, one.device_id) for one in shown(services.db))
        assert statuses(services.db) == {"SENT": 3 * turn}
        assert all(pushes[id_, device] == 1 for id_ in ids for device in ("phone", "tablet"))
        assert len(pushes) == 6 * turn
        if not died:
            assert passage > 1, f"a delivery never passes {place}"
            return
    raise AssertionError("a delivery has fewer statements than that")
