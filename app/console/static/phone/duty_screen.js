// The student's phone while there is nothing to do: on duty or not, and what the phone needs so that an offer arrives.

import { Button, CallLink } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html, useState } from "../vendor/preact/preact.js";
import { LocationCard } from "./location_card.js";
import { NotificationCard } from "./notification_card.js";

export function DutyScreen({ me, view, place, sharing, notices, onDuty, lostOffer, end, onSeen }) {
  return html`<section class="stack">
    <h1 class="unseen">${word("now")}</h1>
    ${lostOffer && html`<${Seen} text=${word(`problem_${lostOffer.reason}`)} onSeen=${() => onSeen("lostOffer")} />`}
    ${end && html`<${Seen} text=${word(end)} onSeen=${() => onSeen("ended")} />`}
    <${DutySwitch} me=${me} onDuty=${onDuty} />
    <p class="duty-about">${word(`duty_${view.kind}`)}</p>
    <${LocationCard} store=${place} sharing=${sharing} />
    <${NotificationCard} notices=${notices} />
    <${CallLink} phone=${me.helpline} label=${word("callCoordinator")} />
  </section>`;
}

function Seen({ text, onSeen }) {
  return html`<div class="notice warn apart" role="status">
    <p>${text}</p>
    <${Button} kind="bare" onClick=${onSeen}>${word("ok")}<//>
  </div>`;
}

function DutySwitch({ me, onDuty }) {
  const [busy, setBusy] = useState(false);
  const change = async () => {
    if (busy) return;
    setBusy(true);
    await onDuty(!me.onDuty);
    setBusy(false);
  };
  return html`<button type="button" role="switch" class="duty" aria-checked=${me.onDuty ? "true" : "false"} aria-busy=${busy ? "true" : undefined} onClick=${change}>
    <span class="duty-words">${word("onDuty")}</span>
    <span class="slide" aria-hidden="true"></span>
  </button>`;
}
