"""Devices whose address is the push subscription of a browser.

Revision ID: 0016
Revises: 0015
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _check_kinds("'TOKEN', 'FID', 'WEB_PUSH'")


def downgrade() -> None:
    op.execute("DELETE FROM devices WHERE address_kind = 'WEB_PUSH'")
    _check_kinds("'TOKEN', 'FID'")


def _check_kinds(kinds: str) -> None:
    op.execute("ALTER TABLE devices DROP CONSTRAINT devices_address_kind_check")
    op.execute(f"ALTER TABLE devices ADD CONSTRAINT devices_address_kind_check CHECK (address_kind IN ({kinds}))")
