// Changes the text of a template in one language.

import { Button, Field, messageOf, tell } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { LabelledInput } from "../parts.js";
import { variablesOf } from "./template_texts.js";

export function TemplateForm({ template, again }) {
  const { subject, body, locale } = template;
  const [fields, setFields] = useState({ subject, body });
  const { put, wrong } = usePut(template, again);
  const changed = Object.keys(fields).filter((name) => fields[name] !== template[name]);
  const set = (name) => (event) => setFields((now) => ({ ...now, [name]: event.target.value }));
  const of = (values) => Object.fromEntries(changed.map((name) => [name, values[name]]));
  const undo = () => put(of(template), null).catch((error) => tell(messageOf(error), "bad"));
  const save = () => put(of(fields), { label: word("undo"), run: undo });
  return html`
    <${LabelledInput}
      label=${word("subject")}
      wrong=${wrong.subject}
      lang=${locale}
      value=${fields.subject}
      onInput=${set("subject")}
    />
    <${Field} label=${word("body")} wrong=${wrong.body} hint=${hintOf(template)}>${(control) => html`
      <textarea ...${control} lang=${locale} rows="5" value=${fields.body} onInput=${set("body")}></textarea>
    `}<//>
    <div><${Button} kind="main" disabled=${!changed.length} onClick=${save}>${word("saveText")}<//></div>
  `;
}

function usePut(template, again) {
  const { api } = useConsole();
  const [wrong, setWrong] = useState({});
  const put = async (values, action) => {
    try {
      await api.changeTemplate(template.id, values);
    } catch (error) {
      if (!error.fields?.length) throw error;
      return setWrong(Object.fromEntries(error.fields.map(({ field, message }) => [field, message])));
    }
    tell(word("done_text"), "good", action);
    await again();
  };
  return { put, wrong };
}

function hintOf({ subject, body }) {
  const names = variablesOf(subject, body);
  return names.length ? word("variablesHint", { names: names.map((name) => `{{ ${name} }}`).join(" ") }) : null;
}
