"""Elders whom their municipalities serve."""

from app.roster.kinds.kind import ColumnType, Kind, ListColumn
from app.roster.kinds.people_lists import HASHED, people_lists
from app.users.models import Role

KIND = Kind(
    name="elders",
    document_type=4,
    source=people_lists(
        "elders",
        record="elder",
        more_columns=(ListColumn("home", "home", ColumnType.PLACE),),
        more_headers={"home": ("lat", "lon", "enlem", "boylam")},
        more_elements={"home": "lat lon"},
    ),
    hashed=(*HASHED, "home"),
    role=Role.ELDER,
)
