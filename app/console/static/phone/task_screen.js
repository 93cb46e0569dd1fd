// The task that a student has accepted: whom, where, and the next step as one large button.

import { Button, CallLink, Confirm } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html, useEffect, useRef, useState } from "../vendor/preact/preact.js";
import { WayCard } from "./way_card.js";

export function TaskScreen({ me, view, place, sharing, onDeed }) {
  const [asked, setAsked] = useState(null);
  const title = useRef(null);
  const { task, kind } = view;
  useEffect(() => title.current.focus(), [task.id, kind]);
  return html`<section class="stack task">
    <h1 ref=${title} tabindex="-1">${word(`task_${kind}`, { name: task.elder.name })}</h1>
    ${task.note && html`<p class="card note">${task.note}</p>`}
    <${CallLink} phone=${task.elder.phone} label=${word("callElder", { name: task.elder.name.split(" ")[0] })} />
    ${task.location && kind === "coming" && html`<${WayCard} to=${task.location} place=${place} sharing=${sharing} />`}
    <div class="answers">
      ${kind === "coming"
        ? html`<${Button} kind="main" onClick=${() => onDeed("start")}>${word("start")}<//>`
        : html`<${Button} kind="main" onClick=${() => setAsked("complete")}>${word("complete")}<//>`}
      <${Button} kind="bare" onClick=${() => setAsked("withdraw")}>${word("withdraw")}<//>
    </div>
    <${CallLink} phone=${me.helpline} label=${word("callCoordinator")} />
    ${asked && html`<${Ask} deed=${asked} onDeed=${onDeed} onClose=${() => setAsked(null)} />`}
  </section>`;
}

function Ask({ deed, onDeed, onClose }) {
  return html`<${Confirm}
    title=${word(`${deed}Title`)}
    question=${word(`${deed}Question`)}
    label=${word(`${deed}Yes`)}
    dismiss=${word(`${deed}No`)}
    kind=${deed === "withdraw" ? "bad" : "main"}
    onConfirm=${() => onDeed(deed)}
    onClose=${onClose}
  />`;
}
