// The filters above the audit trail. They stand in the address, so that a link shows the same entries.

import { Button, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { FilterSelect, LabelledInput, wordOfCode } from "../parts.js";
import { FILTERS, KINDS } from "./audit_query.js";
import { KNOWN_DEEDS, deedOf } from "./deed_names.js";

const MOST_STAFF = 100;
const NOBODY = ["operator", "service"];

// `wrong` has a sentence for each filter that is not accepted; `names` are those of authors by their ids.
export function AuditFilters({ filters, wrong, names }) {
  const { router } = useConsole();
  const given = Object.fromEntries(FILTERS.map((name) => [name, filters[name] ?? ""]));
  const isFiltered = Object.values(given).some(Boolean);
  const clear = () => router.filter(Object.fromEntries(FILTERS.map((name) => [name, ""])));
  const input = (name, label, more) => html`<${LabelledInput}
    label=${word(label)}
    wrong=${wrong[name]}
    value=${given[name]}
    onInput=${(event) => router.filter({ [name]: event.target.value })}
    ...${more}
  />`;
  return html`<div class="stack">
    <div class="filters audit-filters">
      <${Authors} value=${given.author} wrong=${wrong.author} names=${names} />
      <${Deeds} value=${given.deed} wrong=${wrong.deed} />
      <${FilterSelect}
        name="subjectKind"
        label=${word("auditKind")}
        wrong=${wrong.subjectKind}
        value=${given.subjectKind}
        options=${withChosen(KINDS, given.subjectKind)}
        wordOf=${(kind) => wordOfCode("subject", kind)}
        all=${word("auditAnything")}
      />
      ${input("subjectId", "auditId", { autocomplete: "off", spellcheck: false })}
      ${input("since", "auditSince", { type: "datetime-local" })}
      ${input("until", "auditUntil", { type: "datetime-local" })}
    </div>
    ${isFiltered && html`<div><${Button} onClick=${clear}>${word("auditClear")}<//></div>`}
  </div>`;
}

// Whoever may have done something: coordinators and admins, an operator at the machine, and the service itself.
function Authors({ value, wrong, names }) {
  const { api } = useConsole();
  const staff = useRead(async () => {
    const lists = await Promise.all(["ADMIN", "COORDINATOR"].map((role) => api.listUsers({ role, limit: MOST_STAFF })));
    return lists.flatMap(({ items }) => items);
  }, []);
  const named = new Map((staff.value ?? []).map(({ id, name }) => [`user:${id}`, name]));
  const nameOf = (author) => {
    const id = /^user:(\d+)$/.exec(author)?.[1];
    return id ? (named.get(author) ?? names.get(id) ?? word("userNumber", { id })) : wordOfCode("author", author);
  };
  return html`<${FilterSelect}
    name="author"
    label=${word("auditWho")}
    wrong=${wrong}
    value=${value}
    options=${withChosen([...named.keys(), ...NOBODY], value)}
    wordOf=${nameOf}
    all=${word("auditEveryone")}
  />`;
}

function Deeds({ value, wrong }) {
  const wordOf = (deed) => wordOfCode("deed", deedOf(deed), deed);
  const sorted = [...KNOWN_DEEDS].sort((one, other) => wordOf(one).localeCompare(wordOf(other)));
  return html`<${FilterSelect}
    name="deed"
    label=${word("auditDeed")}
    wrong=${wrong}
    value=${value}
    options=${withChosen(sorted, value)}
    wordOf=${wordOf}
    all=${word("auditAnything")}
  />`;
}

// A select shows only what it offers, and an address may hold anything.
function withChosen(options, chosen) {
  return !chosen || options.includes(chosen) ? options : [...options, chosen];
}
