// One step of a plan: whom it tells, by which channels, in which words, and what follows if it fails.

import { Button, Dialog, tell, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { SelectField } from "../../form_parts.js";
import { LabelledInput, wordOfCode } from "../parts.js";
import {
  AUDIENCES,
  CHANNELS,
  MOST_FALLBACKS,
  ON_FAILURE,
  changedValues,
  fieldsOfStep,
  orderOfNew,
  valuesOfStep,
} from "./step_fields.js";
import { keysOf } from "./template_texts.js";
import { orReadAgain, useSaving } from "./use_saving.js";

const MOST_TEXTS = 100;

// Without `step` it is a new one, which runs last.
export function StepDialog({ plan, step = null, again, onClose }) {
  const { api } = useConsole();
  const [fields, setFields] = useState(() => fieldsOfStep(step));
  const { save, wrong } = useSaving({ again, onClose });
  const set = (name, value) => setFields((now) => ({ ...now, [name]: value }));
  const select = (name, options, wordOf) => html`<${SelectField}
    label=${word(name)}
    wrong=${wrong[name]}
    value=${fields[name]}
    options=${options.map((value) => ({ value, text: wordOf(value) }))}
    onSelect=${(value) => set(name, value)}
  />`;
  const channels = channelsOf(plan);
  return html`<${Dialog} title=${step ? word("changeStep", { number: step.stepOrder }) : word("addStep")} onClose=${onClose}>
    ${select("channelType", channels, wordOfChannel)}
    ${select("audience", AUDIENCES, (value) => word(`audience_${value}`))}
    <${TemplateSelect} value=${fields.templateKey} wrong=${wrong.templateKey} set=${(key) => set("templateKey", key)} />
    <${Fallbacks} value=${fields.fallback} channels=${channels} wrong=${wrong} set=${(types) => set("fallback", types)} />
    <${LabelledInput}
      label=${word("withinS")}
      hint=${word("withinSHint")}
      wrong=${wrong.withinS}
      inputmode="numeric"
      value=${fields.withinS}
      onInput=${(event) => set("withinS", event.target.value)}
    />
    ${select("onFailure", ON_FAILURE, (value) => word(`on_failure_${value}`))}
    <div>
      <label class="row choice">
        <input
          type="checkbox"
          checked=${fields.mayArriveTwice}
          onChange=${(event) => set("mayArriveTwice", event.target.checked)}
        /> ${word("mayArriveTwice")}
      </label>
      <p class="soft small">${word("mayArriveTwiceHint")}</p>
    </div>
    <div class="row">
      <${Button} kind="main" onClick=${() => save(() => put(api, plan, step, fields, again))}>${word("save")}<//>
      <${Button} onClick=${onClose}>${word("cancel")}<//>
    </div>
  <//>`;
}

async function put(api, plan, step, fields, again) {
  const values = valuesOfStep(fields);
  if (!step) {
    await api.createStep(plan.id, { ...values, stepOrder: orderOfNew(plan.steps) });
    return tell(word("done_stepAdded"));
  }
  const before = valuesOfStep(fieldsOfStep(step));
  const changes = changedValues(values, before);
  if (!Object.keys(changes).length) return undefined;
  const saved = await api.changeStep(plan.id, step.id, { ...changes, updatedAt: step.updatedAt });
  const back = changedValues(before, values);
  const undo = () => orReadAgain(again, () => api.changeStep(plan.id, step.id, { ...back, updatedAt: saved.updatedAt }));
  return tell(word("done_stepChanged"), "good", { label: word("undo"), run: undo });
}

// Those of the product, and those that other services have given to steps of this plan.
function channelsOf({ steps }) {
  return [...new Set([...CHANNELS, ...steps.flatMap(({ channelType, fallback }) => [channelType, ...fallback])])];
}

function wordOfChannel(type) {
  return wordOfCode("channel", type);
}

function TemplateSelect({ value, wrong, set }) {
  const { api } = useConsole();
  const templates = useRead(() => allTemplates(api), []);
  const keys = keysOf(templates.value ?? []).map(({ key }) => key);
  const offered = !value || keys.includes(value) ? keys : [value, ...keys];
  const options = [{ value: "", text: word("noTemplateOfStep") }, ...offered.map((key) => ({ value: key, text: key }))];
  return html`<${SelectField} label=${word("template")} wrong=${wrong} value=${value} options=${options} onSelect=${set} />`;
}

async function allTemplates(api) {
  const found = [];
  let cursor;
  do {
    const page = await api.listTemplates({ limit: MOST_TEXTS, cursor });
    found.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor);
  return found;
}

// In the order in which they are tried. The last select adds one, and choosing nothing takes one out.
function Fallbacks({ value, channels, wrong, set }) {
  const options = [{ value: "", text: word("noFallback") }, ...channels.map((one) => ({ value: one, text: wordOfChannel(one) }))];
  const shown = value.length < MOST_FALLBACKS ? [...value, ""] : value;
  const choose = (at, type) => set([...value.slice(0, at), ...(type ? [type] : []), ...value.slice(at + 1)]);
  const one = (type, at) => html`<${SelectField}
    key=${at}
    label=${word("fallbackNumber", { number: at + 1 })}
    wrong=${wrong[`fallback.${at}`] ?? (at === 0 ? wrong.fallback : null)}
    value=${type}
    options=${options}
    onSelect=${(chosen) => choose(at, chosen)}
  />`;
  return html`<div class="filters">${shown.map(one)}</div>`;
}
