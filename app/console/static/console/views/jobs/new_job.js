// Asks for a job, with the parameters that its script declares.

import { Button, Empty, Field, Read, messageOf, tell, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { newKey } from "../../new_key.js";
import { Back, readableName } from "../parts.js";
import { fieldsOfSchema, paramsOf, textsOf } from "./job_params.js";

export function NewJob({ name }) {
  const { api } = useConsole();
  const scripts = useRead(() => api.listScripts(), []);
  return html`<section class="view narrow">
    <${Back} to="jobs/new">${word("allScripts")}<//>
    <h1>${readableName(name)}</h1>
    <${Read} of=${scripts}>${({ items }) => {
      const script = items.find((one) => one.name === name);
      return script?.parameters ? html`<${Form} script=${script} />` : html`<${Empty}>${word("noSuchScript")}<//>`;
    }}<//>
  </section>`;
}

function Form({ script }) {
  const { api, router } = useConsole();
  const fields = fieldsOfSchema(script.parameters);
  const [texts, setTexts] = useState(() => textsOf(fields));
  const [wrong, setWrong] = useState({});
  // Asked for again with the same key it is the same job, also after an answer that was lost.
  const [idempotencyKey, setKey] = useState(newKey);
  const set = (name, value) => {
    setTexts((now) => ({ ...now, [name]: value }));
    setKey(newKey());
  };
  const request = async () => {
    const { params, mistakes } = paramsOf(fields, texts);
    setWrong(Object.fromEntries(Object.entries(mistakes).map(([field, key]) => [field, word(key)])));
    if (Object.keys(mistakes).length) return;
    try {
      const job = await api.requestJob({ name: script.name, params }, { idempotencyKey });
      router.go(`jobs/${job.id}`);
    } catch (error) {
      if (error.fields?.length) setWrong(Object.fromEntries(error.fields.map(({ field, message }) => [field.replace(/^params\./, ""), message])));
      tell(word("refused", { why: messageOf(error) }), "warn");
    }
  };
  return html`
    <p lang="en">${script.summary}</p>
    ${script.description && html`<p class="soft small prose" lang="en">${script.description}</p>`}
    ${!fields.length && html`<p class="soft">${word("noParameters")}</p>`}
    ${fields.map((field) => html`<${Parameter} key=${field.name} field=${field} value=${texts[field.name]} wrong=${wrong[field.name]} set=${(value) => set(field.name, value)} />`)}
    <div><${Button} kind="main" onClick=${request}>${word("runJob")}<//></div>
  `;
}

function Parameter({ field, value, wrong, set }) {
  const { name, kind, options, hint } = field;
  if (kind === "boolean") {
    return html`<div><label class="row choice"><input type="checkbox" checked=${value} onChange=${(event) => set(event.target.checked)} /> ${readableName(name)}</label><p class="soft small" lang="en">${hint}</p></div>`;
  }
  return html`<${Field} label=${readableName(name)} wrong=${wrong} hint=${hint}>${(control) =>
    kind === "choice"
      ? html`<select ...${control} value=${value} onChange=${(event) => set(event.target.value)}>${options.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select>`
      : html`<input ...${control} value=${value} inputmode=${kind === "integer" ? "numeric" : kind === "number" ? "decimal" : undefined} onInput=${(event) => set(event.target.value)} />`}<//>`;
}
