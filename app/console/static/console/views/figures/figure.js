// One figure: what it says, the drawing or its table, and the table as a file.

import { Button, Empty } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { ChoiceButtons } from "../../form_parts.js";
import { csvOf, saveFile } from "../files.js";
import { Plot } from "./plot.js";
import { FigureTable } from "./table.js";
import { UnmetMap } from "./unmet_map.js";

export function Figure({ figure, found }) {
  const [seen, setSeen] = useState("plot");
  const title = word(`figure_${figure.name}`);
  const rows = figure.rows(found);
  const columns = figure.columns.map((key) => ({ key, label: word(`column_${key}`) }));
  return html`<section class="card stack figure" aria-labelledby=${`figure-${figure.name}`}>
    <div class="stack figure-head">
      <h2 id=${`figure-${figure.name}`}>${title}</h2>
      <p class="soft small">${word(`figure_${figure.name}_about`)}</p>
    </div>
    ${!rows.length
      ? html`<${Empty}>${word("figureEmpty")}<//>`
      : seen === "table"
        ? html`<${FigureTable} columns=${columns} rows=${rows} name=${figure.name} />`
        : html`<${Drawing} figure=${figure} found=${found} />`}
    ${rows.length > 0 &&
    html`<div class="row apart">
      <${ChoiceButtons} label=${title} value=${seen} options=${looks()} onChoose=${setSeen} />
      <${SaveCsv} title=${title} file=${`${figure.name}-${found.month}.csv`} columns=${columns} rows=${rows} />
    </div>`}
  </section>`;
}

function looks() {
  return [
    { value: "plot", text: word("asPlot") },
    { value: "table", text: word("asTable") },
  ];
}

function SaveCsv({ title, file, columns, rows }) {
  const save = () => saveFile(file, new Blob([csvOf(columns, rows)], { type: "text/csv;charset=utf-8" }));
  return html`<${Button} onClick=${save} aria-label=${word("saveCsvOf", { name: title })}>${word("saveCsv")}<//>`;
}

function Drawing({ figure, found }) {
  const { kind, ...what } = figure.plot(found);
  if (kind === "map") return html`<${UnmetMap} cells=${what.cells} />`;
  return html`<${Plot} kind=${kind} series=${figure.series} name=${figure.name} ...${what} />`;
}
