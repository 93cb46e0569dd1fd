// How far a job has come.

import { number } from "../../../shared/format.js";
import { word } from "../../../shared/words.js";
import { html } from "../../../vendor/preact/preact.js";

export function JobProgress({ job }) {
  if (!job.progress) return html`<span class="soft small">${word("progressUnknown")}</span>`;
  const { done, total, note } = job.progress;
  return html`<span class="job-progress small">
    ${total ? html`<progress max=${total} value=${done} aria-label=${word("progress")}></progress>` : null}
    <span class="numbers">${total ? word("doneOf", { done: number(done), total: number(total) }) : number(done)}</span>
    ${note && html`<span class="soft">${note}</span>`}
  </span>`;
}
