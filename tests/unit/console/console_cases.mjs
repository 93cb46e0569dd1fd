// Cases of the modules of the console that need no page. test_console_modules.py runs them in Node.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

const CONSOLE = "../../../app/console/static/console";
const { applyEvents, NOTHING_KNOWN, newlyNobodyFound, withBoard, withStudents, withTasks } = await import(`${CONSOLE}/live_state.js`);
const { createLive } = await import(`${CONSOLE}/live.js`);
const { followEvents } = await import(`${CONSOLE}/../shared/events.js`);
const { followTogether } = await import(`${CONSOLE}/one_stream.js`);
const { mostUrgentFirst, urgencyOf } = await import(`${CONSOLE}/urgency.js`);
const { fold, matchingTasks } = await import(`${CONSOLE}/request_filter.js`);
const { clusters, fewOrClustered } = await import(`${CONSOLE}/map/clusters.js`);
const { elderPoints, offerLines, studentPoints } = await import(`${CONSOLE}/map/map_points.js`);
const { endOfLine, longestTtlMs, shareLeft } = await import(`${CONSOLE}/map/offer_line.js`);
const { timelineSteps } = await import(`${CONSOLE}/request/timeline_steps.js`);
const { possibleDeeds } = await import(`${CONSOLE}/request/possible_deeds.js`);
const { shortcutFor } = await import(`${CONSOLE}/shortcuts.js`);
const { viewAt } = await import(`${CONSOLE}/views.js`);
const { CONSOLE_EN } = await import(`${CONSOLE}/words_en.js`);
const { CONSOLE_TR } = await import(`${CONSOLE}/words_tr.js`);

const NOON = Date.parse("2026-11-19T12:00:00Z");

function at(minutes) {
  return new Date(NOON + minutes * 60_000).toISOString();
}

function taskOf(id, more = {}) {
  const elder = { id: 3, name: "Ayşe Yılmaz", phone: "+905550100002" };
  const plain = { id, status: "PENDING", createdAt: at(-10), note: null, asked: 1, remaining: 8, nextStepAt: at(5), elder };
  return { ...plain, location: { lat: 41, lon: 29 }, student: null, currentOffer: null, outcome: null, searchEndsAt: at(120), ...more };
}

function boardOf(...tasks) {
  return withBoard(NOTHING_KNOWN, tasks);
}

function after(state, ...events) {
  return applyEvents(state, events.map((event, index) => ({ id: index + 1, at: at(0), taskId: "a", ...event })));
}

const ASKED = { type: "TASK_OFFERED", deadline: at(10), studentId: 5, studentName: "Ahmet Çelik", asked: 2, remaining: 7 };

// ---- state ----

test("an offer shows who is asked and counts", () => {
  const { state, unknown } = after(boardOf(taskOf("a")), ASKED);
  const task = state.tasks.get("a");
  assert.deepEqual(task.currentOffer, { deadline: at(10), studentId: 5, studentName: "Ahmet Çelik", since: at(0) });
  assert.deepEqual([task.asked, task.remaining, unknown.size], [2, 7, 0]);
});

test("an offer that ends takes only itself away", () => {
  const asked = after(boardOf(taskOf("a")), ASKED).state;
  assert.equal(after(asked, { type: "OFFER_EXPIRED", studentId: 5 }).state.tasks.get("a").currentOffer, null);
  assert.equal(after(asked, { type: "OFFER_EXPIRED", studentId: 6 }).state.tasks.get("a").currentOffer.studentId, 5);
});

test("a task that is assigned has its student and is read for the phone number", () => {
  const { state, unknown } = after(boardOf(taskOf("a")), ASKED, { type: "TASK_ASSIGNED", status: "ASSIGNED", studentId: 5, studentName: "Ahmet Çelik" });
  const { status, student, currentOffer, assignedAt } = state.tasks.get("a");
  assert.deepEqual({ status, student, currentOffer, assignedAt }, { status: "ASSIGNED", student: { id: 5, name: "Ahmet Çelik", phone: null }, currentOffer: null, assignedAt: at(0) });
  assert.deepEqual([...unknown], ["a"]);
});

test("a task that ends leaves the board and needs no reading", () => {
  const { state, unknown } = after(boardOf(taskOf("a")), { type: "TASK_CREATED", taskId: "b" }, { type: "TASK_CANCELLED", status: "CANCELLED", taskId: "b" }, { type: "TASK_COMPLETED", status: "COMPLETED" });
  assert.deepEqual([state.tasks.size, unknown.size], [0, 0]);
});

test("nobody found stays on the board until somebody says an outcome", () => {
  const before = boardOf(taskOf("a"));
  const timedOut = after(before, { type: "TASK_TIMED_OUT", status: "TIMED_OUT" }).state;
  assert.deepEqual([timedOut.nobodyFound, timedOut.tasks.get("a").endedAt], [1, at(0)]);
  assert.deepEqual(newlyNobodyFound(before.tasks, timedOut.tasks).map(({ id }) => id), ["a"]);
  assert.deepEqual(newlyNobodyFound(timedOut.tasks, timedOut.tasks), []);
  assert.deepEqual(after(timedOut, { type: "TASK_RESOLVED", status: "TIMED_OUT" }).state.nobodyFound, 0);
  assert.equal(withTasks(timedOut, [{ ...timedOut.tasks.get("a"), outcome: { outcome: "OTHER" } }]).tasks.size, 0);
});

test("the same events twice change nothing", () => {
  const events = [ASKED, { type: "OFFER_REJECTED", studentId: 5 }, { ...ASKED, type: "TASK_REOFFERED", studentId: 6 }];
  const once = after(boardOf(taskOf("a")), ...events).state;
  assert.deepEqual(after(once, ...events).state, once);
});

test("events follow students", () => {
  const student = { id: 5, name: "Ahmet Çelik", lat: 41, lon: 29, onDuty: true, busy: false, offeredTaskId: null };
  const known = withStudents(boardOf(taskOf("a")), [student]);
  const asked = after(known, ASKED).state;
  assert.equal(asked.students.get(5).offeredTaskId, "a");
  const assigned = after(asked, { type: "TASK_ASSIGNED", status: "ASSIGNED", studentId: 5 }).state;
  assert.deepEqual([assigned.students.get(5).busy, assigned.students.get(5).offeredTaskId], [true, null]);
  assert.equal(after(assigned, { type: "TASK_COMPLETED", status: "COMPLETED", studentId: 5 }).state.students.get(5).busy, false);
  assert.equal(after(known, { type: "DUTY_CHANGED", taskId: undefined, studentId: 5, onDuty: false }).state.students.get(5).onDuty, false);
});

test("a task that was read takes the place of what events have told", () => {
  const state = withTasks(after(boardOf(taskOf("a")), ASKED).state, [taskOf("a", { status: "ASSIGNED" })]);
  assert.deepEqual([state.tasks.get("a").status, state.tasks.get("a").currentOffer], ["ASSIGNED", null]);
});

// ---- following ----

// Followed from the moment when the first board was read.
async function liveOf(tasks) {
  const calls = [];
  let on = null;
  const pages = async function* () {
    yield* tasks.values();
  };
  const api = {
    showBoard: () => (calls.push("board"), pages()),
    getTask: async (id) => (calls.push(id), tasks.get(id)),
  };
  const live = createLive({ api, session: { token: () => "t", end() {} }, follow: (_, options) => ((on = options.on), { close() {}, retryNow() {} }) });
  const end = live.start();
  await pass(50);
  return { live, calls, on, end };
}

async function pass(milliseconds) {
  for (let passed = 0; passed < milliseconds; passed += 50) {
    mock.timers.tick(50);
    for (let turn = 0; turn < 20; turn += 1) await null;
    await new Promise((done) => setImmediate(done));
  }
}

function timed(run) {
  return async () => {
    mock.timers.enable({ apis: ["setTimeout", "Date"], now: NOON });
    try {
      await run();
    } finally {
      mock.timers.reset();
    }
  };
}

test("a thousand events in a minute are few reads", timed(async () => {
  const tasks = new Map(Array.from({ length: 1000 }, (_, index) => [`t${index}`, taskOf(`t${index}`)]));
  const { live, calls, on, end } = await liveOf(tasks);
  on.fresh();
  await pass(200);
  calls.length = 0;
  for (let index = 0; index < 1000; index += 1) {
    on.event({ id: index, type: "TASK_CREATED", status: "PENDING", at: at(0), taskId: `new${index}` });
    tasks.set(`new${index}`, taskOf(`new${index}`));
    if (index % 17 === 0) await pass(1000);
  }
  await pass(6000);
  assert.ok(calls.length < 60, `${calls.length} reads`);
  assert.equal(live.store.get().tasks.size, 2000);
  end();
}));

test("events of one moment read a task once", timed(async () => {
  const tasks = new Map();
  const { live, calls, on, end } = await liveOf(tasks);
  on.fresh();
  await pass(200);
  calls.length = 0;
  tasks.set("a", taskOf("a"));
  on.event({ id: 1, type: "TASK_CREATED", at: at(0), taskId: "a" });
  on.event({ id: 2, ...ASKED, at: at(0), taskId: "a" });
  await pass(2000);
  assert.deepEqual([calls, [...live.store.get().tasks.keys()]], [["a"], ["a"]]);
  end();
}));

test("events that come while the board is read are not lost", timed(async () => {
  const { live, on, end } = await liveOf(new Map([["a", taskOf("a")]]));
  on.fresh();
  mock.timers.tick(1);
  on.event({ id: 1, ...ASKED, at: at(0), taskId: "a" });
  await pass(500);
  assert.equal(live.store.get().tasks.get("a").currentOffer.studentId, 5);
  assert.equal(live.store.get().loaded, true);
  end();
}));

test("the board is there before a stream is, and is read again when one is open", timed(async () => {
  const tasks = new Map([["a", taskOf("a")]]);
  const { live, calls, on, end } = await liveOf(tasks);
  assert.deepEqual([live.store.get().loaded, calls], [true, ["board"]]);
  tasks.set("b", taskOf("b"));
  on.fresh();
  await pass(50);
  assert.deepEqual([[...live.store.get().tasks.keys()], calls], [["a", "b"], ["board", "board"]]);
  end();
}));

test("a stream that opens while the board is read has it read again", timed(async () => {
  const tasks = new Map([["a", taskOf("a")]]);
  const { live, calls, on, end } = await liveOf(tasks);
  on.fresh();
  mock.timers.tick(1);
  on.fresh();
  await pass(500);
  assert.deepEqual([calls.length, live.store.get().loaded], [3, true]);
  end();
}));

// ---- order, filters ----

test("the most urgent request comes first", () => {
  const tasks = [
    taskOf("helping", { status: "STARTED", startedAt: at(-5) }),
    taskOf("new", { createdAt: at(-1) }),
    taskOf("old", { createdAt: at(-50) }),
    taskOf("late", { status: "ASSIGNED", assignedAt: at(-45) }),
    taskOf("ends", { searchEndsAt: at(10), createdAt: at(-2) }),
    taskOf("nobody", { status: "TIMED_OUT", createdAt: at(-200) }),
    taskOf("coming", { status: "ASSIGNED", assignedAt: at(-5) }),
  ];
  assert.deepEqual(mostUrgentFirst(tasks, NOON).map(({ task }) => task.id), ["nobody", "ends", "old", "new", "late", "coming", "helping"]);
});

test("a request that takes hours is told from one that has begun", () => {
  assert.equal(urgencyOf(taskOf("a", { status: "STARTED", startedAt: at(-200) }), NOON), "long_help");
  assert.equal(urgencyOf(taskOf("a", { status: "STARTED", startedAt: at(-2) }), NOON), "helping");
});

test("a search folds Turkish letters and looks at name, phone, note and student", () => {
  assert.equal(fold("IŞIL İĞNE"), fold("ışıl iğne"));
  const tasks = [taskOf("a", { elder: { id: 1, name: "Işıl Öztürk", phone: "+905551112233" }, note: "Ekmek" }), taskOf("b")];
  const found = (q) => matchingTasks(tasks, { q }).map(({ id }) => id);
  assert.deepEqual([found("isil ozturk"), found("1112233"), found("EKMEK"), found("yok"), found("")], [["a"], ["a"], ["a"], [], ["a", "b"]]);
});

test("a state filters by status", () => {
  const tasks = [taskOf("a"), taskOf("b", { status: "STARTED" }), taskOf("c", { status: "TIMED_OUT" })];
  assert.deepEqual(["searching", "assigned", "nobody_found"].map((state) => matchingTasks(tasks, { state })[0].id), ["a", "b", "c"]);
});

// ---- map ----

test("few points stay, many become clusters that hold them all", () => {
  const points = Array.from({ length: 1000 }, (_, id) => ({ id, x: (id * 37) % 500, y: (id * 91) % 400 }));
  assert.equal(fewOrClustered(points.slice(0, 200)).length, 200);
  const grouped = fewOrClustered(points);
  assert.ok(grouped.length <= 8 * 7);
  assert.equal(grouped.reduce((sum, { points: own }) => sum + own.length, 0), 1000);
});

test("a cluster lies in the middle of its points", () => {
  const [only] = clusters([{ x: 1, y: 1 }, { x: 3, y: 5 }], 64);
  assert.deepEqual([only.x, only.y], [2, 3]);
});

test("the line of an offer shortens to the elder", () => {
  const [elder, student] = [{ lat: 41, lon: 29 }, { lat: 41.01, lon: 29.02 }];
  assert.deepEqual(endOfLine(elder, student, 1), { lat: 41.01, lon: 29.02 });
  assert.deepEqual(endOfLine(elder, student, 0), elder);
  assert.deepEqual([shareLeft(at(5), NOON, 600_000), shareLeft(at(-1), NOON, 600_000), shareLeft(at(20), NOON, 600_000)], [0.5, 0, 1]);
  const offer = { deadline: at(5), since: at(-5) };
  assert.equal(longestTtlMs([taskOf("a", { currentOffer: offer })], NOON), 600_000);
});

test("the map shows those on duty or busy, and offers with both ends", () => {
  const student = { id: 5, name: "Ahmet", lat: 41, lon: 29, onDuty: true, busy: false, offeredTaskId: null };
  const others = [{ ...student, id: 6, onDuty: false }, { ...student, id: 7, onDuty: false, busy: true }, { ...student, id: 8, offeredTaskId: "a", busy: true }];
  assert.deepEqual(studentPoints([student, ...others]).map(({ id, state }) => `${id} ${state}`), ["5 free", "7 busy", "8 asked"]);
  const asked = taskOf("a", { currentOffer: { deadline: at(5), studentId: 5 } });
  const unseen = taskOf("b", { currentOffer: { deadline: at(5), studentId: 99 } });
  assert.deepEqual(offerLines([asked, unseen, taskOf("c")], new Map([[5, student]])).map(({ id }) => id), ["a"]);
  assert.deepEqual(elderPoints([asked, taskOf("d", { location: null })], NOON).map(({ id }) => id), ["a"]);
});

// ---- one request ----

test("the timeline is in order and says how each offer ended", () => {
  const offers = [
    { studentName: "Ahmet", offeredAt: at(-9), closedAt: at(-5), state: "REJECTED", reason: null },
    { studentName: "Berat", offeredAt: null, closedAt: at(-5), state: "SKIPPED", reason: "HAS_A_TASK" },
    { studentName: "Ceren", offeredAt: at(-5), closedAt: at(-4), state: "ACCEPTED", reason: null },
  ];
  const task = taskOf("a", { status: "STARTED", assignedAt: at(-4), startedAt: at(-1), student: { id: 7, name: "Ceren" } });
  const steps = timelineSteps(task, offers).map(({ what, name }) => `${what} ${name ?? ""}`.trim());
  assert.deepEqual(steps, ["created", "asked Ahmet", "offer_rejected Ahmet", "offer_skipped Berat", "asked Ceren", "assigned Ceren", "started Ceren"]);
});

test("deeds follow the status", () => {
  assert.deepEqual(possibleDeeds(taskOf("a")), ["assign", "cancel"]);
  assert.deepEqual(possibleDeeds(taskOf("a", { currentOffer: {} })), ["assign", "next", "cancel"]);
  assert.deepEqual(possibleDeeds(taskOf("a", { status: "TIMED_OUT" })), []);
});

// ---- the stream ----

// `answers` are statuses, streams of text, or null for an answer that never comes.
async function followed(answers, { ticks }) {
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: NOON });
  const asked = [];
  const said = [];
  const fetch = (_path, { headers, signal }) => {
    asked.push(headers["Last-Event-ID"] ?? null);
    const answer = answers.shift() ?? null;
    if (typeof answer === "number") return Promise.resolve(new Response("{}", { status: answer }));
    if (answer !== null) return Promise.resolve(new Response(answer));
    return new Promise((_, refuse) => signal.addEventListener("abort", () => refuse(signal.reason)));
  };
  const on = { event: () => {}, fresh: () => said.push("fresh"), refused: (status) => said.push(status), state: () => {} };
  const stream = followEvents("/events", { token: () => "t", on, fetch, random: () => 0 });
  for (let tick = 0; tick < ticks; tick += 1) {
    for (let turn = 0; turn < 20; turn += 1) await new Promise((done) => setImmediate(done));
    mock.timers.tick(1000);
  }
  stream.close();
  mock.timers.reset();
  return { asked, said };
}

const READY = 'id: 150\nevent: READY\ndata: {"id":150,"type":"READY"}\n\n';

test("after a backup was restored the stream begins anew, and all is read again", async () => {
  const { asked, said } = await followed([READY, 400, READY], { ticks: 3 });
  assert.deepEqual([asked.slice(0, 3), said], [[null, "150", null], ["fresh", "fresh"]]);
});

test("a stream that is refused without an id is not asked for again", async () => {
  assert.deepEqual(await followed([400], { ticks: 3 }), { asked: [null], said: [400] });
});

test("an answer that does not begin is given up and asked for again", async () => {
  assert.equal((await followed([null, READY], { ticks: 42 })).said[0], "fresh");
});

test("a tab reads by itself while the tab with the stream is asleep", () => {
  let channel;
  globalThis.BroadcastChannel = class {
    constructor() {
      channel = this;
    }
    postMessage() {}
    close() {}
  };
  Object.defineProperty(globalThis.navigator, "locks", { value: { request: () => new Promise(() => {}) }, configurable: true });
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: NOON });
  const open = [];
  const seen = [];
  const follow = (_path, { on }) => {
    open.push(on);
    return { close: () => on.state("closed"), retryNow() {} };
  };
  const on = { event: ({ id }) => seen.push(id), state: (state) => seen.push(state), fresh: () => seen.push("fresh"), refused() {} };
  const tab = followTogether("/events", { name: "n", token: () => "t", on }, follow);
  channel.onmessage({ data: { state: "open" } });
  mock.timers.tick(50_000);
  channel.onmessage({ data: { alive: true } });
  mock.timers.tick(50_000);
  assert.deepEqual([open.length, seen], [0, ["open", "fresh"]]);
  mock.timers.tick(10_000);
  open[0].fresh();
  open[0].event({ id: 7 });
  channel.onmessage({ data: { event: { id: 8 } } });
  assert.deepEqual([open.length, seen.slice(2)], [1, ["fresh", 7, 8]]);
  tab.close();
  mock.timers.tick(100_000);
  assert.equal(open.length, 1);
  mock.timers.reset();
  delete globalThis.BroadcastChannel;
});

// ---- frame ----

test("a shortcut is one key, or two in a row", () => {
  const shortcuts = new Map([["n", "press"], ["g n", "nobody found"]]);
  assert.deepEqual([shortcutFor(shortcuts, "", "n"), shortcutFor(shortcuts, "g", "n"), shortcutFor(shortcuts, "g", "x")], ["press", "nobody found", null]);
});

test("an address names a view and a place in it, by what the person may see", () => {
  const at = (parts, role = "COORDINATOR") => viewAt({ parts, filters: {} }, role);
  assert.equal(at([]).view.path, "requests");
  assert.deepEqual(at(["requests", "7"]).place.parts, ["7"]);
  assert.equal(at(["jobs"]).view, undefined);
  assert.equal(at(["jobs"], "ADMIN").view.path, "jobs");
});

test("both languages of the console have the same words", () => {
  assert.deepEqual(Object.keys(CONSOLE_TR).sort(), Object.keys(CONSOLE_EN).sort());
  for (const [key, text] of Object.entries(CONSOLE_TR)) {
    if (typeof text !== "string") continue;
    const values = (one) => [...one.matchAll(/\{\w+\}/g)].map(String).sort();
    assert.deepEqual(values(text), values(CONSOLE_EN[key]), key);
  }
});
