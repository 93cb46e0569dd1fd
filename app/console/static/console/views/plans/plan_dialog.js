// The name and the description of a plan.

import { Button, Dialog, tell } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { LabelledArea, LabelledInput } from "../parts.js";
import { changedValues } from "./step_fields.js";
import { orReadAgain, useSaving } from "./use_saving.js";

// Without `plan` it is a new one, and `onMade` is called with it.
export function PlanDialog({ plan = null, again = async () => {}, onMade, onClose }) {
  const { api } = useConsole();
  const before = { name: plan?.name ?? "", description: plan?.description ?? "" };
  const [fields, setFields] = useState(before);
  const { save, wrong } = useSaving({ again, onClose });
  const set = (name) => (event) => setFields((now) => ({ ...now, [name]: event.target.value }));
  const put = async () => {
    if (!plan) return onMade(await api.createActionPlan({ ...fields, status: false }));
    const changes = changedValues(fields, before);
    if (!Object.keys(changes).length) return;
    const saved = await api.changeActionPlan(plan.id, { ...changes, updatedAt: plan.updatedAt });
    const back = Object.fromEntries(Object.keys(changes).map((name) => [name, before[name]]));
    const undo = () => orReadAgain(again, () => api.changeActionPlan(plan.id, { ...back, updatedAt: saved.updatedAt }));
    tell(word("done_planSaved", { name: saved.name }), "good", { label: word("undo"), run: undo });
  };
  return html`<${Dialog} title=${word(plan ? "changePlan" : "addPlan")} onClose=${onClose}>
    <${LabelledInput} label=${word("planName")} wrong=${wrong.name} value=${fields.name} onInput=${set("name")} autofocus />
    <${LabelledArea}
      label=${word("planDescription")}
      wrong=${wrong.description}
      rows="3"
      value=${fields.description}
      onInput=${set("description")}
    />
    ${!plan && html`<p class="soft small">${word("newPlanIsOff")}</p>`}
    <div class="row">
      <${Button} kind="main" onClick=${() => save(put)}>${word("save")}<//>
      <${Button} onClick=${onClose}>${word("cancel")}<//>
    </div>
  <//>`;
}
