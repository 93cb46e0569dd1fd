// One job in full. While it waits or runs it is read again every few seconds: there are no events about jobs.

import { dateAndTime } from "../../../shared/format.js";
import { Badge, Button, Read, tell, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useEffect } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { saveFile } from "../files.js";
import { AskFirst, Back, Facts, orTellRefusal } from "../parts.js";
import { JobProgress } from "./job_progress.js";
import { labelOfParameter, titleOfScript } from "./script_words.js";
import { isOpen, kindOfStatus } from "./statuses.js";

const READ_EVERY_MS = 2_000;
const DOWNLOAD_MS = 120_000;
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
  const { name, status, error, artifacts, result, output } = job;
  const files = artifacts.map((one) => html`<${Artifact} key=${one.name} job=${job} artifact=${one} />`);
  const hasResult = result !== null && result !== undefined;
  return html`
    <div class="row apart">
      <h1>${titleOfScript(name)}</h1>
      <span role="status"><${Badge} kind=${kindOfStatus(status)}>${word(`job_${status}`)}<//></span>
    </div>
    ${isOpen(job) && html`<div class="row"><${JobProgress} job=${job} /><${CancelJob} job=${job} again=${again} /></div>`}
    ${error && html`<p class="notice bad" lang="en">${error}</p>`}
    <${Facts} of=${factsOf(job)} />
    ${files.length > 0 && html`<section class="stack"><h2>${word("artifacts")}</h2><div class="row">${files}</div></section>`}
    ${hasResult && html`<${Text} title=${word("result")} text=${JSON.stringify(result, null, 2)} />`}
    ${output && html`<${Text} title=${word("output")} text=${output} />`}
  `;
}

function factsOf({ name: script, origin, createdAt, startedAt, finishedAt, tries, maxRetries, params }) {
  const shown = (value) => (value === null || typeof value === "string" ? value : JSON.stringify(value));
  return [
    [word("origin"), word(`origin_${origin}`)],
    [word("requestedAt"), dateAndTime(createdAt)],
    [word("startedAt"), startedAt && dateAndTime(startedAt)],
    [word("finishedAt"), finishedAt && dateAndTime(finishedAt)],
    [word("triesOfMost"), `${tries} / ${maxRetries + 1}`],
    ...Object.entries(params).map(([name, value]) => [labelOfParameter(script, name), shown(value)]),
  ];
}

// A link cannot send the token.
function Artifact({ job, artifact: { name, size } }) {
  const { api } = useConsole();
  const save = async () => saveFile(name, await api.getArtifact(job.id, name, { timeoutMs: DOWNLOAD_MS }));
  return html`<${Button} onClick=${save}>
    ${word("download", { name })} <span class="soft small numbers">${Math.ceil(size / BYTES_PER_KB)} KB</span>
  <//>`;
}

function Text({ title, text }) {
  return html`<section class="stack">
    <h2>${title}</h2>
    <pre class="output" tabindex="0" role="region" aria-label=${title}>${text}</pre>
  </section>`;
}

function CancelJob({ job, again }) {
  const { api } = useConsole();
  if (job.cancelRequestedAt) return html`<span class="soft">${word("cancelRequested")}</span>`;
  const cancel = async () => {
    await orTellRefusal(async () => {
      await api.cancelJob(job.id);
      tell(word("done_cancelJob"));
    });
    await again();
  };
  return html`<${AskFirst} label=${word("cancelJob")} question=${word("ask_cancelJob")} kind="bad" onConfirm=${cancel} />`;
}
