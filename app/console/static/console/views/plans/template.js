// The texts of one template in both languages. The service fills what is stored, so the preview follows each change that
// is saved, and what was saved can be taken back.

import { Button, Empty, Field, Read, messageOf, tell, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { Back } from "../parts.js";
import { TemplatePreview } from "./template_preview.js";
import { variablesOf } from "./template_texts.js";

const LOCALES = ["tr", "en"];

export function Template({ templateKey }) {
  const { api, me } = useConsole();
  const templates = useRead(() => api.listTemplates({ key: templateKey, limit: LOCALES.length }), [templateKey]);
  return html`<section class="view">
    <${Back} to="plans/templates" />
    <h1>${templateKey}</h1>
    ${me.role !== "ADMIN" && html`<p class="soft small">${word("onlyAdmins")}</p>`}
    <${Read} of=${templates}>${({ items }) =>
      items.length ? html`<div class="texts">${LOCALES.map((locale) => items.find((one) => one.locale === locale)).filter(Boolean).map((one) => html`<${Text} key=${one.id} template=${one} again=${templates.again} />`)}</div>` : html`<${Empty}>${word("noTemplate")}<//>`}<//>
  </section>`;
}

function Text({ template, again }) {
  const { me } = useConsole();
  return html`<section class="card stack" aria-labelledby=${`text-${template.locale}`}>
    <h2 id=${`text-${template.locale}`}>${word(`language_${template.locale}`)}</h2>
    ${me.role === "ADMIN" ? html`<${Form} key=${template.updatedAt} template=${template} again=${again} />` : html`<${Source} template=${template} />`}
    <${TemplatePreview} key=${template.updatedAt} template=${template} />
  </section>`;
}

function Source({ template: { subject, body, locale } }) {
  return html`${subject && html`<p lang=${locale}><strong>${subject}</strong></p>`}<p lang=${locale}>${body}</p>`;
}

function Form({ template, again }) {
  const { api } = useConsole();
  const { subject, body, locale } = template;
  const [fields, setFields] = useState({ subject, body });
  const [wrong, setWrong] = useState({});
  const set = (name) => (event) => setFields((now) => ({ ...now, [name]: event.target.value }));
  const changes = Object.fromEntries(Object.entries(fields).filter(([name, value]) => value !== template[name]));
  const names = variablesOf(subject, body);
  const before = Object.fromEntries(Object.keys(changes).map((name) => [name, template[name]]));
  const put = async (values, action) => {
    try {
      await api.changeTemplate(template.id, values);
      tell(word("done_text"), "good", action);
    } catch (error) {
      if (!error.fields?.length) throw error;
      return setWrong(Object.fromEntries(error.fields.map(({ field, message }) => [field, message])));
    }
    await again();
  };
  const save = () => put(changes, { label: word("undo"), run: () => put(before, null).catch((error) => tell(messageOf(error), "bad")) });
  return html`
    <${Field} label=${word("subject")} wrong=${wrong.subject}>${(control) => html`<input ...${control} lang=${locale} value=${fields.subject} onInput=${set("subject")} />`}<//>
    <${Field} label=${word("body")} wrong=${wrong.body} hint=${names.length ? word("variablesHint", { names: names.map((name) => `{{ ${name} }}`).join(" ") }) : null}>${(control) => html`<textarea ...${control} lang=${locale} rows="5" value=${fields.body} onInput=${set("body")}></textarea>`}<//>
    <div><${Button} kind="main" disabled=${!Object.keys(changes).length} onClick=${save}>${word("saveText")}<//></div>
  `;
}
