// Asks for notifications only when somebody wants them, and says what to do if the browser refuses.

import { useStore } from "../shared/store.js";
import { Button } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html } from "../vendor/preact/preact.js";

export function NotificationCard({ notices }) {
  const { state, pushed } = useStore(notices.store);
  if (state === "unsupported") return null;
  return html`<section class="card stack">
    <h2>${word("notices")}</h2>
    <p class="soft">${word(state === "on" && !pushed ? "notices_open" : `notices_${state}`)}</p>
    ${state === "off" && html`<div class="row"><${Button} onClick=${notices.switchOn}>${word("noticesStart")}<//></div>`}
  </section>`;
}
