// The runs that take the lists of institutions: what each changed, what it held back, and letting that pass. For admins.

import { dateAndTime } from "../../shared/format.js";
import { Badge, Button, Confirm, messageOf, tell } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html, useState } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { usePages } from "../pages.js";
import { Pages } from "./parts.js";
import { isApprovable as canBeApproved } from "./roster/report_lines.js";
import { RunReport } from "./roster/run_report.js";
import { UploadDialog } from "./roster/upload_dialog.js";
import "./view_words.js";

const PAGE = 20;
const KINDS = { SUCCEEDED: "good", PARTIAL: "warn", FAILED: "bad" };

export default function Roster() {
  const { api, router } = useConsole();
  const runs = usePages((cursor) => api.listRuns({ cursor, limit: PAGE }), []);
  const [uploading, setUploading] = useState(false);
  return html`<section class="view">
    <div class="row apart">
      <h1>${word("view_roster")}</h1>
      <div class="row">
        <${Button} onClick=${() => setUploading(true)}>${word("uploadList")}<//>
        <a class="button main" href=${router.address("jobs/new/roster_sync")}>${word("runLists")}</a>
      </div>
    </div>
    <p class="soft">${word("rosterAbout")}</p>
    <${Pages} of=${runs} empty=${word("noRun")}>${(run) => html`<${Run} key=${run.id} run=${run} isApprovable=${canBeApproved(run, runs.value)} again=${runs.again} />`}<//>
    ${uploading && html`<${UploadDialog} onClose=${() => setUploading(false)} />`}
  </section>`;
}

function Run({ run, isApprovable, again }) {
  return html`<li class="card stack run">
    <div class="row apart">
      <h2>${dateAndTime(run.startedAt)} <span class="soft small numbers">${word("runNumber", { id: run.id })}</span></h2>
      <${Badge} kind=${KINDS[run.status]}>${word(`run_${run.status}`)}<//>
    </div>
    <${RunReport} report=${run.report} />
    ${isApprovable && html`<${Approve} run=${run} again=${again} />`}
  </li>`;
}

function Approve({ run, again }) {
  const { api } = useConsole();
  const [asked, setAsked] = useState(false);
  const approve = async () => {
    try {
      const { kinds } = await api.approveRun(run.id);
      tell(word("done_approve", { kinds: kinds.map((kind) => word(`kind_${kind}`)).join(", ") }));
    } catch (error) {
      if (error.status !== 409 && error.status !== 404) throw error;
      tell(word("refused", { why: messageOf(error) }), "warn");
    }
    await again();
  };
  return html`<div>
    <${Button} onClick=${() => setAsked(true)}>${word("approve")}<//>
    ${asked && html`<${Confirm} title=${word("approve")} question=${word("ask_approve")} label=${word("approve")} onConfirm=${approve} onClose=${() => setAsked(false)} />`}
  </div>`;
}
