// Jobs: those that ran and run, one in full, and what can be run.

import { dateAndTime } from "../../shared/format.js";
import { Badge } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { usePages } from "../pages.js";
import { Catalogue } from "./jobs/catalogue.js";
import { Job } from "./jobs/job.js";
import { JobProgress } from "./jobs/job_progress.js";
import { NewJob } from "./jobs/new_job.js";
import { STATUSES, kindOfStatus } from "./jobs/statuses.js";
import { EntryLink, FilterSelect, Pages, readableName } from "./parts.js";
import "./view_words.js";

const PAGE = 50;

export default function Jobs({ place }) {
  const [first, second] = place.parts;
  if (first === "new") return second ? html`<${NewJob} key=${second} name=${second} />` : html`<${Catalogue} />`;
  return first ? html`<${Job} key=${first} id=${first} />` : html`<${List} filters=${place.filters} />`;
}

function List({ filters }) {
  const { api, router } = useConsole();
  const { status = "", name = "" } = filters;
  const given = { status: status || undefined, name: name || undefined };
  const jobs = usePages((cursor) => api.listJobs({ ...given, cursor, limit: PAGE }), [status, name]);
  // The scripts of jobs on this page, and the chosen one, which may have none.
  const names = [...new Set([...(jobs.value ?? []).map((job) => job.name), name])].filter(Boolean).sort();
  const wordOfStatus = (one) => word(`job_${one}`);
  return html`<section class="view">
    <div class="row apart">
      <h1>${word("view_jobs")}</h1>
      <a class="button main" href=${router.address("jobs/new")}>${word("newJob")}</a>
    </div>
    <div class="filters">
      <${FilterSelect} name="status" label=${word("state")} value=${status} options=${STATUSES} wordOf=${wordOfStatus} />
      <${FilterSelect} name="name" label=${word("script")} value=${name} options=${names} wordOf=${readableName} />
    </div>
    <${Pages} of=${jobs} empty=${word(status || name ? "noJob" : "noJobYet")}>${row}<//>
  </section>`;
}

function row(job) {
  const about = `${dateAndTime(job.createdAt)} · ${word(`origin_${job.origin}`)}`;
  return html`<li key=${job.id} class="entry">
    <${EntryLink} to=${`jobs/${job.id}`} title=${readableName(job.name)} about=${about} />
    <div class="row">
      ${job.status === "RUNNING" && html`<${JobProgress} job=${job} />`}
      <${Badge} kind=${kindOfStatus(job.status)}>${word(`job_${job.status}`)}<//>
    </div>
  </li>`;
}
