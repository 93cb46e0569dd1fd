// The numbers of a figure, for those who do not see the drawing or want to read them exactly.

import { duration, number } from "../../../shared/format.js";
import { currentLocale, word } from "../../../shared/words.js";
import { html } from "../../../vendor/preact/preact.js";

export function FigureTable({ columns, rows, name }) {
  return html`<div class="wide figure-table" tabindex="0" role="region" aria-labelledby=${`figure-${name}`}>
    <table class="table numbers">
      <thead><tr>${columns.map(({ key, label }) => html`<th key=${key} scope="col">${label}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${JSON.stringify(row)}>${columns.map(({ key }) => html`<td key=${key}>${shown(key, row[key])}</td>`)}</tr>`)}</tbody>
    </table>
  </div>`;
}

function shown(key, value) {
  if (value === null) return word("none");
  if (key === "day") return dayName(value);
  if (key.endsWith("S")) return duration(value);
  return key === "lat" || key === "lon" ? value.toFixed(4) : number(value);
}

export function dayName(day) {
  const [year, month, number] = day.split("-").map(Number);
  return new Date(year, month - 1, number).toLocaleDateString(currentLocale() === "en" ? "en-GB" : "tr-TR", { day: "numeric", month: "short", weekday: "short" });
}
