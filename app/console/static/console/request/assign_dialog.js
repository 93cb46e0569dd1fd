// Gives a task to a student whom the coordinator has talked to: nearest first, with the reasons for which the search
// does not ask them.

import { metres } from "../../shared/format.js";
import { Badge, Button, CallLink, Dialog, Read, useRead } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html, useState } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { useDelayed } from "../delayed.js";
import { SearchField } from "../form_parts.js";
import { FoundPeople } from "../found_people.js";
import { useDeed } from "./deeds.js";
import { possibleDeeds } from "./possible_deeds.js";
import { reasonInWords } from "./reasons.js";

const SHOWN = 50;
// The service refuses them.
const NOT_ASSIGNABLE = new Set(["HAS_A_TASK", "INACTIVE"]);

export function AssignDialog({ task, again, onClose }) {
  const { api } = useConsole();
  const [search, setSearch] = useState("");
  const wanted = useDelayed(search.trim());
  const read = () => api.listCandidates(task.id, { search: wanted || undefined, limit: SHOWN });
  const candidates = useRead(read, [task.id, wanted]);
  const run = useDeed(task, again);
  const isPossible = possibleDeeds(task).includes("assign");
  const row = (candidate) => {
    const { studentId, name, obstacle } = candidate;
    const assign = async () => {
      await run("assign", { id: studentId, name });
      onClose();
    };
    const disabled = !isPossible || NOT_ASSIGNABLE.has(obstacle);
    return html`<${Candidate} key=${studentId} ...${candidate} disabled=${disabled} onAssign=${assign} />`;
  };
  return html`<${Dialog} title=${word("assignTitle", { elder: task.elder.name })} onClose=${onClose}>
    ${!isPossible && html`<p class="notice warn" role="alert">${word("changedMeanwhile")}</p>`}
    <p class="soft small">${word("assignHint")}</p>
    <${SearchField} label=${word("searchStudent")} value=${search} onSearch=${setSearch} autofocus />
    <${Read} of=${candidates}>${({ items }) => html`<${FoundPeople} items=${items} row=${row} />`}<//>
  <//>`;
}

function Candidate({ name, phone, distanceM, completedThisMonth, obstacle, askedBefore, disabled, onAssign }) {
  const away = distanceM === null ? word("noPlace") : metres(distanceM);
  // The state of the earlier offer says more than that there was one.
  const reason = askedBefore && obstacle === "ASKED_BEFORE" ? null : obstacle;
  return html`<li class="candidate">
    <div>
      <strong>${name}</strong>${" "}
      <span class="soft small numbers">${away} · ${word("helpedThisMonth", { count: completedThisMonth })}</span>
      <div class="row">
        ${reason && html`<${Badge} kind="warn">${reasonInWords(reason, { distanceM })}<//>`}
        ${askedBefore && html`<${Badge}>${word(`asked_before_${askedBefore}`)}<//>`}
      </div>
    </div>
    <div class="row">
      <${CallLink} phone=${phone} kind="bare" />
      <${Button} kind="main" disabled=${disabled} aria-label=${word("assignTo", { name })} onClick=${onAssign}>${word("assignButton")}<//>
    </div>
  </li>`;
}
