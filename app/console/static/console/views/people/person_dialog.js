// Adds a person, or changes one.

import { Button, Dialog, Field, messageOf, tell } from "../../../shared/ui.js";
import { hasWord, word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { ROLES, changesOf, fieldsOf, wrongFields } from "./person_fields.js";

export function PersonDialog({ person, onClose, onSaved }) {
  const { api } = useConsole();
  const [before] = useState(() => fieldsOf(person));
  const [fields, setFields] = useState(before);
  const [wrong, setWrong] = useState({});
  const set = (name) => (event) => setFields((now) => ({ ...now, [name]: event.target.value }));
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
      if (error.fields?.length) return setWrong(wrongFields(error, (code) => (hasWord(`wrong_${code}`) ? word(`wrong_${code}`) : null)));
      tell(word("refused", { why: messageOf(error) }), "warn");
    }
  };
  const input = (name, more = {}) => html`<${Field} label=${word(`person_${name}`)} wrong=${wrong[name]} hint=${hasWord(`person_${name}_hint`) ? word(`person_${name}_hint`) : null}>${(control) => html`<input ...${control} value=${fields[name]} onInput=${set(name)} ...${more} />`}<//>`;
  const select = (name, options, wordOf) => html`<${Field} label=${word(`person_${name}`)} wrong=${wrong[name]}>${(control) => html`<select ...${control} value=${fields[name]} onChange=${set(name)}>${options.map((one) => html`<option key=${one} value=${one}>${wordOf(one)}</option>`)}</select>`}<//>`;
  return html`<${Dialog} title=${person ? word("changePersonNamed", { name: person.name }) : word("addPerson")} onClose=${onClose}>
    <div class="stack">
      ${input("name", { maxlength: 200, autofocus: true })}
      ${!person && select("role", ROLES, (role) => word(`role_${role}`))}
      ${input("phone", { type: "tel", autocomplete: "off" })}
      ${select("locale", ["tr", "en"], (locale) => word(`language_${locale}`))}
      <div class="filters">${input("lat", { inputmode: "decimal" })}${input("lon", { inputmode: "decimal" })}</div>
      <div class="filters">${input("institutionId", { inputmode: "numeric" })}${input("firebaseUid", { autocomplete: "off" })}</div>
      <div class="row">
        <${Button} kind="main" onClick=${save}>${word("save")}<//>
        <${Button} onClick=${onClose}>${word("cancel")}<//>
      </div>
    </div>
  <//>`;
}
