// Gives a list to the service as its institution would: a ZIP archive. The next run takes it.

import { Button, Dialog, messageOf, tell } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { SelectField } from "../../form_parts.js";
import { LabelledInput } from "../parts.js";

const KINDS = ["students", "elders"];
const LISTS = ["enrolment", "clearance"];
const TAKES_MS = 300_000;

export function UploadDialog({ onClose }) {
  const { api, router } = useConsole();
  const [kind, setKind] = useState(KINDS[0]);
  const [list, setList] = useState(LISTS[0]);
  const [file, setFile] = useState(null);
  const [wrong, setWrong] = useState(null);
  const send = async () => {
    if (!file) return setWrong(word("required"));
    try {
      await api.pushList(kind, list, file, { timeoutMs: TAKES_MS });
    } catch (error) {
      return setWrong(messageOf(error));
    }
    onClose();
    tell(word("done_upload"), "good", { label: word("runLists"), run: () => router.go("jobs/new/roster_sync") });
  };
  const kinds = KINDS.map((value) => ({ value, text: word(`kind_${value}`) }));
  const lists = LISTS.map((value) => ({ value, text: word(`list_${value}`) }));
  return html`<${Dialog} title=${word("uploadList")} onClose=${onClose}>
    <${SelectField} label=${word("column_kind")} value=${kind} options=${kinds} onSelect=${setKind} />
    <${SelectField} label=${word("listName")} value=${list} options=${lists} onSelect=${setList} />
    <${LabelledInput}
      label=${word("listFile")}
      hint=${word("listFileHint")}
      wrong=${wrong}
      type="file"
      accept=".zip,application/zip"
      onChange=${(event) => setFile(event.target.files[0] ?? null)}
    />
    <div class="row">
      <${Button} kind="main" onClick=${send}>${word("uploadList")}<//>
      <${Button} onClick=${onClose}>${word("cancel")}<//>
    </div>
  <//>`;
}
