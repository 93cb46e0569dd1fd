"""HTTP models of what pages need to know before somebody has signed in."""

from pydantic import Field

from app.api.schemas import Locale
from app.api.validation import Identifier, Instant, Request, Response
from app.users.models import Role


class DemoPersonJson(Response):
    id: int
    role: Role
    name: str
    institution_id: int | None
    distance_m: float | None = Field(description="From Ayşe's home; null for coordinators and admins.")
    reserved: bool = Field(description="True if `demo --live` does nothing in the name of this person.")


class DemoPeopleJson(Response):
    items: list[DemoPersonJson]


class DemoSignInBody(Request):
    user_id: Identifier


class DemoTokenJson(Response):
    token: str
    expires_at: Instant


class PageSettingsJson(Response):
    demo_sign_in: bool = Field(description="True if `POST /demo/sign-in` gives out tokens.")
    sign_in_page: str | None = Field(description="Where people sign in who do not use the demo.")
    tile_address: str | None = Field(
        description="Address of map tiles, with `{z}`, `{x}` and `{y}`; null for no tiles."
    )
    tile_attribution: str | None = Field(description="Whom the map names as the source of its tiles; plain text.")
    vapid_public_key: str | None = Field(
        description="The `applicationServerKey` of pushes to browsers; null if they get none."
    )
    helpline: str | None = Field(description="The phone number of a person, for whoever gets no further.")
    locale: Locale = Field(description="The language before somebody has signed in or chosen one.")
