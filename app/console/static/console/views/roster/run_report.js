// The report of one run.

import { number } from "../../../shared/format.js";
import { word } from "../../../shared/words.js";
import { html } from "../../../vendor/preact/preact.js";
import { wordOfCode } from "../parts.js";
import { badRowsOf, kindsOf } from "./report_lines.js";

const COLUMNS = ["rows", "added", "modified", "removed", "heldBack"];
const SHOWN_ROWS = 20;

export function RunReport({ report }) {
  const kinds = kindsOf(report);
  return html`
    ${report.reason && html`<p class="notice warn" lang="en">${report.reason}</p>`}
    ${Object.entries(report.refused ?? {}).map(([source, why]) => html`<p key=${source} class="notice bad">${source}: <span lang="en">${Object.values(why).join(" ")}</span></p>`)}
    ${kinds.length > 0 &&
    html`<div class="wide" tabindex="0" role="region" aria-label=${word("runReport")}>
      <table class="table numbers">
        <thead><tr><th scope="col">${word("column_kind")}</th>${COLUMNS.map((column) => html`<th key=${column} scope="col">${word(`column_${column}`)}</th>`)}</tr></thead>
        <tbody>${kinds.map((one) => html`<tr key=${one.kind}><th scope="row">${wordOfCode("kind", one.kind)}</th>${COLUMNS.map((column) => html`<td key=${column}>${number(one[column])}</td>`)}</tr>`)}</tbody>
      </table>
    </div>`}
    ${report.unchanged?.length > 0 && html`<p class="soft small">${word("listsUnchanged", { kinds: report.unchanged.map((kind) => wordOfCode("kind", kind)).join(", ") })}</p>`}
    ${badRowsOf(report).map((list) => html`<${BadRows} key=${list.name} list=${list} />`)}
  `;
}

function BadRows({ list }) {
  return html`<details><summary class="entry-link">${word("badRows", { list: list.name, count: list.bad })}</summary>
    <ul class="small">${list.rows.slice(0, SHOWN_ROWS).map((row) => html`<li>${Object.values(row).join(" · ")}</li>`)}</ul>
  </details>`;
}
