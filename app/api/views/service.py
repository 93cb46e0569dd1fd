"""The service itself: liveness, readiness, metrics, documentation."""

from app.api.access import ANYONE
from app.api.identities import TokenInvalid, TokenMissing
from app.api.load import Overloaded
from app.api.routing import Call, Reply, Routes
from app.api.schemas import AliveJson, ReadyJson
from app.api.schemas_demo import PageSettingsJson
from app.ops import metrics

routes = Routes("Service")

DOCUMENT = "/openapi.json"
RENDERED = "/docs"
HTML = "text/html; charset=utf-8"


@routes.add("GET", "/healthz", who=ANYONE, answers={200: AliveJson})
def healthz(call: Call) -> AliveJson:
    """Show that the process is alive."""
    return AliveJson()


@routes.add("GET", "/readyz", who=ANYONE, answers={200: ReadyJson, 503: ReadyJson})
def readyz(call: Call) -> Reply:
    """Show whether this copy is ready for requests.

    503 if the database does not answer or its schema is not the newest. Without Redis, or while no matcher handles
    the deadlines that are due, the copy is `degraded` and answers 200, because presses and answers still work.
    """
    report = call.site.readiness.look()
    return Reply(ReadyJson.of(report), 200 if report.ready else 503)


@routes.add("GET", "/page-settings.json", who=ANYONE, answers={200: PageSettingsJson})
def page_settings(call: Call) -> PageSettingsJson:
    """Show what the pages need to know before anybody has signed in."""
    settings = call.services.settings
    return PageSettingsJson(
        demo_sign_in=settings.signs_in_demo_people,
        sign_in_page=settings.sign_in_page,
        tile_address=settings.tile_address,
        tile_attribution=settings.tile_attribution,
        vapid_public_key=settings.vapid_public_key,
        helpline=settings.helpline_phone,
        locale="tr",
    )


@routes.add(
    "GET",
    "/metrics",
    who=ANYONE,
    answers={200: None},
    content_type=metrics.CONTENT_TYPE,
    errors=(TokenMissing, TokenInvalid, Overloaded),
)
def read_metrics(call: Call) -> Reply:
    """Show the metrics in Prometheus's text format, at most a second old.

    If the setting METRICS_TOKEN is set, its value is required as the bearer token; user tokens are not accepted.
    """
    given = call.headers.get("Authorization")
    if not metrics.may_read_metrics(call.services.settings.metrics_token, given):
        raise TokenInvalid("This is not the token for metrics.") if given else TokenMissing("Metrics ask for a token.")
    return Reply(call.site.metrics.text())


@routes.add("GET", DOCUMENT, who=ANYONE, answers={200: None})
def openapi(call: Call) -> Reply:
    """Show this description of the API, as OpenAPI 3.1."""
    return Reply(call.site.documents()[DOCUMENT])


@routes.add("GET", RENDERED, who=ANYONE, answers={200: None}, content_type=HTML)
def docs(call: Call) -> Reply:
    """Show this description of the API as a page to read."""
    return Reply(call.site.documents()[RENDERED], headers={"Content-Security-Policy": DOCS_POLICY})


DOCS_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
