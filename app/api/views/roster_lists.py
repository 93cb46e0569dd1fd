"""Lists that institutions push."""

from app.api.access import PUSHERS
from app.api.errors import BadRequest
from app.api.file_upload import FileUpload
from app.api.routing import Call, Header, Routes
from app.api.schemas_roster import KeptListJson
from app.roster import service as roster
from app.roster.contract import ListRefused, RosterFolderMissing, UnknownKind, UnknownList

routes = Routes("Roster")

SHA256 = "Roster-Sha256"


class ListNotTaken(BadRequest):
    """The archive cannot be taken; `reason` and `detail` tell why."""

    code = "list_not_taken"

    def __init__(self, refusal: ListRefused) -> None:
        super().__init__(refusal.message)
        self.extra = {"reason": refusal.reason}


@routes.add(
    "PUT",
    "/api/v1/roster/{kind}/lists/{listName}",
    who=PUSHERS,
    answers={200: KeptListJson},
    headers=(Header(SHA256, "The SHA-256 of the archive in hex. If it is not that, the list is not taken.", 64),),
    errors=(UnknownKind, UnknownList, ListNotTaken, RosterFolderMissing),
)
def push_list(call: Call, kind: str, list_name: str, upload: FileUpload) -> KeptListJson:
    """Push a list as a ZIP archive.

    It is kept on disk, and the next run reads it. A list that is named in `ROSTER_SOURCES` is read from there instead.
    """
    source, declaration = roster.list_named(kind, list_name)
    try:
        kept = roster.keep_pushed_list(call.services.settings, source, declaration, upload, call.headers.get(SHA256))
    except ListRefused as refusal:
        raise ListNotTaken(refusal) from None
    return KeptListJson.model_validate(kept)
