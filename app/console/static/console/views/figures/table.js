// The numbers of a figure, for those who do not see the drawing or want to read them exactly.

import { duration, number } from "../../../shared/format.js";
import { currentLocale, word } from "../../../shared/words.js";
import { html } from "../../../vendor/preact/preact.js";

export function FigureTable({ columns, rows, name }) {
  const cells = (row) => columns.map(({ key }) => html`<td key=${key}>${shown(key, row[key])}</td>`);
  return html`<div class="wide figure-table" tabindex="0" role="region" aria-label=${word("asTable")}>
    <table class="table numbers" aria-labelledby=${`figure-${name}`}>
      <thead><tr>${columns.map(({ key, label }) => html`<th key=${key} scope="col">${label}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${JSON.stringify(row)}>${cells(row)}</tr>`)}</tbody>
    </table>
  </div>`;
}

function shown(key, value) {
  if (value === null) return word("none");
  if (key === "day") return dayName(value);
  if (key.endsWith("S")) return duration(value);
  return key === "lat" || key === "lon" ? value.toFixed(4) : number(value);
}

function dayName(day) {
  const [year, month, number] = day.split("-").map(Number);
  const tag = currentLocale() === "en" ? "en-GB" : "tr-TR";
  return new Date(year, month - 1, number).toLocaleDateString(tag, { day: "numeric", month: "short", weekday: "short" });
}
