// Changes the text of a template in one language, and shows beside it how it will be read before it is saved.

import { Badge, Button, messageOf, tell } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { LabelledArea, LabelledInput } from "../parts.js";
import { wrongOf } from "../wrong_fields.js";
import { TemplatePreview } from "./template_preview.js";
import { variablesOf } from "./template_texts.js";
import { usePreview } from "./use_preview.js";

// `draft` is what was typed when somebody else saved this text, and `keep` keeps it for the editor that begins anew.
export function TemplateEditor({ template, again, draft, keep }) {
  const { api } = useConsole();
  const { locale } = template;
  const [fields, setFields] = useState(draft ?? { subject: template.subject, body: template.body });
  const preview = usePreview(fields, (words) => api.previewWords(words));
  const { put, refused, forget } = usePut(template, again, () => keep(fields));
  const wrong = { ...preview.wrong, ...refused };
  const changed = Object.keys(fields).filter((name) => fields[name] !== template[name]);
  const of = (values) => Object.fromEntries(changed.map((name) => [name, values[name]]));
  const set = (name) => (event) => {
    setFields((now) => ({ ...now, [name]: event.target.value }));
    forget();
  };
  const save = () => put(of(fields), template.updatedAt, of(template));
  return html`
    <${LabelledInput}
      label=${word("subject")}
      wrong=${wrong.subject}
      lang=${locale}
      value=${fields.subject}
      onInput=${set("subject")}
    />
    <${LabelledArea}
      label=${word("body")}
      wrong=${wrong.body}
      hint=${hintOf(template)}
      lang=${locale}
      rows="5"
      value=${fields.body}
      onInput=${set("body")}
    />
    <div class="row">
      <${Button} kind="main" disabled=${!changed.length} onClick=${save}>${word("saveText")}<//>
      ${changed.length > 0 && html`<${Badge} kind="warn">${word("textUnsaved")}<//>`}
    </div>
    <${TemplatePreview} preview=${preview} locale=${locale} />
  `;
}

function usePut(template, again, keep) {
  const { api } = useConsole();
  const [refused, setRefused] = useState({});
  // `updatedAt` is the state that was seen, and `before` what undoing puts back.
  const put = async (values, updatedAt, before = null) => {
    let saved;
    try {
      saved = await api.changeTemplate(template.id, { ...values, updatedAt });
    } catch (error) {
      if (error.fields?.length) return setRefused(wrongOf(error));
      if (error.code !== "changed_meanwhile") throw error;
      if (before) keep();
      tell(word(before ? "textOvertaken" : "problem_changed_meanwhile"), "warn");
      return again();
    }
    const undo = () => put(before, saved.updatedAt).catch((error) => tell(messageOf(error), "bad"));
    tell(word("done_text"), "good", before && { label: word("undo"), run: undo });
    return again();
  };
  return { put, refused, forget: () => setRefused({}) };
}

function hintOf({ subject, body }) {
  const names = variablesOf(subject, body);
  return names.length ? word("variablesHint", { names: names.map((name) => `{{ ${name} }}`).join(" ") }) : null;
}
