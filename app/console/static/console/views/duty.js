// The students by duty: who may be asked, who is away, and who stays away until a coordinator says otherwise.

import { Badge, Button, CallLink, messageOf, Read, tell } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html, useEffect } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { useDelayed } from "../delayed.js";
import { ChoiceButtons, SearchField } from "../form_parts.js";
import { FoundPeople } from "../found_people.js";
import { usePages } from "../pages.js";

const DUTIES = { on: { onDuty: true }, off: { onDuty: false }, suspended: { suspended: true }, all: {} };
const PAGE = 100;

export default function Duty({ place }) {
  const { api, live, router } = useConsole();
  const { duty = "on", q = "" } = place.filters;
  const search = useDelayed(q.trim());
  const wanted = DUTIES[duty] ?? DUTIES.on;
  const read = (cursor) => api.listStudents({ ...wanted, search: search || undefined, cursor, limit: PAGE });
  const students = usePages(read, [wanted, search]);
  const { change } = students;
  useEffect(() => live.listen((events) => change((student) => changedBy(student, events))), [change]);
  const row = (student) => html`<${Student} key=${student.id} student=${student} change=${change} />`;
  const options = Object.keys(DUTIES).map((value) => ({ value, text: word(`duty_${value}`) }));
  const empty = word(duty === "on" && !search ? "nobodyOnDuty" : "nobodyMatches");
  return html`<section class="view">
    <h1>${word("view_duty")}</h1>
    <div class="duty-filters">
      <${SearchField} label=${word("searchStudent")} value=${q} onSearch=${(text) => router.filter({ q: text })} data-search />
      <${ChoiceButtons} label=${word("view_duty")} value=${duty} options=${options} onChoose=${(value) => router.filter({ duty: value })} />
    </div>
    <${Read} of=${students}>${(items) => html`<${FoundPeople} items=${items} row=${row} kind="students" empty=${empty} />`}<//>
    ${students.more && html`<div><${Button} onClick=${students.more}>${word("more")}<//></div>`}
  </section>`;
}

function changedBy(student, events) {
  const last = events.filter(({ type, studentId }) => type === "DUTY_CHANGED" && studentId === student.id).at(-1);
  // Whoever is on duty is not suspended any more.
  return last ? { ...student, onDuty: last.onDuty, suspended: student.suspended && !last.onDuty } : student;
}

function Student({ student, change }) {
  const { name, phone, onDuty, active } = student;
  const toggle = useDuty(student, change);
  const [label, text] = onDuty ? ["putOffDutyOf", "putOffDuty"] : ["putOnDutyOf", "putOnDuty"];
  return html`<li class="student">
    <div>
      <strong>${name}</strong>
      <${State} ...${student} />
    </div>
    <div class="row">
      <${CallLink} phone=${phone} kind="bare" />
      ${active && html`<${Button} onClick=${toggle} aria-label=${word(label, { name })}>${word(text)}<//>`}
    </div>
  </li>`;
}

function State({ onDuty, suspended, busy, active, completedThisMonth }) {
  return html`<div class="row small">
    <${Badge} kind=${onDuty ? "good" : ""}>${word(onDuty ? "onDuty" : "offDuty")}<//>
    ${suspended && html`<${Badge} kind="warn">${word("suspended")}<//>`}
    ${busy && html`<${Badge} kind="accent">${word("student_busy")}<//>`}
    ${!active && html`<${Badge}>${word("reason_INACTIVE")}<//>`}
    <span class="soft numbers">${word("helpedThisMonth", { count: completedThisMonth })}</span>
  </div>`;
}

function useDuty(student, change) {
  const { api } = useConsole();
  const put = async (onDuty) => {
    await api.putAvailabilityOf(student.id, { onDuty });
    change((one) => (one.id === student.id ? { ...one, onDuty, suspended: !onDuty } : one));
  };
  return async () => {
    const { onDuty, name } = student;
    try {
      await put(!onDuty);
      const undo = { label: word("undo"), run: () => put(onDuty) };
      tell(word(onDuty ? "done_offDuty" : "done_onDuty", { student: name }), "good", undo);
    } catch (error) {
      tell(word("refused", { why: messageOf(error) }), "warn");
    }
  };
}
