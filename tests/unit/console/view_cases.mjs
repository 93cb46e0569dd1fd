// Cases of the views that need no page. test_view_modules.py runs them in Node.

import assert from "node:assert/strict";
import { test } from "node:test";

const VIEWS = "../../../app/console/static/console/views";
const { csvOf } = await import(`${VIEWS}/files.js`);
const { daysOf, isMonth, monthsAround, shifted, thisMonth } = await import(`${VIEWS}/figures/months.js`);
const { stacked } = await import(`${VIEWS}/figures/plot_options.js`);
const { fieldsOfSchema, paramsOf, textsOf } = await import(`${VIEWS}/jobs/job_params.js`);
const { changesOf, fieldsOf, wrongFields } = await import(`${VIEWS}/people/person_fields.js`);
const { keysOf, valueOf, variablesOf } = await import(`${VIEWS}/plans/template_texts.js`);
const { changedValues, fieldsOfStep, movesDown, orderOfNew, valuesOfStep } = await import(`${VIEWS}/plans/step_fields.js`);
const { isApprovable, kindsOf } = await import(`${VIEWS}/roster/report_lines.js`);
const { missingIn, queryOf, subjectOf } = await import(`${VIEWS}/audit/audit_query.js`);
const auditChanges = await import(`${VIEWS}/audit/audit_changes.js`);
const { CONSOLE_TR } = await import(`${VIEWS}/../words_tr.js`);
const { VIEWS_EN } = await import(`${VIEWS}/words_en.js`);
const { VIEWS_TR } = await import(`${VIEWS}/words_tr.js`);

test("a table as a file quotes what a spreadsheet would misread", () => {
  const columns = [{ key: "name", label: "Ad, soyad" }, { key: "count", label: "Sayı" }];
  const rows = [{ name: "=1+1", count: -3 }, { name: 'a "b"', count: null }];
  assert.equal(csvOf(columns, rows), '\ufeff"Ad, soyad",Sayı\r\n\'=1+1,-3\r\n"a ""b""",\r\n');
});

test("months go over the end of a year, and none is chosen that is not one", () => {
  assert.equal(shifted("2026-01", -1), "2025-12");
  assert.equal(shifted("2026-12", 1), "2027-01");
  assert.deepEqual(["2026-13", "2026-1", undefined, "1999-01"].filter(isMonth), []);
  assert.equal(daysOf("2028-02").length, 29);
  assert.equal(thisMonth(new Date(2026, 10, 19).getTime()), "2026-11");
  assert.deepEqual(monthsAround("2019-05", "2026-11", 2), ["2026-11", "2026-10", "2019-05"]);
});

test("stacked bars are sums, the highest first, and a day without values stays empty", () => {
  assert.deepEqual(stacked([[1, null], [2, null], [3, null]]), [[6, null], [3, null], [1, null]]);
});

const SCHEMA = {
  required: ["count"],
  properties: {
    count: { type: "integer" },
    since: { anyOf: [{ type: "string", format: "date-time" }, { const: "all", type: "string" }, { type: "null" }], default: null },
    month: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    share: { type: "number", default: 0.8 },
    kinds: { type: "array", items: { type: "integer" }, default: [1] },
    language: { type: "string", enum: ["tr", "en"], default: "en" },
    fix: { type: "boolean", default: true },
    more: { type: "object" },
  },
};

test("a declaration becomes a form that begins with what the script would use", () => {
  const fields = fieldsOfSchema(SCHEMA);
  assert.deepEqual(fields.map(({ kind }) => kind), ["integer", "text", "text", "number", "list", "choice", "boolean", "json"]);
  assert.deepEqual(textsOf(fields), { count: "", since: "", month: "", share: "0.8", kinds: "1", language: "en", fix: true, more: "" });
});

test("a form becomes parameters of the declared types, without what is empty", () => {
  const fields = fieldsOfSchema(SCHEMA);
  const written = { ...textsOf(fields), count: "3", share: "0,5", kinds: "4, 5", more: '{"a":1}' };
  const params = { count: 3, share: 0.5, kinds: [4, 5], language: "en", fix: true, more: { a: 1 } };
  assert.deepEqual(paramsOf(fields, written), { params, mistakes: {} });
});

test("mistakes in a form are named before anything is sent", () => {
  const fields = fieldsOfSchema(SCHEMA);
  const { mistakes } = paramsOf(fields, { ...textsOf(fields), share: "much", kinds: "1.5", more: "{" });
  assert.deepEqual(mistakes, { count: "required", share: "mustBeNumber", kinds: "mustBeWhole", more: "mustBeJson" });
});

const AYSE = { role: "ELDER", name: "Ayşe", phone: "+905550100002", locale: "tr", location: { lat: 40.98, lon: 29.03 }, institutionId: 4, firebaseUid: null };

test("only what differs of a person is sent", () => {
  const before = fieldsOf(AYSE);
  assert.deepEqual(changesOf({ ...before, phone: "+90 (555) 010-00-02", role: "ADMIN" }, before), {});
  assert.deepEqual(changesOf({ ...before, lat: "41,5", institutionId: "" }, before), { location: { lat: 41.5, lon: 29.03 }, institutionId: null });
  assert.deepEqual(changesOf({ ...before, lat: " ", lon: "" }, before), { location: null });
});

test("a new person has what was written, and no more", () => {
  const fields = { ...fieldsOf(null), name: " Ali ", role: "STUDENT", lat: "up" };
  assert.deepEqual(changesOf(fields), { role: "STUDENT", name: "Ali", locale: "tr", location: { lat: "up", lon: "" } });
});

test("what is wrong stands at its field", () => {
  const fields = [{ field: "location.lon", code: "wrong_type", message: "m" }, { field: "name", code: "new", message: "is odd" }, { field: "location", code: "new", message: "x" }];
  assert.deepEqual(wrongFields({ fields }, (code) => (code === "new" ? null : "Words")), { lon: "Words", name: "is odd", lat: "x" });
});

test("the variables of a template are the names in its blocks", () => {
  const text = "Yeni {% if minutes %}{{ minutes }} dakika{{ '' if minutes == 1 else 's' }}{% endif %} {{ person.name | upper }} {% for one in kinds %}x{% endfor %}";
  assert.deepEqual(variablesOf("{{ student }}", text), ["student", "minutes", "person", "one", "kinds"]);
  assert.deepEqual(["10", "007", "Ahmet"].map(valueOf), [10, "007", "Ahmet"]);
});

test("templates of both languages are one entry", () => {
  const of = (locale, subject) => ({ key: "a.b", locale, subject });
  assert.deepEqual(keysOf([of("en", "Help"), of("tr", "Yardım")]), [{ key: "a.b", subject: "Yardım", locales: ["tr", "en"] }]);
});

test("only the newest run of a kind can be approved", () => {
  const held = { rows: 10, removals_held: "TOO_MANY", removals_found: 8 };
  const run = (id, kinds) => ({ id, report: { kinds } });
  const runs = [run(3, { elders: { rows: 4 } }), run(2, { students: held }), run(1, { students: held, elders: held })];
  assert.deepEqual(runs.map((one) => isApprovable(one, runs)), [false, true, false]);
  assert.deepEqual(kindsOf(runs[1].report).map(({ kind, heldBack }) => [kind, heldBack]), [["students", 8]]);
});

test("changes of the audit trail are read from its text, and odd text has none", () => {
  const metadata = JSON.stringify({ changes: [{ table: "users", row: { id: 6 }, before: null, after: { name: "A" } }, null] });
  assert.deepEqual(auditChanges.changesOf(metadata), [{ title: "users 6", fields: [{ name: "name", before: undefined, after: "A" }] }]);
  assert.deepEqual(["{", "null", "[]"].map((text) => auditChanges.changesOf(text)), [[], [], []]);
});

test("the words of the views are the same in both languages, and are not those of the frame", () => {
  const values = (text) => String(text).match(/\{\w+\}/g)?.sort() ?? [];
  assert.deepEqual(Object.keys(VIEWS_TR), Object.keys(VIEWS_EN));
  assert.deepEqual(Object.keys(VIEWS_TR).filter((key) => key in CONSOLE_TR), []);
  for (const [key, text] of Object.entries(VIEWS_TR)) if (typeof text === "string") assert.deepEqual(values(text), values(VIEWS_EN[key]), key);
});

test("a filter of the trail asks for what is whole, and for wrong times as they are", () => {
  const nothing = { author: undefined, deed: undefined, since: undefined, until: undefined };
  assert.deepEqual(queryOf({ author: " ", more: "x" }), nothing);
  const since = new Date("2026-03-12T10:00").toISOString();
  assert.deepEqual(queryOf({ since: "2026-03-12T10:00", until: "soon" }), { ...nothing, since, until: "soon" });
  assert.deepEqual(queryOf({ subjectKind: "USER", subjectId: "6 " }), { ...nothing, subjectKind: "USER", subjectId: "6" });
  assert.deepEqual(queryOf({ subjectKind: "USER" }), nothing);
  assert.deepEqual(missingIn({ subjectKind: "USER" }), { subjectId: "auditIdNeeded" });
  assert.deepEqual(missingIn({ subjectId: "6" }), { subjectKind: "auditKindNeeded" });
  assert.deepEqual(missingIn({ subjectKind: "USER", subjectId: "6" }), {});
});

test("the address of an entry says what it is about", () => {
  const task = "01900000-0000-7000-8000-000000000007";
  assert.deepEqual(subjectOf("/users/6/availability"), { subjectKind: "USER", subjectId: "6" });
  assert.deepEqual(subjectOf(`task:${task}`), { subjectKind: "TASK", subjectId: task });
  assert.deepEqual(subjectOf("/api/v1/action-plans/3/steps/5"), { subjectKind: "PLAN", subjectId: "3" });
  assert.deepEqual(subjectOf("/api/v1/roster/runs/8/approve"), { subjectKind: "ROSTER_RUN", subjectId: "8" });
  assert.deepEqual(["/users", "operator", "/users/6x", "plan:x"].map(subjectOf), [null, null, null, null]);
});

const numbered = (...orders) => orders.map((stepOrder) => ({ id: `s${stepOrder}`, stepOrder }));

test("a step moves down by calls of which only the last one changes the order", () => {
  assert.deepEqual(movesDown(numbered(1, 2), "s1"), [{ id: "s1", stepOrder: 3 }]);
  assert.deepEqual(movesDown(numbered(1, 4, 9), "s1"), [{ id: "s1", stepOrder: 5 }]);
  for (const orders of [[1, 2, 3], [1, 2, 3, 4, 8], [3, 5, 6, 7, 9], [97, 98, 99]]) {
    const steps = numbered(...orders);
    const names = () => [...steps].sort((one, other) => one.stepOrder - other.stepOrder).map(({ id }) => id);
    const before = names();
    const moves = movesDown(numbered(...orders), before[0]);
    moves.forEach(({ id, stepOrder }, at) => {
      assert.ok(!steps.some((step) => step.stepOrder === stepOrder), "two steps have one number");
      steps.find((step) => step.id === id).stepOrder = stepOrder;
      if (at < moves.length - 1) assert.deepEqual(names(), before);
    });
    assert.deepEqual(names(), [before[1], before[0], ...before.slice(2)]);
  }
  assert.equal(movesDown(numbered(98, 99, 100), "s98"), null);
  assert.deepEqual([orderOfNew([]), orderOfNew(numbered(1, 7)), orderOfNew(numbered(100))], [1, 8, null]);
});

test("only what was changed in a step is sent, and what is empty is null", () => {
  const step = { channelType: "push", audience: "PERSON", templateKey: "a", onFailure: "STOP", fallback: ["sms"], withinS: 60 };
  const before = valuesOfStep(fieldsOfStep({ ...step, mayArriveTwice: true }));
  const now = valuesOfStep({ ...fieldsOfStep({ ...step, mayArriveTwice: true }), withinS: " ", templateKey: "", fallback: [] });
  assert.deepEqual(changedValues(now, before), { withinS: null, templateKey: null, fallback: [] });
  assert.equal(valuesOfStep({ ...fieldsOfStep(null), withinS: "soon" }).withinS, "soon");
});
