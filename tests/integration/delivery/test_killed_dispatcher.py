"""A dispatcher is killed between any two of its statements. The next one shows each claimed push exactly once."""

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
def test_killed_dispatcher_loses_no_push_and_shows_none_twice(services: Services, place: str) -> None:
    person = add_user(services.db, "phone", "tablet")
    for turn, passage in enumerate(passages(MOST), 1):
        ids = post(services.db, [person] * 3)
        died = mishaps.Step(services.settings, f"{place}=kill@{passage}", *WHAT).end().died
        with services.db.transaction() as conn:
            conn.execute(text("UPDATE notifications SET due_at = clock_timestamp() WHERE status = 'SENDING'"))
        mishaps.do(services, *WHAT)
        pushes = Counter((push.notification_id, push.device_id) for push in shown(services.db))
        assert statuses(services.db) == {"SENT": 3 * turn}
        assert all(pushes[id_, device] == 1 for id_ in ids for device in ("phone", "tablet"))
        assert len(pushes) == 6 * turn
        if not died:
            assert passage > 1, f"a dispatcher never passes {place}"
            return
    raise AssertionError(f"{MOST} passages did not reach the end of a run")
