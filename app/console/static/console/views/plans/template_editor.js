// Changes the text of a template in one language, and shows beside it how it will be read before it is saved.

import { Badge, Button, Field, messageOf, tell } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { LabelledInput } from "../parts.js";
import { wrongOf } from "../wrong_fields.js";
import { TemplatePreview } from "./template_preview.js";
import { variablesOf } from "./template_texts.js";
import { usePreview } from "./use_preview.js";

export function TemplateEditor({ template, again }) {
  const { api } = useConsole();
  const { locale } = template;
  const [fields, setFields] = useState({ subject: template.subject, body: template.body });
  const preview = usePreview(fields, (words) => api.previewWords(words));
  const { put, refused, forget } = usePut(template, again);
  const wrong = { ...preview.wrong, ...refused };
  const changed = Object.keys(fields).filter((name) => fields[name] !== template[name]);
  const of = (values) => Object.fromEntries(changed.map((name) => [name, values[name]]));
  const set = (name) => (event) => {
    setFields((now) => ({ ...now, [name]: event.target.value }));
    forget();
  };
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
    <div class="row">
      <${Button} kind="main" disabled=${!changed.length} onClick=${save}>${word("saveText")}<//>
      ${changed.length > 0 && html`<${Badge} kind="warn">${word("textUnsaved")}<//>`}
    </div>
    <${TemplatePreview} preview=${preview} locale=${locale} />
  `;
}

function usePut(template, again) {
  const { api } = useConsole();
  const [refused, setRefused] = useState({});
  const put = async (values, action) => {
    try {
      await api.changeTemplate(template.id, values);
    } catch (error) {
      if (!error.fields?.length) throw error;
      return setRefused(wrongOf(error));
    }
    tell(word("done_text"), "good", action);
    await again();
  };
  return { put, refused, forget: () => setRefused({}) };
}

function hintOf({ subject, body }) {
  const names = variablesOf(subject, body);
  return names.length ? word("variablesHint", { names: names.map((name) => `{{ ${name} }}`).join(" ") }) : null;
}
