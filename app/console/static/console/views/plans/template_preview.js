// A text, filled with values as its readers would see it.

import { Read } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html } from "../../../vendor/preact/preact.js";
import { TextField } from "../../form_parts.js";

// `preview` is what `usePreview` has.
export function TemplatePreview({ preview: { filled, wrong, names, textOf, set }, locale }) {
  const field = (name) => html`<${TextField} key=${name} label=${name} value=${textOf(name)} onText=${set(name)} />`;
  const isUnreadable = Object.keys(wrong).length > 0;
  return html`<div class="stack preview">
    <h3>${word("preview")}</h3>
    ${isUnreadable && html`<p class="soft small">${word("previewWaits")}</p>`}
    ${wrong.variables && html`<p class="wrong">${wrong.variables}</p>`}
    ${isUnreadable
      ? filled.value && html`<${Filled} words=${filled.value} locale=${locale} />`
      : html`<${Read} of=${filled}>${(words) => html`<${Filled} words=${words} locale=${locale} />`}<//>`}
    ${names.length > 0 &&
    html`<details>
      <summary class="entry-link">${word("previewValues")}</summary>
      <div class="filters">${names.map(field)}</div>
    </details>`}
  </div>`;
}

function Filled({ words: { subject, body }, locale }) {
  return html`<div class="note" lang=${locale}>${subject && html`<strong>${subject}</strong>`}<p>${body}</p></div>`;
}
