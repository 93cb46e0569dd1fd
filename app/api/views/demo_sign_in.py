"""Sign-in as people of the demo neighbourhood, for pages of a copy that somebody tries on their own machine."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

from app.api.access import ANYONE
from app.api.errors import RouteUnknown
from app.api.routing import Call, Routes
from app.api.schemas_demo import DemoPeopleJson, DemoPersonJson, DemoSignInBody, DemoTokenJson
from app.api.tokens import LocalTokens
from app.users import service as users
from app.users.contract import UserNotFound

routes = Routes("Demo")


@routes.add("GET", "/demo/people", who=ANYONE, answers={200: DemoPeopleJson}, errors=(RouteUnknown,))
def list_demo_people(call: Call) -> DemoPeopleJson:
    """List the people of the demo neighbourhood, whom anybody may sign in as.

    Only where the settings are AUTH_MODE=local and DEMO_SIGN_IN=true, and not by a name of the public DNS; 404
    everywhere else.
    """
    _signing_key(call)
    with call.services.db.reading() as conn:
        people = users.list_demo_people(conn)
    return DemoPeopleJson(items=[DemoPersonJson.model_validate(person) for person in people])


@routes.add("POST", "/demo/sign-in", who=ANYONE, answers={200: DemoTokenJson}, errors=(RouteUnknown, UserNotFound))
def sign_in_as_demo_person(call: Call, body: DemoSignInBody) -> DemoTokenJson:
    """Get a token of a demo person.

    Only for people whom the command `demo` has created, only where the settings are AUTH_MODE=local and
    DEMO_SIGN_IN=true, and not by a name of the public DNS; 404 everywhere else.
    """
    key = _signing_key(call)
    with call.services.db.reading() as conn:
        person = users.find_demo_person(conn, body.user_id)
    if person is None:
        raise UserNotFound("There is no demo person with this id.")
    return DemoTokenJson.model_validate(LocalTokens(key).issue_with_end(person.id))


def _signing_key(call: Call) -> str:
    settings = call.services.settings
    if not settings.signs_in_demo_people or settings.auth_secret is None or not _is_named_here(call.headers):
        raise RouteUnknown("There is nothing at this path.")
    return settings.auth_secret


def _is_named_here(headers: Headers) -> bool:
    """A page from elsewhere may let its own name lead to this machine (DNS rebinding), and would read the tokens. It
    cannot do so with an IP address, or with a name that only this machine or its network knows."""
    try:
        name = (urlsplit(f"//{headers.get('Host', '')}").hostname or "").removesuffix(".")
    except ValueError:
        return False
    return "." not in name or name.endswith((".localhost", ".local", ".internal")) or _is_ip_address(name)


def _is_ip_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
