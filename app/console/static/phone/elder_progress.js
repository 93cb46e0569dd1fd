// In the place of the large button: how far the call is. The ring is the time that the asked student has left.

import { word } from "../shared/words.js";
import { html } from "../vendor/preact/preact.js";
import { Countdown } from "./countdown.js";

const STEPS = ["searching", "coming", "here"];
const STEP_OF = { sending: 0, kept: 0, searching: 0, searchingAgain: 0, waiting: 0, asked: 0, coming: 1, here: 2 };

export function ElderProgress({ view }) {
  return html`<div class="progress">
    <div class="disc ${view.kind}">
      ${view.kind === "asked" ? html`<${Countdown} deadline=${view.task.currentOffer.deadline} id=${view.task.id + view.turn} quiet />` : html`<${Face} kind=${view.kind} />`}
    </div>
    <ol class="plain steps" aria-label=${word("steps")}>
      ${STEPS.map(
        (step, index) => html`<li key=${step} class=${index <= STEP_OF[view.kind] ? "reached" : ""} aria-current=${index === STEP_OF[view.kind] ? "step" : undefined}>
          ${word(`step_${step}`)}
        </li>`,
      )}
    </ol>
  </div>`;
}

const FACES = {
  sending: "M50 22v50M32 40l18-18 18 18",
  kept: "M22 42a42 42 0 0 1 56 0M33 54a26 26 0 0 1 34 0M50 70v.1M20 18l60 64",
  coming: "M50 16a9 9 0 1 0 .1 0M50 36l-6 22 14 12 4 16M44 58l-10 28M47 44l-13 8M51 44l13 8",
  here: "M24 52l18 18 36-40",
};

function Face({ kind }) {
  const path = FACES[kind];
  return html`<svg viewBox="0 0 100 100" aria-hidden="true" class=${path ? "face" : "face looking"}>
    ${path
      ? html`<path d=${path} />`
      : html`<circle cx="50" cy="50" r="8" /><circle cx="50" cy="50" r="24" /><circle cx="50" cy="50" r="40" />`}
  </svg>`;
}
