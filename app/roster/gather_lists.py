"""Gets the newest file of every list of a source: downloaded, local, or pushed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from app.roster.kinds.kind import Kind, ListDeclaration, ListSource
from app.roster.lists.list_refused import ListRefused, Refusal
from app.roster.lists.pushed_lists import find_pushed
from app.roster.lists.reading_rules import ListLimits
from app.roster.sync.comparison import Step
from app.roster.sync.whole_run import Gathered, ListFile, sources_of

if TYPE_CHECKING:
    from app.roster.lists.fetch_list import Validators

PUSHED, DOWNLOADED = "pushed", "downloaded"


@dataclass(frozen=True)
class ListPlaces:
    sources: Mapping[str, Mapping[str, str]]
    """Paths and URLs by source and list, from the settings."""
    folder: Path
    limits: ListLimits
    allow_http_on_loopback: bool

    def has(self, source: ListSource) -> bool:
        """Whether any list of the source is named in the settings, or was pushed."""
        return source.name in self.sources or any(self._pushed(source, one) for one in source.lists)

    def gather(self, kinds: Sequence[Kind], step: Step) -> dict[str, Gathered]:
        """By source. A source of which one list cannot be had is refused as a whole, and the others go on."""
        return {source.name: self._source(source, step) for source in sources_of(kinds)}

    def _source(self, source: ListSource, step: Step) -> Gathered:
        files: dict[str, ListFile] = {}
        try:
            for declaration in source.lists:
                step(f"{source.name}/{declaration.name}", "fetch", 0)
                files[declaration.name] = self._list(source, declaration)
        except ListRefused as refusal:
            return refusal
        except OSError as error:
            return ListRefused(Refusal.NOT_READABLE, f"The folder of the lists cannot be used: {error.strerror}.")
        return files

    def _pushed(self, source: ListSource, declaration: ListDeclaration) -> Path | None:
        return find_pushed(self.folder / PUSHED, source.name, declaration.name)

    def _list(self, source: ListSource, declaration: ListDeclaration) -> ListFile:
        # Imported here because it loads an HTTP client, and the api, which takes pushed lists, fetches none.
        from app.roster.lists.fetch_list import fetch_list

        location = self.sources.get(source.name, {}).get(declaration.name)
        if location is None:
            pushed = self._pushed(source, declaration)
            if pushed is None:
                raise ListRefused(
                    Refusal.NOT_READABLE,
                    f"There is no list {declaration.name} of {source.name}. Name it in ROSTER_SOURCES, or push one.",
                )
            location = str(pushed)
        folder = self.folder / DOWNLOADED / source.name / declaration.name
        kept = folder / "validators.json"
        place = sha256(location.encode()).hexdigest()
        fetched = fetch_list(
            location,
            _read_validators(kept, place),
            folder,
            self.limits,
            allow_http_on_loopback=self.allow_http_on_loopback,
        )
        folder.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps({"place": place, "validators": asdict(fetched.validators)}))
        return ListFile(fetched.file, bytes.fromhex(fetched.validators.sha256))


def _read_validators(file: Path, place: str) -> "Validators | None":
    """None also after a crash in the middle of writing, and for another address, which may use the same tags: then the
    list is fetched again."""
    from app.roster.lists.fetch_list import Validators

    try:
        kept = json.loads(file.read_text())
        return Validators(**kept["validators"]) if kept["place"] == place else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
