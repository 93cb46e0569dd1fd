// Who was asked for a request, and who was skipped and why.

import { useTick } from "../../shared/store.js";
import { Badge } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html } from "../../vendor/preact/preact.js";
import { progress } from "../request_words.js";
import { kindOfOffer, offerInWords, standing } from "./reasons.js";

export function AskedList({ offers, task }) {
  useTick(1000);
  const asked = offers.filter(({ state }) => state !== "SKIPPED");
  const skipped = offers.filter(({ state }) => state === "SKIPPED");
  return html`<section class="stack">
    <h2>${word("whoWasAsked")} <span class="soft numbers">${progress(task)}</span></h2>
    ${asked.length ? html`<ol class="plain offers">${asked.map(row)}</ol>` : html`<p class="soft">${word("nobodyAskedYet")}</p>`}
    ${skipped.length > 0 && html`<h2>${word("whoWasSkipped")}</h2>`}
    ${skipped.length > 0 && html`<ul class="plain offers">${skipped.map(row)}</ul>`}
  </section>`;
}

function row(offer) {
  return html`<li key=${offer.studentId} class="offer">
    <span>
      <strong>${offer.studentName}</strong>${" "}
      <${Badge} kind=${`numbers ${kindOfOffer(offer.state)}`}>${offerInWords(offer)}<//>
    </span>
    <span class="soft small">${standing(offer)}</span>
  </li>`;
}
