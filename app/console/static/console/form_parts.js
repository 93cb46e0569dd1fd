// Parts of forms that several views of the console use.

import { Button, Field } from "../shared/ui.js";
import { html } from "../vendor/preact/preact.js";

export function SearchField({ label, value, onSearch, hint = null, ...more }) {
  const onInput = (event) => onSearch(event.target.value);
  return html`<${Field} label=${label} hint=${hint}>${(control) => html`
    <input ...${control} type="search" maxlength="100" value=${value} onInput=${onInput} ...${more} />
  `}<//>`;
}

// `options` are `{ value, text }`.
export function SelectField({ label, value, options, onSelect, wrong = null }) {
  const onChange = (event) => onSelect(event.target.value);
  return html`<${Field} label=${label} wrong=${wrong}>${(control) => html`
    <select ...${control} value=${value} onChange=${onChange}>
      ${options.map((option) => html`<option key=${option.value} value=${option.value}>${option.text}</option>`)}
    </select>
  `}<//>`;
}

export function TextField({ label, value, onText, hint = null, as = "input", ...more }) {
  const onInput = (event) => onText(event.target.value);
  return html`<${Field} label=${label} hint=${hint}>${(control) => html`
    <${as} ...${control} value=${value} onInput=${onInput} ...${more} />
  `}<//>`;
}

// One of a few, all of them in sight.
export function ChoiceButtons({ label, value, options, onChoose }) {
  return html`<div class="row" role="group" aria-label=${label}>
    ${options.map(
      (option) => html`<${Button}
        key=${option.value}
        kind="choice-button"
        aria-pressed=${String(option.value === value)}
        onClick=${() => onChoose(option.value)}
      >${option.text}<//>`,
    )}
  </div>`;
}
