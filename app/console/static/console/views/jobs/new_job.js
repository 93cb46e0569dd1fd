// Asks for a job, with the parameters that its script declares.

import { Button, Empty, messageOf, Read, tell, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { newKey } from "../../new_key.js";
import { Back } from "../parts.js";
import { sentenceOf } from "../wrong_fields.js";
import { fieldsOfSchema, paramsOf, textsOf } from "./job_params.js";
import { Parameter } from "./parameter.js";
import { aboutScript, titleOfScript } from "./script_words.js";

export function NewJob({ name }) {
  const { api } = useConsole();
  const scripts = useRead(() => api.listScripts(), []);
  const show = ({ items }) => {
    const script = items.find((one) => one.name === name);
    return script?.parameters ? html`<${Form} script=${script} />` : html`<${Empty}>${word("noSuchScript")}<//>`;
  };
  return html`<section class="view narrow">
    <${Back} to="jobs/new">${word("allScripts")}<//>
    <h1>${titleOfScript(name)}</h1>
    <${Read} of=${scripts}>${show}<//>
  </section>`;
}

function Form({ script }) {
  const fields = fieldsOfSchema(script.parameters);
  const { summary, description, lang } = aboutScript(script);
  const { texts, wrong, set, request } = useRequest(script, fields);
  const parameter = (field) => html`<${Parameter}
    key=${field.name}
    script=${script.name}
    field=${field}
    value=${texts[field.name]}
    wrong=${wrong[field.name]}
    set=${(value) => set(field.name, value)}
  />`;
  return html`
    <p lang=${lang}>${summary}</p>
    ${description && html`<p class="soft small prose" lang=${lang}>${description}</p>`}
    ${!fields.length && html`<p class="soft">${word("noParameters")}</p>`}
    ${fields.map(parameter)}
    <div><${Button} kind="main" onClick=${request}>${word("runJob")}<//></div>
  `;
}

function useRequest(script, fields) {
  const { api, router } = useConsole();
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
    setWrong(Object.fromEntries(Object.entries(mistakes).map(([name, key]) => [name, word(key)])));
    if (Object.keys(mistakes).length) return;
    try {
      const job = await api.requestJob({ name: script.name, params }, { idempotencyKey });
      router.go(`jobs/${job.id}`);
    } catch (error) {
      if (error.fields?.length) return setWrong(wrongParams(error));
      tell(word("refused", { why: messageOf(error) }), "warn");
    }
  };
  return { texts, wrong, set, request };
}

function wrongParams(error) {
  return Object.fromEntries(
    error.fields.map(({ field, code, message }) => [field.replace(/^params\./, ""), sentenceOf(code, message)]),
  );
}
