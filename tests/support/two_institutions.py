"""Two institutions: everything that the world holds belongs to the first. The student who is asked is of the second."""

from typing import Any

from sqlalchemy import text

from app.api.services import Services
from app.users import service as users
from app.users.models import Role
from tests.support.world import World, settle_world

OWN, OTHER = 1, 2
STRANGER = "Deniz Kaya"
"""A student of nobody's institution, whom no task has named."""

_CLAIM_ALL = (
    "UPDATE recipient_profiles SET institution_id = :own WHERE key IS NULL",
    "UPDATE notifications SET institution_id = :own",
    "UPDATE actions SET institution_id = :own",
    "UPDATE dead_letters SET institution_id = :own",
)


def settle_two_institutions(services: Services) -> World:
    """Adds to the world: `other`, a coordinator of the other institution, and `none`, one without an institution."""
    institutions = {"elder": OWN, "coordinator": OWN, "student": OTHER, "admin": OTHER}
    world = settle_world(services, institutions=institutions)
    with services.db.transaction() as conn:
        for statement in _CLAIM_ALL:
            conn.execute(text(statement), {"own": OWN})
        for who, institution_id in (("other", OTHER), ("none", None)):
            new = users.NewUser(Role.COORDINATOR, f"Koordinatör {who}", institution_id=institution_id)
            world.ids[who] = users.create_user(conn, new).id
        world.ids["stranger"] = users.create_user(conn, users.NewUser(Role.STUDENT, STRANGER)).id
    world.ids["own"] = world.ids["coordinator"]
    return world


def secrets_of(world: World, services: Services) -> list[str]:
    """What nobody outside the first institution may read: names, numbers and ids."""
    with services.db.reading() as conn:
        elder = users.get_user(conn, world.ids["elder"])
    entries: Any = world.entries
    return [
        elder.name,
        elder.phone or "",
        str(world.task_id),
        str(world.notification_id),
        str(entries["actionId"]),
        str(entries["deadLetterId"]),
        "https://ornek.org/kanca",
        "400000011D081B70",
    ]
