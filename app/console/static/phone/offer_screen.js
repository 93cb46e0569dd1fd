// The offer, on the whole screen: who, how far, what for, how long, and two buttons.

import { secondsUntil, serverNow } from "../shared/clock.js";
import { durationInWords, metres } from "../shared/format.js";
import { Button } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html, useEffect, useRef } from "../vendor/preact/preact.js";
import { Announcer } from "./announcer.js";
import { Countdown } from "./countdown.js";

export function OfferScreen({ offer, onAnswer }) {
  const title = useRef(null);
  // Whoever reads by keyboard or screen reader is taken to the offer, wherever they were.
  useEffect(() => title.current.focus(), [offer.taskId]);
  const said = useRef(null);
  said.current ??= word("offerSaid", { name: offer.elderName, time: durationInWords(secondsUntil(offer.deadline, serverNow())) });
  return html`<main class="offer">
    <${Announcer} text=${said.current} />
    <h1 ref=${title} tabindex="-1">${word("offerTitle", { name: offer.elderName })}</h1>
    <${Countdown} deadline=${offer.deadline} id=${offer.taskId} />
    <div class="stack about">
      <p class="distance">${word("about", { distance: metres(offer.distanceM).replace(" ", "\u00a0") })}</p>
      ${offer.note && html`<p class="note">${offer.note}</p>`}
    </div>
    <div class="answers">
      <${Button} kind="main" onClick=${() => onAnswer("accept")}>${word("accept")}<//>
      <${Button} onClick=${() => onAnswer("reject")}>${word("reject")}<//>
    </div>
  </main>`;
}
