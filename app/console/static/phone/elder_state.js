// What the elder's phone shows, as a function of what is known. It says nothing of time, so that a change of its result
// is a change that people should hear of.

// `press` is a press that has not reached the server: `{sending, isOld, problem}`.
export function elderView({ me, ended = null, withdrawn = null, press = null }) {
  const task = me?.openTask ?? null;
  if (task) return openView(task, withdrawn);
  if (press) return pressView(press);
  return ended ? { kind: ENDS[ended.status] ?? "idle", task: ended } : { kind: "idle", task: null };
}

const ENDS = { COMPLETED: "completed", TIMED_OUT: "nobody", CANCELLED: "cancelled" };

function pressView({ sending, isOld, problem }) {
  if (problem) return { kind: "refused", task: null, problem };
  if (isOld) return { kind: "keptTooLong", task: null };
  return { kind: sending ? "sending" : "kept", task: null };
}

function openView(task, withdrawn) {
  const view = { task, name: firstWord(task.student?.name) };
  if (task.status === "ASSIGNED") return { ...view, kind: "coming" };
  if (task.status === "STARTED") return { ...view, kind: "here" };
  if (task.currentOffer) return { ...view, kind: "asked", name: firstWord(task.currentOffer.studentName), turn: task.asked };
  if (withdrawn) return { ...view, kind: "searchingAgain", name: firstWord(withdrawn.name) };
  return { ...view, kind: task.asked > 0 && task.nextStepAt ? "waiting" : "searching" };
}

// True where the large button calls; elsewhere its place shows the progress.
export function canPress({ kind }) {
  return ["idle", "completed", "nobody", "cancelled", "refused", "keptTooLong"].includes(kind);
}

function firstWord(name) {
  return name?.trim().split(/\s+/)[0] ?? "";
}
