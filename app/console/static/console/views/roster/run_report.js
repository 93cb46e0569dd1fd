// The report of one run.

import { number } from "../../../shared/format.js";
import { word } from "../../../shared/words.js";
import { html } from "../../../vendor/preact/preact.js";
import { wordOfCode } from "../parts.js";
import { badRowsOf, kindsOf } from "./report_lines.js";

const COLUMNS = ["rows", "added", "modified", "removed", "heldBack"];
const SHOWN_ROWS = 20;

export function RunReport({ report }) {
  const { reason, refused = {}, unchanged = [] } = report;
  const kinds = kindsOf(report);
  const same = unchanged.map((kind) => wordOfCode("kind", kind)).join(", ");
  return html`
    ${reason && html`<p class="notice warn" lang="en">${reason}</p>`}
    ${Object.entries(refused).map(refusal)}
    ${kinds.length > 0 && html`<${Kinds} kinds=${kinds} />`}
    ${same && html`<p class="soft small">${word("listsUnchanged", { kinds: same })}</p>`}
    ${badRowsOf(report).map(badRows)}
  `;
}

function refusal([source, why]) {
  return html`<div key=${source} class="notice bad">
    <p>${listInWords(source)}: ${wordOfCode("refusal", why.code)}</p>
    <p class="small" lang="en">${why.detail}</p>
  </div>`;
}

function Kinds({ kinds }) {
  const row = (one) => html`<tr key=${one.kind}>
    <th scope="row">${wordOfCode("kind", one.kind)}</th>
    ${COLUMNS.map((column) => html`<td key=${column}>${number(one[column])}</td>`)}
  </tr>`;
  const headings = ["kind", ...COLUMNS].map((column) => html`<th key=${column} scope="col">${word(`column_${column}`)}</th>`);
  return html`<div class="wide" tabindex="0" role="region" aria-label=${word("runReport")}>
    <table class="table numbers"><thead><tr>${headings}</tr></thead><tbody>${kinds.map(row)}</tbody></table>
  </div>`;
}

// "students/enrolment" in words. A list of another source keeps its name.
function listInWords(name) {
  const [, kind, list] = /^(\w+)(?:\/(\w+))?$/.exec(name) ?? [];
  if (!kind) return name;
  const inWords = wordOfCode("kind", kind);
  return list ? word("listOfKind", { kind: inWords, list: wordOfCode("list", list) }) : inWords;
}

function badRows({ name, bad, rows }) {
  const shown = rows.slice(0, SHOWN_ROWS);
  return html`<details key=${name}>
    <summary class="entry-link">${word("badRows", { list: listInWords(name), count: bad })}</summary>
    <ul class="small">${shown.map((row) => html`<li>${badRow(row)}</li>`)}</ul>
  </details>`;
}

function badRow({ line, flaw, field }) {
  const about = wordOfCode("flaw", flaw);
  return word("badRow", { line: number(line), about: field ? `${field}: ${about}` : about });
}
