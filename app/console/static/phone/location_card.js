// Says what the student's place is used for, and what to do when the browser does not give it.

import { useStore } from "../shared/store.js";
import { Button } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html } from "../vendor/preact/preact.js";

const FAILED = ["refused", "unavailable", "unsupported"];

export function LocationCard({ store, sharing }) {
  const { state } = useStore(store);
  return html`<section class="card stack">
    <h2>${word("location")}</h2>
    <p class="soft">${word("locationAbout")}</p>
    ${FAILED.includes(state) && html`<p class="notice warn" role="status">${word(`location_${state}`)}</p>`}
    ${state === "on" && html`<p class="notice good" role="status">${word("location_on")}</p>`}
    <div class="row">
      ${state === "on"
        ? html`<${Button} onClick=${sharing.stop}>${word("locationStop")}<//>`
        : state !== "unsupported" &&
          html`<${Button} kind="main" busy=${state === "asking"} onClick=${sharing.start}>${word(FAILED.includes(state) ? "tryAgain" : "locationStart")}<//>`}
    </div>
  </section>`;
}
