// How a month went: how long elders waited, where nobody came, how help was shared, and who stayed silent.

import { clockTime, duration, number } from "../../shared/format.js";
import { Empty, Read, useRead } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { Figure } from "./figures/figure.js";
import { FIGURES } from "./figures/figure_list.js";
import { MonthPicker } from "./figures/month_picker.js";
import { isMonth, thisMonth } from "./figures/months.js";
import "./view_words.js";

export default function Figures({ place }) {
  const month = isMonth(place.filters.month) ? place.filters.month : thisMonth();
  return html`<section class="view">
    <div class="row apart">
      <h1>${word("view_figures")}</h1>
      <${MonthPicker} month=${month} />
    </div>
    <${Month} key=${month} month=${month} />
  </section>`;
}

function Month({ month }) {
  const { api } = useConsole();
  const figures = useRead(() => api.showFigures({ month }), []);
  const empty = html`<${Empty}>${word("monthEmpty")}<//>`;
  return html`<${Read} of=${figures}>${(found) => (isEmpty(found) ? empty : html`<${Found} found=${found} />`)}<//>`;
}

// Load counts students who are on duty now, so it is never empty.
function isEmpty({ tasks, silence }) {
  return !tasks.created && !silence.length;
}

function Found({ found }) {
  return html`
    <${Sums} found=${found} />
    <div class="figures">
      ${FIGURES.map((figure) => html`<${Figure} key=${figure.name} figure=${figure} found=${found} />`)}
    </div>
    <p class="soft small">${word("countedAt", { time: clockTime(found.computedAt) })}</p>
  `;
}

function Sums({ found: { tasks, waiting } }) {
  const sums = [
    ["created", number(tasks.created)],
    ["completed", number(tasks.completed)],
    ["timedOut", number(tasks.timedOut)],
    ["cancelled", number(tasks.cancelled)],
    ["halfAccept", shown(waiting.accept.p50S)],
    ["mostAccept", shown(waiting.accept.p90S)],
    ["halfArrive", shown(waiting.arrive.p50S)],
  ];
  const card = ([name, value]) => html`<div key=${name} class="card">
    <dt class="soft small">${word(`sum_${name}`)}</dt><dd class="numbers">${value}</dd>
  </div>`;
  return html`<dl class="sums">${sums.map(card)}</dl>`;
}

function shown(seconds) {
  return seconds === null ? "–" : duration(seconds);
}
