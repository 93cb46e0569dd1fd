// Adds a person, or changes one.

import { Button, Dialog, messageOf, tell } from "../../../shared/ui.js";
import { hasWord, word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { SelectField } from "../../form_parts.js";
import { LabelledInput } from "../parts.js";
import { ROLES, changesOf, fieldsOf, wrongFields } from "./person_fields.js";

export function PersonDialog({ person, onClose, onSaved }) {
  const [before] = useState(() => fieldsOf(person));
  const [fields, setFields] = useState(before);
  const { save, wrong } = useSaving({ person, fields, before, onClose, onSaved });
  const set = (name, value) => setFields((now) => ({ ...now, [name]: value }));
  const input = (name, more = {}) => html`<${LabelledInput}
    label=${word(`person_${name}`)}
    wrong=${wrong[name]}
    value=${fields[name]}
    onInput=${(event) => set(name, event.target.value)}
    ...${more}
  />`;
  const select = (name, values, prefix) => html`<${SelectField}
    label=${word(`person_${name}`)}
    wrong=${wrong[name]}
    value=${fields[name]}
    options=${values.map((value) => ({ value, text: word(`${prefix}_${value}`) }))}
    onSelect=${(value) => set(name, value)}
  />`;
  const title = person ? word("changePersonNamed", { name: person.name }) : word("addPerson");
  return html`<${Dialog} title=${title} onClose=${onClose}>
    ${input("name", { maxlength: 200, autofocus: true })}
    ${!person && select("role", ROLES, "role")}
    ${input("phone", { type: "tel", autocomplete: "off", hint: word("person_phone_hint") })}
    ${select("locale", ["tr", "en"], "language")}
    <div class="filters">${input("lat", { inputmode: "decimal" })}${input("lon", { inputmode: "decimal" })}</div>
    <div class="filters">
      ${input("institutionId", { inputmode: "numeric" })}${input("firebaseUid", { autocomplete: "off" })}
    </div>
    <div class="row">
      <${Button} kind="main" onClick=${save}>${word("save")}<//>
      <${Button} onClick=${onClose}>${word("cancel")}<//>
    </div>
  <//>`;
}

function useSaving({ person, fields, before, onClose, onSaved }) {
  const { api } = useConsole();
  const [wrong, setWrong] = useState({});
  const save = async () => {
    if (!fields.name.trim()) return setWrong({ name: word("required") });
    const changes = changesOf(fields, person && before);
    if (person && !Object.keys(changes).length) return onClose();
    try {
      const saved = person ? await api.patchUser(person.id, changes) : await api.createUser(changes);
      onSaved(saved);
      onClose();
      tell(word(person ? "done_changed" : "done_added", { name: saved.name }));
    } catch (error) {
      if (error.fields?.length) return setWrong(wrongFields(error, wordOfMistake));
      tell(word("refused", { why: messageOf(error) }), "warn");
    }
  };
  return { save, wrong };
}

function wordOfMistake(code) {
  return hasWord(`wrong_${code}`) ? word(`wrong_${code}`) : null;
}
