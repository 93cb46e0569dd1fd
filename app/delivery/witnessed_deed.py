"""Writes what a coordinator, an admin or an operator does to the audit trail, in the transaction that does it.

Triggers of the database note the rows that change while a transaction has an author, with their values before and
after; see migration 0014. Here the notes of one transaction become one entry. It joins the chain at once and not
through a queue, because whoever can write to the database could change a queue before it is chained. So the deeds of
coordinators commit one after the other; they are rare, and only the last two statements and the commit wait.
"""

import json
from collections.abc import Mapping

from sqlalchemy import Connection, text

from app.delivery.channels import audit_trail
from app.delivery.messages.values import Notification, Priority
from app.foundation.ids import uuid7

OPERATOR = "operator"

_BEGIN = text("SELECT set_config('yaninda.author', :author, true), set_config('yaninda.changes', '', true)")
# Nothing that the entry itself writes is noted.
_END = text(
    "SELECT current_setting('yaninda.changes') AS changes, clock_timestamp() AS now,"
    " set_config('yaninda.author', '', true)"
)


class WitnessedDeed:
    def __init__(
        self,
        author: str,
        about: str,
        what: str,
        summary: str,
        details: Mapping[str, object],
        *,
        only_changes: bool = False,
    ) -> None:
        """`about` is the path with its ids; it holds no personal data. `what` is the name of the route or command. With
        `only_changes`, a deed that changes nothing leaves no entry."""
        self.author = author
        self.is_recorded = only_changes
        self._about, self._what, self._summary, self._details = about, what, summary, details
        self._has_entry = False

    def begin(self, conn: Connection) -> None:
        self._has_entry = False
        conn.execute(_BEGIN, {"author": self.author})

    def end(self, conn: Connection) -> None:
        """The first transaction of a request leaves an entry in any case, a later one only if it changes something."""
        noted = conn.execute(_END).one()
        changes = json.loads(f"[{noted.changes}]")
        if not changes and self.is_recorded:
            return
        metadata = {**self._details, "changes": changes}
        entry = Notification(
            uuid7(), "AUDIT", self._about, self._what, self._summary, Priority.NORMAL, noted.now, metadata
        )
        audit_trail.append(conn, [entry])
        self._has_entry = True

    def committed(self) -> None:
        self.is_recorded = self.is_recorded or self._has_entry
