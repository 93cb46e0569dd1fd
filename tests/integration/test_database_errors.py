"""Errors of the database that reach logs."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from app.db.database import Database


def test_error_of_a_statement_does_not_quote_its_values(db: Database) -> None:
    with pytest.raises(ProgrammingError) as caught, db.transaction() as conn:
        conn.execute(text("SELECT name FROM nowhere WHERE phone = :phone"), {"phone": "+905550100002"})
    assert "nowhere" in str(caught.value)
    assert "905550100002" not in str(caught.value)
