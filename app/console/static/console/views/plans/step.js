// One step of a plan, and what an admin may do with it.

import { Button, tell } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { AskFirst, Facts, wordOfCode } from "../parts.js";
import { StepDialog } from "./step_dialog.js";
import { movesDown } from "./step_fields.js";
import { orReadAgain } from "./use_saving.js";

export function Step({ plan, step, again, isEditable }) {
  const { router } = useConsole();
  const toTexts = step.templateKey && router.address(`plans/templates/${step.templateKey}`);
  return html`<li class="card stack">
    <div class="row apart">
      <h3>${step.stepOrder}. ${wordOfCode("channel", step.channelType)}</h3>
      ${toTexts && html`<a class="button" href=${toTexts}>${word("texts")}</a>`}
    </div>
    <${Facts} of=${factsOf(step)} />
    ${isEditable && html`<${StepDeeds} plan=${plan} step=${step} again=${again} />`}
  </li>`;
}

function factsOf({ templateKey, withinS, fallback, audience, onFailure, mayArriveTwice }) {
  const channels = fallback.map((channel) => wordOfCode("channel", channel)).join(", ");
  return [
    [word("audience"), word(`audience_${audience}`)],
    [word("template"), templateKey ?? word("noTemplateOfStep")],
    [word("fallback"), channels && (withinS === null ? channels : word("fallbackAfter", { channels, seconds: withinS }))],
    [word("onFailure"), word(`on_failure_${onFailure}`)],
    [word("mayArriveTwice"), word(mayArriveTwice ? "yes" : "no")],
  ];
}

function StepDeeds({ plan, step, again }) {
  const { api } = useConsole();
  const [isChanging, setChanging] = useState(false);
  const { steps } = plan;
  const at = steps.findIndex(({ id }) => id === step.id);
  const number = step.stepOrder;
  const moveDown = (id) => orReadAgain(again, () => move(api, plan, id));
  const retire = () =>
    orReadAgain(again, async () => {
      await api.retireStep(plan.id, step.id);
      tell(word("done_stepRetired"));
    });
  return html`<div class="row">
    <${Button} onClick=${() => setChanging(true)} aria-label=${word("changeStep", { number })}>${word("change")}<//>
    <${Button}
      disabled=${at === 0}
      onClick=${() => moveDown(steps[at - 1].id)}
      aria-label=${word("stepUp", { number })}
    ><span aria-hidden="true">↑</span><//>
    <${Button}
      disabled=${at === steps.length - 1}
      onClick=${() => moveDown(step.id)}
      aria-label=${word("stepDown", { number })}
    ><span aria-hidden="true">↓</span><//>
    <${AskFirst}
      label=${word("retireStep")}
      question=${word("ask_retireStep", { number })}
      kind="bad"
      onConfirm=${retire}
      aria-label=${word("retireStepNumber", { number })}
    />
    ${isChanging && html`<${StepDialog} plan=${plan} step=${step} again=${again} onClose=${() => setChanging(false)} />`}
  </div>`;
}

// Moving a step up is moving the one above it down.
async function move(api, plan, id) {
  const moves = movesDown(plan.steps, id);
  if (!moves) return tell(word("noRoomToMove"), "warn");
  for (const { id: moved, stepOrder } of moves) await api.changeStep(plan.id, moved, { stepOrder });
  return tell(word("done_stepMoved"));
}
