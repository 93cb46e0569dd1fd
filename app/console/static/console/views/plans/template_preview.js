// The stored text, filled with values as its readers would see it.

import { Read, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { useDelayed } from "../../delayed.js";
import { TextField } from "../../form_parts.js";
import { sampleOf, valueOf, variablesOf } from "./template_texts.js";

export function TemplatePreview({ template }) {
  const { api } = useConsole();
  const names = variablesOf(template.subject, template.body);
  const [written, setWritten] = useState(() => Object.fromEntries(names.map((name) => [name, sampleOf(name)])));
  const values = useDelayed(written);
  const variables = Object.fromEntries(Object.entries(values).map(([name, text]) => [name, valueOf(text)]));
  const preview = useRead(() => api.previewTemplate(template.id, { variables }), [values]);
  const set = (name) => (text) => setWritten((now) => ({ ...now, [name]: text }));
  const field = (name) => html`<${TextField} key=${name} label=${name} value=${written[name]} onText=${set(name)} />`;
  return html`<div class="stack preview">
    <h3>${word("preview")}</h3>
    <${Read} of=${preview}>${(filled) => html`<${Filled} words=${filled} locale=${template.locale} />`}<//>
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
