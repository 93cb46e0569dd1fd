// The runs that take the lists of institutions: what each changed, what it held back, and letting that pass. For admins.

import { dateAndTime } from "../../shared/format.js";
import { Badge, Button, tell } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html, useState } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { usePages } from "../pages.js";
import { AskFirst, orTellRefusal, Pages, wordOfCode } from "./parts.js";
import { isApprovable } from "./roster/report_lines.js";
import { RunReport } from "./roster/run_report.js";
import { UploadDialog } from "./roster/upload_dialog.js";
import "./view_words.js";

const PAGE = 20;
const KINDS = { SUCCEEDED: "good", PARTIAL: "warn", FAILED: "bad" };

export default function Roster() {
  const { api, router } = useConsole();
  const runs = usePages((cursor) => api.listRuns({ cursor, limit: PAGE }), []);
  const [isUploading, setUploading] = useState(false);
  const row = (run) => html`<${Run} key=${run.id} run=${run} runs=${runs.value} again=${runs.again} />`;
  return html`<section class="view">
    <div class="row apart">
      <h1>${word("view_roster")}</h1>
      <div class="row">
        <${Button} onClick=${() => setUploading(true)}>${word("uploadList")}<//>
        <a class="button main" href=${router.address("jobs/new/roster_sync")}>${word("runLists")}</a>
      </div>
    </div>
    <p class="soft">${word("rosterAbout")}</p>
    <${Pages} of=${runs} empty=${word("noRun")}>${row}<//>
    ${isUploading && html`<${UploadDialog} onClose=${() => setUploading(false)} />`}
  </section>`;
}

function Run({ run, runs, again }) {
  const { id, startedAt, status, report } = run;
  return html`<li class="card stack run">
    <div class="row apart">
      <h2>${dateAndTime(startedAt)} <span class="soft small numbers">${word("runNumber", { id })}</span></h2>
      <${Badge} kind=${KINDS[status]}>${word(`run_${status}`)}<//>
    </div>
    <${RunReport} report=${report} />
    ${isApprovable(run, runs) && html`<div><${Approve} id=${id} again=${again} /></div>`}
  </li>`;
}

function Approve({ id, again }) {
  const { api } = useConsole();
  const approve = async () => {
    await orTellRefusal(async () => {
      const { kinds } = await api.approveRun(id);
      tell(word("done_approve", { kinds: kinds.map((kind) => wordOfCode("kind", kind)).join(", ") }));
    });
    await again();
  };
  return html`<${AskFirst} label=${word("approve")} question=${word("ask_approve")} onConfirm=${approve} />`;
}
