// Calls for help for an elder who has telephoned.

import { phoneNumber } from "../shared/format.js";
import { Button, Dialog, messageOf, Read, tell, useRead } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html, useState } from "../vendor/preact/preact.js";
import { useConsole } from "./context.js";
import { useDelayed } from "./delayed.js";
import { SearchField, TextField } from "./form_parts.js";
import { FoundPeople } from "./found_people.js";
import { newKey } from "./new_key.js";

const SHOWN = 20;
const LONGEST_NOTE = 500;

export default function PressDialog({ onClose }) {
  const [elder, setElder] = useState(null);
  return html`<${Dialog} title=${word("pressTitle")} onClose=${onClose}>
    ${elder
      ? html`<${Press} elder=${elder} onBack=${() => setElder(null)} onClose=${onClose} />`
      : html`<${ChooseElder} onChoose=${setElder} onClose=${onClose} />`}
  <//>`;
}

function ChooseElder({ onChoose, onClose }) {
  const { api } = useConsole();
  const [search, setSearch] = useState("");
  const wanted = useDelayed(search.trim());
  const row = (elder) => html`<${Elder} key=${elder.id} elder=${elder} onChoose=${onChoose} onClose=${onClose} />`;
  const elders = useRead(() => api.listElders({ search: wanted || undefined, limit: SHOWN }), [wanted]);
  return html`
    <${SearchField} label=${word("searchElder")} hint=${word("searchElderHint")} value=${search} onSearch=${setSearch} autofocus />
    <${Read} of=${elders}>${({ items }) => html`<${FoundPeople} items=${items} row=${row} />`}<//>
  `;
}

function Elder({ elder, onChoose, onClose }) {
  const { router } = useConsole();
  const { name, phone, openTaskId } = elder;
  return html`<li class="candidate">
    <div><strong>${name}</strong> <span class="soft small numbers">${phone ? phoneNumber(phone) : word("noPhone")}</span></div>
    ${openTaskId
      ? html`<a class="button" href=${router.address(`requests/${openTaskId}`)} onClick=${onClose}>${word("openRequestOf")}</a>`
      : html`<${Button} aria-label=${word("chooseElder", { name })} onClick=${() => onChoose(elder)}>${word("choose")}<//>`}
  </li>`;
}

function Press({ elder, onBack, onClose }) {
  const { api, live, router } = useConsole();
  const [note, setNote] = useState("");
  // Repeated with the same key it is the same request, also after an answer that was lost.
  const [idempotencyKey] = useState(newKey);
  const press = async () => {
    try {
      const task = await api.createTask({ elderId: elder.id, note: note.trim() || null }, { idempotencyKey });
      live.refresh(task.id);
      onClose();
      router.go(`requests/${task.id}`);
    } catch (error) {
      tell(word("refused", { why: messageOf(error) }), "warn");
    }
  };
  return html`
    <p><strong>${elder.name}</strong></p>
    <${TextField}
      label=${word("noteOfPress")}
      hint=${word("noteOfPressHint")}
      as="textarea"
      rows="3"
      maxlength=${LONGEST_NOTE}
      value=${note}
      onText=${setNote}
      autofocus
    />
    <div class="row">
      <${Button} kind="main" onClick=${press}>${word("press")}<//>
      <${Button} onClick=${onBack}>${word("otherElder")}<//>
    </div>
  `;
}
