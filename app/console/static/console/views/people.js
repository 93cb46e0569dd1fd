// All people: searching, adding, changing, closing and opening accounts. For admins.

import { phoneNumber } from "../../shared/format.js";
import { Badge, Button, Confirm, messageOf, tell } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html, useState } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { useDelayed } from "../delayed.js";
import { usePages } from "../pages.js";
import { FilterSearch, FilterSelect, Pages } from "./parts.js";
import { PersonDialog } from "./people/person_dialog.js";
import { ROLES } from "./people/person_fields.js";
import "./view_words.js";

const PAGE = 50;

export default function People({ place }) {
  const { api, router } = useConsole();
  const { q = "", role = "", active = "" } = place.filters;
  const search = useDelayed(q.trim());
  const people = usePages((cursor) => api.listUsers({ search: search || undefined, role: role || undefined, active: active || undefined, cursor, limit: PAGE }), [search, role, active]);
  const [open, setOpen] = useState(null);
  return html`<section class="view">
    <div class="row apart">
      <h1>${word("view_people")}</h1>
      <div class="row">
        <a class="button" href=${router.address("roster")}>${word("importPeople")}</a>
        <${Button} kind="main" onClick=${() => setOpen({ person: null })}>${word("addPerson")}<//>
      </div>
    </div>
    <div class="filters">
      <${FilterSearch} label=${word("searchPerson")} value=${q} />
      <${FilterSelect} name="role" label=${word("role")} value=${role} options=${ROLES} wordOf=${(one) => word(`role_${one}`)} />
      <${FilterSelect} name="active" label=${word("account")} value=${active} options=${["true", "false"]} wordOf=${(one) => word(`active_${one}`)} />
    </div>
    <${Pages} of=${people} empty=${word("nobodyMatches")}>${(person) => html`<${Person} key=${person.id} person=${person} change=${people.change} onOpen=${() => setOpen({ person })} />`}<//>
    ${open && html`<${PersonDialog} person=${open.person} onClose=${() => setOpen(null)} onSaved=${(saved) => (open.person ? people.change((one) => (one.id === saved.id ? saved : one)) : people.again())} />`}
  </section>`;
}

function Person({ person, change, onOpen }) {
  return html`<li class="entry">
    <div class="entry-text">
      <strong>${person.name}</strong>
      <span class="soft small numbers">${[word(`role_${person.role}`), person.phone && phoneNumber(person.phone), person.institutionId && word("institutionNumber", { id: person.institutionId })].filter(Boolean).join(" · ")}</span>
    </div>
    <div class="row">
      ${!person.active && html`<${Badge} kind="warn">${word("active_false")}<//>`}
      <${Button} aria-label=${word("changePersonNamed", { name: person.name })} onClick=${onOpen}>${word("change")}<//>
      <${AccountSwitch} person=${person} change=${change} />
    </div>
  </li>`;
}

// Opening an account takes nothing from anybody, so it is not asked first.
function AccountSwitch({ person, change }) {
  const { api, me } = useConsole();
  const [asked, setAsked] = useState(false);
  const put = async (active) => {
    try {
      const saved = await api.patchUser(person.id, { active });
      change((one) => (one.id === saved.id ? saved : one));
      tell(word(active ? "done_opened" : "done_closed", { name: person.name }), "good", { label: word("undo"), run: () => put(!active) });
    } catch (error) {
      if (error.status !== 409 && error.status !== 404) throw error;
      tell(word("refused", { why: messageOf(error) }), "warn");
    }
  };
  if (person.id === me.id) return null;
  if (!person.active) return html`<${Button} aria-label=${word("openAccountOf", { name: person.name })} onClick=${() => put(true)}>${word("openAccount")}<//>`;
  return html`
    <${Button} kind="bad" aria-label=${word("closeAccountOf", { name: person.name })} onClick=${() => setAsked(true)}>${word("closeAccount")}<//>
    ${asked && html`<${Confirm} title=${word("closeAccount")} question=${word(`ask_close_${person.role}`, { name: person.name })} label=${word("closeAccount")} kind="bad" onConfirm=${() => put(false)} onClose=${() => setAsked(false)} />`}
  `;
}
