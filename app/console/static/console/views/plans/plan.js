// One plan with its steps, in the order in which they run. Admins change it; coordinators read it.

import { Badge, Button, Empty, Read, tell, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { AskFirst, Back } from "../parts.js";
import { PlanDialog } from "./plan_dialog.js";
import { Step } from "./step.js";
import { StepDialog } from "./step_dialog.js";
import { orderOfNew } from "./step_fields.js";
import { orReadAgain } from "./use_saving.js";

export function Plan({ id }) {
  const { api } = useConsole();
  const plan = useRead(async () => {
    const [found, { items }] = await Promise.all([api.getActionPlan(id), api.listSteps(id)]);
    return { ...found, steps: items };
  }, [id]);
  return html`<section class="view">
    <${Back} to="plans" />
    <${Read} of=${plan}>${(found) => html`<${Found} plan=${found} again=${plan.again} />`}<//>
  </section>`;
}

function Found({ plan, again }) {
  const { me } = useConsole();
  const isEditable = me.role === "ADMIN" && !plan.retiredAt;
  const step = (one) => html`<${Step} key=${one.id} plan=${plan} step=${one} again=${again} isEditable=${isEditable} />`;
  return html`
    <div class="row apart">
      <h1>${plan.name}</h1>
      <${Badge} kind=${plan.status ? "good" : "warn"}>${word(plan.status ? "planOn" : "planOff")}<//>
    </div>
    ${plan.description && html`<p>${plan.description}</p>`}
    ${plan.key && html`<p class="soft small">${word("planKey", { key: plan.key })}</p>`}
    ${isEditable
      ? html`<${PlanDeeds} plan=${plan} again=${again} />`
      : html`<p class="soft small">${word(plan.retiredAt ? "planRetired" : "onlyAdmins")}</p>`}
    <h2>${word("steps")}</h2>
    ${!plan.steps.length && html`<${Empty}>${word("noStep")}<//>`}
    <ol class="plain stack">${plan.steps.map(step)}</ol>
    ${isEditable && html`<${NewStep} plan=${plan} again=${again} />`}
  `;
}

function PlanDeeds({ plan, again }) {
  const { api, router } = useConsole();
  const [isChanging, setChanging] = useState(false);
  const put = (status) =>
    orReadAgain(again, async () => {
      await api.changeActionPlan(plan.id, { status });
      const undo = { label: word("undo"), run: () => put(!status) };
      tell(word(status ? "done_planOn" : "done_planOff", { name: plan.name }), "good", undo);
    });
  const retire = () =>
    orReadAgain(again, async () => {
      await api.retireActionPlan(plan.id);
      tell(word("done_planRetired", { name: plan.name }));
      router.go("plans");
    });
  const label = word(plan.status ? "switchOff" : "switchOn");
  return html`<div class="row">
    <${Button} kind=${plan.status ? "bad" : "main"} onClick=${() => put(!plan.status)}>${label}<//>
    <${Button} onClick=${() => setChanging(true)}>${word("changePlan")}<//>
    ${!plan.key &&
    html`<${AskFirst}
      label=${word("retirePlan")}
      question=${word("ask_retirePlan", { name: plan.name })}
      kind="bad"
      onConfirm=${retire}
    />`}
    ${isChanging && html`<${PlanDialog} plan=${plan} again=${again} onClose=${() => setChanging(false)} />`}
  </div>`;
}

function NewStep({ plan, again }) {
  const [isAdding, setAdding] = useState(false);
  if (!orderOfNew(plan.steps)) return null;
  return html`<div>
    <${Button} kind="main" onClick=${() => setAdding(true)}>${word("addStep")}<//>
    ${isAdding && html`<${StepDialog} plan=${plan} again=${again} onClose=${() => setAdding(false)} />`}
  </div>`;
}
