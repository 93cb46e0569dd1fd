"""What retention forgets of users: the phones that have not been seen for long."""

from app.db.bites import KeyType, Sweep

# An app registers its phone again when it starts.
OLD_DEVICES = Sweep(
    table="devices",
    key=KeyType.TEXT,
    order="device_id",
    identity="device_id",
    chosen="t.updated_at < :cutoff",
    since="t.updated_at",
)

OLD_USERS = {"devices": (OLD_DEVICES,)}
"""By kind."""
