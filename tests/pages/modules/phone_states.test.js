// What the phones show, and what they conclude from two answers that follow each other.

import { canPress, elderView } from "../../../app/console/static/phone/elder_state.js";
import { byMonth } from "../../../app/console/static/phone/history_months.js";
import { changesOf } from "../../../app/console/static/phone/me_changes.js";
import { endOfTask, partLeft, studentView } from "../../../app/console/static/phone/student_state.js";
import { equal, test } from "./cases.js";

const NOON = Date.parse("2026-11-19T12:00:00Z");
const student = { id: 2, name: "Ahmet Çelik", phone: "+905550100011" };
const task = (status, more = {}) => ({ id: "t1", status, asked: 0, nextStepAt: null, student: null, currentOffer: null, ...more });
const elder = (openTask) => ({ id: 1, openTask });
const kindOf = (openTask, more = {}) => elderView({ me: elder(openTask), ...more }).kind;

test("the elder's phone follows the task", () => {
  equal(kindOf(null), "idle");
  equal(kindOf(task("PENDING")), "searching");
  equal(kindOf(task("PENDING", { asked: 1, currentOffer: { deadline: "", studentName: "Ahmet" } })), "asked");
  equal(kindOf(task("PENDING", { asked: 2, nextStepAt: "2026-11-19T12:10:00Z" })), "waiting");
  equal(kindOf(task("PENDING", { asked: 1 }), { withdrawn: { taskId: "t1", name: "Ahmet" } }), "searchingAgain");
  equal(kindOf(task("ASSIGNED", { student })), "coming");
  equal(kindOf(task("STARTED", { student })), "here");
  for (const [status, kind] of [["COMPLETED", "completed"], ["TIMED_OUT", "nobody"], ["CANCELLED", "cancelled"]]) {
    equal(kindOf(null, { ended: task(status) }), kind);
  }
});

test("a press that has not arrived is shown until there is a task", () => {
  const press = { sending: false, isOld: false, problem: null };
  equal(kindOf(null, { press }), "kept");
  equal(kindOf(null, { press: { ...press, sending: true } }), "sending");
  equal(kindOf(null, { press: { ...press, isOld: true } }), "keptTooLong");
  equal(kindOf(null, { press: { ...press, problem: {} } }), "refused");
  equal(kindOf(null, { press, ended: task("COMPLETED") }), "kept");
  equal(kindOf(task("PENDING"), { press }), "searching");
});

test("the button is there whenever nothing is on its way", () => {
  const kinds = ["idle", "kept", "sending", "searching", "asked", "coming", "here", "completed", "nobody", "refused"];
  equal(kinds.filter((kind) => canPress({ kind })), ["idle", "completed", "nobody", "refused"]);
});

test("the elder reads first names only", () => {
  equal(elderView({ me: elder(task("ASSIGNED", { student })) }).name, "Ahmet");
});

test("a student who no longer comes is known until the next one does", () => {
  const before = { me: elder(task("ASSIGNED", { student })), withdrawn: null };
  const first = changesOf(before, elder(task("PENDING")), NOON).withdrawn;
  equal(first, { taskId: "t1", name: "Ahmet Çelik" });
  equal(changesOf({ me: elder(task("PENDING")), withdrawn: first }, elder(task("PENDING")), NOON).withdrawn, first);
  equal(changesOf({ me: elder(task("PENDING")), withdrawn: first }, elder(task("ASSIGNED", { student })), NOON).withdrawn, null);
});

test("a task that is gone has to be read once more", () => {
  equal(changesOf({ me: elder(task("PENDING")) }, elder(null), NOON).gone.id, "t1");
  equal(changesOf({ me: elder(task("PENDING")) }, elder(task("ASSIGNED")), NOON).gone, null);
  equal(changesOf({ me: elder(task("PENDING")) }, { id: 9, openTask: null }, NOON).gone, null, "of somebody else");
});

test("an offer is lost by time or by others, but not by an accept", () => {
  const offer = { taskId: "t1", deadline: "2026-11-19T12:00:00Z" };
  const me = { id: 2, openTask: null, offer };
  const lost = (now, nowMs) => changesOf({ me }, { ...me, offer: null, ...now }, nowMs).lostOffer?.reason ?? null;
  equal(lost({}, NOON), "offer_expired");
  equal(lost({}, NOON - 1), "offer_withdrawn");
  equal(lost({ openTask: task("ASSIGNED") }, NOON - 1), null);
  equal(lost({ offer }, NOON - 1), null);
});

test("the student's phone shows an offer until its time is over", () => {
  const me = { onDuty: true, openTask: null, offer: { taskId: "t1", deadline: "2026-11-19T12:00:00Z" } };
  equal(studentView({ me, nowMs: NOON - 1 }).kind, "offer");
  equal(studentView({ me, nowMs: NOON }).kind, "waiting");
  equal(studentView({ me: { ...me, openTask: task("ASSIGNED") }, nowMs: NOON - 1 }).kind, "coming");
  equal(studentView({ me: { ...me, onDuty: false, offer: null }, nowMs: NOON }).kind, "offDuty");
});

test("the student hears of ends that others have made", () => {
  equal([null, task("COMPLETED"), task("CANCELLED"), task("PENDING")].map(endOfTask), [null, null, "taskCancelled", "taskTakenBack"]);
});

test("the ring is full at first sight and empty at the end", () => {
  const deadline = "2026-11-19T12:00:00Z";
  equal([600, 300, 0, -5].map((left) => partLeft(deadline, NOON - 600_000, NOON - left * 1000)), [1, 0.5, 0, 0]);
  equal(partLeft(deadline, NOON + 1, NOON + 1), 0);
});

test("history counts by month what this student has completed", () => {
  const made = (createdAt, status, who = student) => ({ createdAt, status, student: who });
  const tasks = [made("2026-11-15T10:00:00Z", "COMPLETED"), made("2026-11-02T10:00:00Z", "CANCELLED"), made("2026-10-02T10:00:00Z", "COMPLETED", null)];
  equal(byMonth(tasks, 2).map(({ key, helped, tasks: some }) => [key, helped, some.length]), [["2026-11", 1, 2], ["2026-10", 0, 1]]);
});
