// One parameter of a script, as the form shows it.

import { Field } from "../../../shared/ui.js";
import { html } from "../../../vendor/preact/preact.js";
import { LabelledInput } from "../parts.js";
import { hintOfParameter, labelOfParameter } from "./script_words.js";

const KEYBOARDS = { integer: "numeric", number: "decimal" };

export function Parameter({ script, field, value, wrong, set }) {
  const { name, kind, options } = field;
  const label = labelOfParameter(script, name);
  const hint = hintOfParameter(script, name, field.hint);
  const onText = (event) => set(event.target.value);
  if (kind === "boolean") return html`<${Switch} label=${label} value=${value} hint=${hint} set=${set} />`;
  if (kind !== "choice") {
    const more = { value, inputmode: KEYBOARDS[kind], onInput: onText };
    return html`<${LabelledInput} label=${label} wrong=${wrong} hint=${hint} ...${more} />`;
  }
  return html`<${Field} label=${label} wrong=${wrong} hint=${hint}>${(control) => html`
    <select ...${control} value=${value} onChange=${onText}>
      ${options.map((option) => html`<option key=${option} value=${option}>${option}</option>`)}
    </select>
  `}<//>`;
}

function Switch({ label, value, hint, set }) {
  return html`<div>
    <label class="row choice">
      <input type="checkbox" checked=${value} onChange=${(event) => set(event.target.checked)} /> ${label}
    </label>
    <p class="soft small">${hint}</p>
  </div>`;
}
