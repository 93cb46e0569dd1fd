// One job in full. While it waits or runs it is read again every few seconds: there are no events about jobs.

import { dateAndTime } from "../../../shared/format.js";
import { Badge, Button, Confirm, Read, messageOf, tell, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useEffect, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { saveFile } from "../files.js";
import { Back, Facts, readableName } from "../parts.js";
import { JobProgress } from "./job_progress.js";
import { isOpen, kindOfStatus } from "./statuses.js";

const READ_EVERY_MS = 2_000;
const BYTES_PER_KB = 1024;

export function Job({ id }) {
  const { api } = useConsole();
  const job = useRead(() => api.getJob(id), [id]);
  useEffect(() => {
    if (!job.value || !isOpen(job.value)) return undefined;
    const timer = setTimeout(job.again, READ_EVERY_MS);
    return () => clearTimeout(timer);
  }, [job.value, job.error]);
  return html`<section class="view">
    <${Back} to="jobs" />
    <${Read} of=${job}>${(found) => html`<${Found} job=${found} again=${job.again} />`}<//>
  </section>`;
}

function Found({ job, again }) {
  return html`
    <div class="row apart">
      <h1>${readableName(job.name)}</h1>
      <span role="status"><${Badge} kind=${kindOfStatus(job.status)}>${word(`job_${job.status}`)}<//></span>
    </div>
    ${isOpen(job) && html`<div class="row"><${JobProgress} job=${job} /><${CancelJob} job=${job} again=${again} /></div>`}
    ${job.error && html`<p class="notice bad" lang="en">${job.error}</p>`}
    <${Facts} of=${[
      [word("origin"), word(`origin_${job.origin}`)],
      [word("requestedAt"), dateAndTime(job.createdAt)],
      [word("startedAt"), job.startedAt && dateAndTime(job.startedAt)],
      [word("finishedAt"), job.finishedAt && dateAndTime(job.finishedAt)],
      [word("triesOfMost"), `${job.tries} / ${job.maxRetries + 1}`],
      ...Object.entries(job.params).map(([name, value]) => [readableName(name), typeof value === "string" ? value : JSON.stringify(value)]),
    ]} />
    ${job.artifacts.length > 0 && html`<section class="stack"><h2>${word("artifacts")}</h2><div class="row">${job.artifacts.map((one) => html`<${Artifact} key=${one.name} job=${job} artifact=${one} />`)}</div></section>`}
    ${job.result !== null && job.result !== undefined && html`<${Text} title=${word("result")} text=${JSON.stringify(job.result, null, 2)} />`}
    ${job.output && html`<${Text} title=${word("output")} text=${job.output} />`}
  `;
}

// A link cannot send the token.
function Artifact({ job, artifact }) {
  const { api } = useConsole();
  const save = async () => saveFile(artifact.name, await api.getArtifact(job.id, artifact.name, { timeoutMs: 120_000 }));
  return html`<${Button} onClick=${save}>${word("download", { name: artifact.name })} <span class="soft small numbers">${Math.ceil(artifact.size / BYTES_PER_KB)} KB</span><//>`;
}

function Text({ title, text }) {
  return html`<section class="stack"><h2>${title}</h2><pre class="output" tabindex="0" role="region" aria-label=${title}>${text}</pre></section>`;
}

function CancelJob({ job, again }) {
  const { api } = useConsole();
  const [asked, setAsked] = useState(false);
  if (job.cancelRequestedAt) return html`<span class="soft">${word("cancelRequested")}</span>`;
  const cancel = async () => {
    try {
      await api.cancelJob(job.id);
      tell(word("done_cancelJob"));
    } catch (error) {
      if (error.status !== 409 && error.status !== 404) throw error;
      tell(word("refused", { why: messageOf(error) }), "warn");
    }
    await again();
  };
  return html`<${Button} kind="bad" onClick=${() => setAsked(true)}>${word("cancelJob")}<//>
    ${asked && html`<${Confirm} title=${word("cancelJob")} question=${word("ask_cancelJob")} label=${word("cancelJob")} kind="bad" onConfirm=${cancel} onClose=${() => setAsked(false)} />`}`;
}
