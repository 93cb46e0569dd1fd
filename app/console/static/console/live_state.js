// What is known of open requests and of students, and how an event changes it. Pure functions: the same events give the
// same state, and an event that comes twice changes nothing.

const ENDED = new Set(["COMPLETED", "CANCELLED"]);
const OFFER_ENDED = new Set(["OFFER_REJECTED", "OFFER_EXPIRED", "OFFER_WITHDRAWN"]);
const OFFER_BEGAN = new Set(["TASK_OFFERED", "TASK_REOFFERED"]);

// Phone numbers are in no event, and the end of a search changes when it goes on.
const NOT_TOLD_IN_FULL = new Set(["TASK_ASSIGNED", "TASK_RELEASED"]);

export const NOTHING_KNOWN = { tasks: new Map(), students: new Map(), nobodyFound: 0 };

// Nobody was found, and nobody has said what became of it.
export function isNobodyFound(task) {
  return task?.status === "TIMED_OUT" && !task.outcome;
}

export function newlyNobodyFound(before, tasks) {
  return [...tasks.values()].filter((task) => isNobodyFound(task) && !isNobodyFound(before.get(task.id)));
}

export function isOnBoard(task) {
  return !ENDED.has(task.status) && (task.status !== "TIMED_OUT" || isNobodyFound(task));
}

// Several events at once, because a copy of ten thousand tasks for each of them would be slow. `unknown` are the tasks of
// which the event does not tell enough, so that they have to be read.
export function applyEvents(state, events) {
  const tasks = new Map(state.tasks);
  const students = new Map(state.students);
  const unknown = new Set();
  for (const event of events) {
    if (event.taskId) applyToTask(tasks, event, unknown);
    applyToStudents(students, event);
  }
  return { state: counted({ ...state, tasks, students }), unknown };
}

function applyToTask(tasks, event, unknown) {
  const { taskId: id } = event;
  const known = tasks.get(id);
  if (event.type === "TASK_RESOLVED" || ENDED.has(event.status)) {
    tasks.delete(id);
    unknown.delete(id);
  } else if (known) {
    const task = changedBy(known, event);
    tasks.set(id, task);
    if (NOT_TOLD_IN_FULL.has(event.type)) unknown.add(id);
  } else {
    unknown.add(id);
  }
}

function changedBy(task, event) {
  const progress = pick(event, ["asked", "remaining", "nextStepAt"]);
  return { ...task, ...progress, ...statusOf(task, event), ...offerOf(task, event) };
}

function statusOf(task, event) {
  switch (event.type) {
    case "TASK_ASSIGNED":
      return { status: "ASSIGNED", assignedAt: event.at, student: studentOf(task, event) };
    case "TASK_STARTED":
      return { status: "STARTED", startedAt: event.at };
    case "TASK_RELEASED":
      return { status: "PENDING", student: null, assignedAt: null, startedAt: null };
    case "TASK_TIMED_OUT":
      return { status: "TIMED_OUT", endedAt: event.at };
    default:
      return {};
  }
}

function studentOf(task, event) {
  if (task.student?.id === event.studentId) return task.student;
  return { id: event.studentId, name: event.studentName, phone: null };
}

function offerOf(task, event) {
  if (OFFER_BEGAN.has(event.type)) {
    const { deadline, studentId, studentName, at } = event;
    return { currentOffer: { deadline, studentId, studentName, since: at } };
  }
  if (OFFER_ENDED.has(event.type)) {
    return task.currentOffer?.studentId === event.studentId ? { currentOffer: null } : {};
  }
  return event.type.startsWith("TASK_") && event.type !== "TASK_CREATED" ? { currentOffer: null } : {};
}

function applyToStudents(students, event) {
  const known = students.get(event.studentId);
  if (!known) return;
  const change = studentChange(known, event);
  if (change) students.set(known.id, { ...known, ...change });
}

function studentChange(student, event) {
  if (event.type === "DUTY_CHANGED") return { onDuty: event.onDuty };
  if (OFFER_BEGAN.has(event.type)) return { busy: true, offeredTaskId: event.taskId };
  if (OFFER_ENDED.has(event.type)) return student.offeredTaskId === event.taskId ? { busy: false, offeredTaskId: null } : null;
  if (event.type === "TASK_ASSIGNED") return { busy: true, offeredTaskId: null };
  if (event.type === "TASK_RELEASED" || ENDED.has(event.status)) return { busy: false };
  return null;
}

// ---- what was read from the server ----

// The whole board: what it does not have is not open any more.
export function withBoard(state, items) {
  return counted({ ...state, tasks: new Map(items.map((task) => [task.id, task])) });
}

// Some tasks, which have been read one by one.
export function withTasks(state, items) {
  const tasks = new Map(state.tasks);
  for (const item of items) {
    if (isOnBoard(item)) tasks.set(item.id, item);
    else tasks.delete(item.id);
  }
  return counted({ ...state, tasks });
}

export function withoutTasks(state, ids) {
  const tasks = new Map(state.tasks);
  ids.forEach((id) => tasks.delete(id));
  return counted({ ...state, tasks });
}

export function withStudents(state, items) {
  return { ...state, students: new Map(items.map((student) => [student.id, student])) };
}

function counted(state) {
  let nobodyFound = 0;
  for (const task of state.tasks.values()) if (isNobodyFound(task)) nobodyFound += 1;
  return { ...state, nobodyFound };
}

function pick(from, names) {
  return Object.fromEntries(names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]));
}
