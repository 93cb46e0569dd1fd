// The client for pages against a server that answers as each case says. Run by test_client.py.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { createClient, ProblemError, Unreachable } from "../../../app/console/static/shared/client.js";

const requests = [];
let answers = [];
let client;
let server;
let baseUrl;

before(async () => {
  server = createServer(async (request, response) => {
    const pieces = await Array.fromAsync(request);
    const { method, url, headers } = request;
    requests.push({ method, url, headers, body: Buffer.concat(pieces).toString() });
    const answer = answers.shift();
    // Without an answer, the caller waits.
    if (!answer) return;
    response.writeHead(answer.status ?? 200, answer.headers).write(answer.body ?? "");
    if (!answer.isCutOff) response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  baseUrl = `http://127.0.0.1:${server.address().port}`;
});

beforeEach(() => {
  requests.length = 0;
  client = createClient({ baseUrl, token: () => "token-1", locale: () => "tr" });
});

after(() => {
  server.closeAllConnections();
  server.close();
});

const json = (content, status = 200) => ({ status, body: JSON.stringify(content) });
const problem = (content, headers = {}) => ({
  status: content.status,
  headers: { "Content-Type": "application/problem+json", ...headers },
  body: JSON.stringify({ type: "about:blank", title: "Conflict", detail: "It is over.", ...content }),
});

async function thrownBy(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  assert.fail("nothing was thrown");
}

test("an answer is the object that the service sends", async () => {
  answers = [json({ id: "t1", status: "PENDING" }, 201)];
  assert.deepEqual(await client.createTask({ note: "Süt" }, { idempotencyKey: "key-1" }), { id: "t1", status: "PENDING" });
  const [{ method, url, headers, body }] = requests;
  assert.deepEqual([method, url, JSON.parse(body)], ["POST", "/tasks", { note: "Süt" }]);
  assert.equal(headers.authorization, "Bearer token-1");
  assert.equal(headers["idempotency-key"], "key-1");
  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers["accept-language"], "tr");
});

test("without a token, a body and options, their headers are absent", async () => {
  answers = [json({ status: "ok" }), json({ id: "t1" })];
  const stranger = createClient({ baseUrl, token: () => null });
  await stranger.healthz();
  await stranger.createTask();
  for (const { headers, body } of requests) {
    for (const name of ["authorization", "idempotency-key", "content-type"]) assert.equal(headers[name], undefined, name);
    assert.equal(body, "");
  }
});

test("an answer without a body is null", async () => {
  answers = [{ status: 204 }];
  assert.equal(await client.myOffer(), null);
});

test("a problem is thrown with everything that a page needs", async () => {
  const errors = [{ field: "location.lat", message: "should be a finite number", code: "out_of_range" }];
  answers = [problem({ status: 429, code: "too_many_requests", errors }, { "Retry-After": "7" })];
  const error = await thrownBy(client.createTask({}));
  assert.ok(error instanceof ProblemError && error instanceof Error);
  const { status, code, title, detail, fields, retryAfterS, message } = error;
  assert.deepEqual([status, code, title, detail, message], [429, "too_many_requests", "Conflict", "It is over.", "It is over."]);
  assert.deepEqual([fields, retryAfterS], [errors, 7]);
});

test("Retry-After may be a date", async () => {
  answers = [problem({ status: 503, code: "overloaded" }, { "Retry-After": new Date(Date.now() + 60_000).toUTCString() })];
  const { retryAfterS } = await thrownBy(client.me());
  assert.ok(retryAfterS > 50 && retryAfterS <= 60, String(retryAfterS));
});

test("an error of a proxy has its status for a code", async () => {
  answers = [
    { status: 502, headers: { "Content-Type": "text/html" }, body: "<h1>Bad Gateway</h1>" },
    { status: 403, headers: { "Content-Type": "application/json" }, body: '{"code": "task_not_found"}' },
  ];
  const [gateway, firewall] = [await thrownBy(client.me()), await thrownBy(client.me())];
  assert.deepEqual([gateway.status, gateway.code, gateway.fields, gateway.retryAfterS], [502, "http_502", [], null]);
  assert.equal(firewall.code, "http_403");
});

test("an answer that is not JSON is not from the service", async () => {
  answers = [{ headers: { "Content-Type": "text/html" }, body: "<h1>Sign in to this network</h1>" }];
  const error = await thrownBy(client.me());
  assert.ok(error instanceof Unreachable);
  assert.equal(error.reason, "INVALID_ANSWER");
});

test("nobody listens", async () => {
  const error = await thrownBy(createClient({ baseUrl: "http://127.0.0.1:1", token: () => null }).me());
  assert.ok(error instanceof Unreachable);
  assert.deepEqual([error.reason, error.cause.constructor], ["NETWORK", TypeError]);
});

test("a call that takes too long ends", async () => {
  answers = [];
  const error = await thrownBy(client.me({ timeoutMs: 20 }));
  assert.ok(error instanceof Unreachable);
  assert.equal(error.reason, "TIMEOUT");
});

test("the time covers the body of the answer", async () => {
  answers = [{ body: '{"id": ', isCutOff: true }];
  const error = await thrownBy(client.me({ timeoutMs: 100 }));
  assert.ok(error instanceof Unreachable);
  assert.equal(error.reason, "TIMEOUT");
});

test("the caller can abort before and during the call, and gets the own reason", async () => {
  const stop = new AbortController();
  const reason = new Error("the page was left");
  answers = [];
  const during = client.me({ signal: stop.signal });
  while (requests.length === 0) await new Promise(setImmediate);
  stop.abort(reason);
  assert.equal(await thrownBy(during), reason);
  assert.equal(await thrownBy(client.me({ signal: stop.signal })), reason);
  assert.equal(requests.length, 1);
  assert.equal((await thrownBy(client.me({ signal: AbortSignal.abort() }))).name, "AbortError");
});

test("values are encoded in paths and queries", async () => {
  answers = [json({ id: "t1" }), json({ items: [], nextCursor: null }), json({ items: [], nextCursor: null }), json({})];
  await client.getTask("a/b?c#d é");
  await client.listTasks({ cursor: "x&y=1+2 ş", status: "PENDING", limit: undefined });
  await client.listMessages({ unread: true, cursor: null });
  await client.getStep(7, 12);
  assert.deepEqual(
    requests.map(({ url }) => url),
    [
      "/tasks/a%2Fb%3Fc%23d%20%C3%A9",
      "/tasks?cursor=x%26y%3D1%2B2+%C5%9F&status=PENDING",
      "/me/messages?unread=true",
      "/api/v1/action-plans/7/steps/12",
    ],
  );
});

test("a parameter that would change the path is refused", () => {
  for (const missing of ["", ".", "..", null, undefined]) assert.throws(() => client.getTask(missing), TypeError);
  assert.equal(requests.length, 0);
});

test("a list is a page, or the items of all pages", async () => {
  const pages = () => [json({ items: [1, 2], nextCursor: "c1" }), json({ items: [], nextCursor: "c2" }), json({ items: [3], nextCursor: null })];
  answers = pages();
  assert.deepEqual(await client.listTasks({ status: "PENDING" }), { items: [1, 2], nextCursor: "c1" });
  answers = pages();
  requests.length = 0;
  assert.deepEqual(await Array.fromAsync(client.listTasks({ status: "PENDING" })), [1, 2, 3]);
  assert.deepEqual(
    requests.map(({ url }) => url),
    ["/tasks?status=PENDING", "/tasks?status=PENDING&cursor=c1", "/tasks?status=PENDING&cursor=c2"],
  );
});

test("an error on a later page reaches the reader", async () => {
  answers = [json({ items: [1], nextCursor: "c1" }), problem({ status: 503, code: "overloaded" })];
  assert.equal((await thrownBy(Array.fromAsync(client.listTasks()))).code, "overloaded");
});

test("files go and come as they are", async () => {
  answers = [json({ sha256: "…", size: 3 }), { body: "a,b\n" }];
  await client.pushList("students", "itu", new Blob(["zip"]), { rosterSha256: "abc" });
  const artifact = await client.getArtifact("j1", "tablo.csv");
  assert.deepEqual([requests[0].body, requests[0].headers["roster-sha256"]], ["zip", "abc"]);
  assert.equal(await artifact.text(), "a,b\n");
});

test("a token that cannot be a header is the caller's mistake, not the network's", async () => {
  const wrong = createClient({ baseUrl, token: () => "bir\nsatır" });
  assert.equal((await thrownBy(wrong.me())).constructor, TypeError);
});
