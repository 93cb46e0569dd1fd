// The stored text, filled with values as its readers would see it.

import { Field, Read, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { useDelayed } from "../../delayed.js";
import { sampleOf, valueOf, variablesOf } from "./template_texts.js";

export function TemplatePreview({ template }) {
  const { api } = useConsole();
  const names = variablesOf(template.subject, template.body);
  const [written, setWritten] = useState(() => Object.fromEntries(names.map((name) => [name, String(sampleOf(name))])));
  const values = useDelayed(written);
  const preview = useRead(() => api.previewTemplate(template.id, { variables: Object.fromEntries(Object.entries(values).map(([name, text]) => [name, valueOf(text)])) }), [values]);
  return html`<div class="stack preview">
    <h3>${word("preview")}</h3>
    <${Read} of=${preview}>${({ subject, body }) => html`<div class="note" lang=${template.locale}>${subject && html`<strong>${subject}</strong>`}<p>${body}</p></div>`}<//>
    ${names.length > 0 &&
    html`<details><summary class="entry-link">${word("previewValues")}</summary>
      <div class="filters">${names.map((name) => html`<${Field} key=${name} label=${name}>${(control) => html`<input ...${control} value=${written[name]} onInput=${(event) => setWritten((now) => ({ ...now, [name]: event.target.value }))} />`}<//>`)}</div></details>`}
  </div>`;
}
