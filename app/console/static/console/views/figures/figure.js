// One figure: what it says, the drawing or its table, and the table as a file.

import { Button, Empty } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { csvOf, saveFile } from "../files.js";
import { Choices } from "../parts.js";
import { Plot } from "./plot.js";
import { FigureTable } from "./table.js";
import { UnmetMap } from "./unmet_map.js";

export function Figure({ figure, found }) {
  const [seen, setSeen] = useState("plot");
  const { name } = figure;
  const rows = figure.rows(found);
  const columns = figure.columns.map((key) => ({ key, label: word(`column_${key}`) }));
  const save = () => saveFile(`${name}-${found.month}.csv`, new Blob([csvOf(columns, rows)], { type: "text/csv;charset=utf-8" }));
  return html`<section class="card stack figure" aria-labelledby=${`figure-${name}`}>
    <div class="stack figure-head">
      <h2 id=${`figure-${name}`}>${word(`figure_${name}`)}</h2>
      <p class="soft small">${word(`figure_${name}_about`)}</p>
    </div>
    ${!rows.length ? html`<${Empty}>${word("figureEmpty")}<//>` : seen === "table" ? html`<${FigureTable} columns=${columns} rows=${rows} name=${name} />` : html`<${Drawing} figure=${figure} found=${found} />`}
    ${rows.length > 0 &&
    html`<div class="row apart">
      <${Choices} label=${word(`figure_${name}`)} options=${[["plot", word("asPlot")], ["table", word("asTable")]]} chosen=${seen} onChoose=${setSeen} />
      <${Button} onClick=${save} aria-label=${word("saveCsvOf", { name: word(`figure_${name}`) })}>${word("saveCsv")}<//>
    </div>`}
  </section>`;
}

function Drawing({ figure, found }) {
  const { kind, ...what } = figure.plot(found);
  if (kind === "map") return html`<${UnmetMap} cells=${what.cells} />`;
  return html`<${Plot} kind=${kind} series=${figure.series} name=${figure.name} ...${what} />`;
}
