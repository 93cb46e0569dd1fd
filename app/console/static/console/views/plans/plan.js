// One plan with its steps, in the order in which they run.

import { Badge, Button, Empty, Read, tell, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { Back, Facts, orTellRefusal, wordOfCode } from "../parts.js";

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
  return html`
    <div class="row apart">
      <h1>${plan.name}</h1>
      <${Badge} kind=${plan.status ? "good" : "warn"}>${word(plan.status ? "planOn" : "planOff")}<//>
    </div>
    ${plan.description && html`<p>${plan.description}</p>`}
    ${plan.key && html`<p class="soft small">${word("planKey", { key: plan.key })}</p>`}
    <${PlanSwitch} plan=${plan} again=${again} />
    <h2>${word("steps")}</h2>
    ${!plan.steps.length && html`<${Empty}>${word("noStep")}<//>`}
    <ol class="plain stack">${plan.steps.map((step) => html`<${Step} key=${step.id} step=${step} />`)}</ol>
  `;
}

function PlanSwitch({ plan, again }) {
  const { api, me } = useConsole();
  if (me.role !== "ADMIN") return html`<p class="soft small">${word("onlyAdmins")}</p>`;
  const put = async (status) => {
    await orTellRefusal(async () => {
      await api.changeActionPlan(plan.id, { status });
      const undo = { label: word("undo"), run: () => put(!status) };
      tell(word(status ? "done_planOn" : "done_planOff", { name: plan.name }), "good", undo);
    });
    await again();
  };
  const label = word(plan.status ? "switchOff" : "switchOn");
  return html`<div><${Button} kind=${plan.status ? "bad" : "main"} onClick=${() => put(!plan.status)}>${label}<//></div>`;
}

function Step({ step }) {
  const { router } = useConsole();
  const { templateKey, withinS } = step;
  const channels = step.fallback.map((channel) => wordOfCode("channel", channel)).join(", ");
  const facts = [
    [word("audience"), word(`audience_${step.audience}`)],
    [word("template"), templateKey ?? word("noTemplateOfStep")],
    [word("fallback"), channels && (withinS === null ? channels : word("fallbackAfter", { channels, seconds: withinS }))],
    [word("onFailure"), word(`on_failure_${step.onFailure}`)],
    [word("mayArriveTwice"), word(step.mayArriveTwice ? "yes" : "no")],
  ];
  const toTexts = templateKey && router.address(`plans/templates/${templateKey}`);
  return html`<li class="card stack">
    <div class="row apart">
      <h3>${step.stepOrder}. ${wordOfCode("channel", step.channelType)}</h3>
      ${toTexts && html`<a class="button" href=${toTexts}>${word("texts")}</a>`}
    </div>
    <${Facts} of=${facts} />
  </li>`;
}
