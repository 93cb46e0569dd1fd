// All people: searching, adding, changing, closing and opening accounts. For admins.

import { phoneNumber } from "../../shared/format.js";
import { Badge, Button, tell } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html, useState } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { useDelayed } from "../delayed.js";
import { usePages } from "../pages.js";
import { AskFirst, FilterSearch, FilterSelect, orTellRefusal, Pages } from "./parts.js";
import { PersonDialog } from "./people/person_dialog.js";
import { ROLES } from "./people/person_fields.js";
import "./view_words.js";

const PAGE = 50;

export default function People({ place: { filters } }) {
  const people = usePeople(filters);
  const [open, setOpen] = useState(null);
  const row = (person) => html`<${Person}
    key=${person.id}
    person=${person}
    put=${people.put}
    onOpen=${() => setOpen({ person })}
  />`;
  const saved = (person) => (open.person ? people.put(person) : people.again());
  return html`<section class="view">
    <${Head} filters=${filters} onAdd=${() => setOpen({ person: null })} />
    <${Pages} of=${people} empty=${word("nobodyMatches")}>${row}<//>
    ${open && html`<${PersonDialog} person=${open.person} onClose=${() => setOpen(null)} onSaved=${saved} />`}
  </section>`;
}

function usePeople({ q = "", role = "", active = "" }) {
  const { api } = useConsole();
  const search = useDelayed(q.trim());
  const given = { search: search || undefined, role: role || undefined, active: active || undefined };
  const people = usePages((cursor) => api.listUsers({ ...given, cursor, limit: PAGE }), [search, role, active]);
  const put = (saved) => people.change((one) => (one.id === saved.id ? saved : one));
  return { ...people, put };
}

function Head({ filters: { q = "", role = "", active = "" }, onAdd }) {
  const { router } = useConsole();
  const wordOfRole = (one) => word(`role_${one}`);
  const wordOfActive = (one) => word(`active_${one}`);
  const both = ["true", "false"];
  return html`
    <div class="row apart">
      <h1>${word("view_people")}</h1>
      <div class="row">
        <a class="button" href=${router.address("roster")}>${word("importPeople")}</a>
        <${Button} kind="main" onClick=${onAdd}>${word("addPerson")}<//>
      </div>
    </div>
    <div class="filters">
      <${FilterSearch} label=${word("searchPerson")} value=${q} />
      <${FilterSelect} name="role" label=${word("role")} value=${role} options=${ROLES} wordOf=${wordOfRole} />
      <${FilterSelect} name="active" label=${word("account")} value=${active} options=${both} wordOf=${wordOfActive} />
    </div>
  `;
}

function Person({ person, put, onOpen }) {
  const { name, role, phone, institutionId, active } = person;
  const institution = institutionId && word("institutionNumber", { id: institutionId });
  const about = [word(`role_${role}`), phone && phoneNumber(phone), institution].filter(Boolean).join(" · ");
  return html`<li class="entry">
    <div class="entry-text">
      <strong>${name}</strong>
      <span class="soft small numbers">${about}</span>
    </div>
    <div class="row">
      ${!active && html`<${Badge} kind="warn">${word("active_false")}<//>`}
      <${Button} aria-label=${word("changePersonNamed", { name })} onClick=${onOpen}>${word("change")}<//>
      <${AccountSwitch} person=${person} put=${put} />
    </div>
  </li>`;
}

// Opening an account takes nothing from anybody, so it is not asked first.
function AccountSwitch({ person, put }) {
  const { api, me } = useConsole();
  const { id, name, role, active } = person;
  const set = (wanted) =>
    orTellRefusal(async () => {
      put(await api.patchUser(id, { active: wanted }));
      const undo = { label: word("undo"), run: () => set(!wanted) };
      tell(word(wanted ? "done_opened" : "done_closed", { name }), "good", undo);
    });
  if (id === me.id) return null;
  if (!active) {
    const label = word("openAccountOf", { name });
    return html`<${Button} aria-label=${label} onClick=${() => set(true)}>${word("openAccount")}<//>`;
  }
  return html`<${AskFirst}
    label=${word("closeAccount")}
    aria-label=${word("closeAccountOf", { name })}
    question=${word(`ask_close_${role}`, { name })}
    kind="bad"
    onConfirm=${() => set(false)}
  />`;
}
