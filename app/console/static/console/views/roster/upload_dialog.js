// Gives a list to the service as its institution would: a ZIP archive. The next run takes it.

import { Button, Dialog, Field, messageOf, tell } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";

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
  const select = (label, value, options, choose, wordOf) => html`<${Field} label=${label}>${(control) => html`<select ...${control} value=${value} onChange=${(event) => choose(event.target.value)}>${options.map((one) => html`<option key=${one} value=${one}>${wordOf(one)}</option>`)}</select>`}<//>`;
  return html`<${Dialog} title=${word("uploadList")} onClose=${onClose}>
    ${select(word("column_kind"), kind, KINDS, setKind, (one) => word(`kind_${one}`))}
    ${select(word("listName"), list, LISTS, setList, (one) => word(`list_${one}`))}
    <${Field} label=${word("listFile")} hint=${word("listFileHint")} wrong=${wrong}>${(control) => html`<input ...${control} type="file" accept=".zip,application/zip" onChange=${(event) => setFile(event.target.files[0] ?? null)} />`}<//>
    <div class="row"><${Button} kind="main" onClick=${send}>${word("uploadList")}<//><${Button} onClick=${onClose}>${word("cancel")}<//></div>
  <//>`;
}
