import { createPressQueue } from "../../../app/console/static/phone/press_queue.js";
import { equal, test } from "./cases.js";

const HOUR_MS = 60 * 60 * 1000;

function storageOf(entries = new Map()) {
  return { getItem: (key) => entries.get(key) ?? null, setItem: (key, value) => entries.set(key, value), removeItem: (key) => entries.delete(key) };
}

const REFUSING = { getItem: refuse, setItem: refuse, removeItem: refuse };

function refuse() {
  throw new Error("storage is off");
}

function queueOf({ answers = [], storage = storageOf(), clock = { now: 0 } } = {}) {
  const sent = [];
  let keys = 0;
  const send = async (press) => {
    sent.push(press.key);
    const answer = answers.shift() ?? { id: "t1" };
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const queue = createPressQueue({ storage, send, now: () => clock.now, makeKey: () => `key-${(keys += 1)}` });
  return { queue, sent, storage, clock };
}

const unreachable = () => new Error("no connection");
const status = (code) => Object.assign(new Error(`${code}`), { status: code });

test("a press is sent with its key, and then it is over", async () => {
  const { queue, sent } = queueOf();
  queue.add(1, "Ekmek");
  equal((await queue.flush(1)).id, "t1");
  equal([sent, queue.state(1)], [["key-1"], null]);
});

test("a double press is one request", async () => {
  const { queue, sent } = queueOf();
  queue.add(1);
  const first = queue.flush(1);
  queue.add(1);
  const second = queue.flush(1);
  equal([(await first).id, (await second).id, sent], ["t1", "t1", ["key-1"]]);
});

test("a press without a connection stays, and is sent again with the same key", async () => {
  const { queue, sent } = queueOf({ answers: [unreachable(), status(503), status(429), status(401)] });
  queue.add(1);
  for (let tries = 0; tries < 4; tries += 1) equal(await queue.flush(1), null);
  equal(queue.state(1).key, "key-1");
  await queue.flush(1);
  equal([sent, queue.state(1)], [Array(5).fill("key-1"), null]);
});

test("a press outlives the page", async () => {
  const { queue, storage } = queueOf({ answers: [unreachable()] });
  queue.add(1, "Süt");
  await queue.flush(1);
  const next = queueOf({ storage });
  equal(next.queue.state(1).note, "Süt");
  await next.queue.flush(1);
  equal(next.sent, ["key-1"]);
});

test("a press is sent only for the person who pressed", async () => {
  const { queue, sent } = queueOf();
  queue.add(1);
  equal(await queue.flush(2), null);
  equal([sent, queue.state(2)], [[], null]);
});

test("a refused press is not repeated by itself, and the next press is a new one", async () => {
  const { queue, sent } = queueOf({ answers: [status(400)] });
  queue.add(1);
  await queue.flush(1);
  equal(queue.state(1).problem.status, 400);
  equal(await queue.flush(1), null);
  queue.add(1);
  await queue.flush(1);
  equal([sent, queue.state(1)], [["key-1", "key-2"], null]);
});

test("a press of this morning is not sent in the evening", async () => {
  const { queue, sent, clock } = queueOf({ answers: [unreachable()] });
  queue.add(1);
  await queue.flush(1);
  clock.now = 6 * HOUR_MS + 1;
  equal([queue.state(1).isOld, await queue.flush(1), sent.length], [true, null, 1]);
  queue.add(1);
  await queue.flush(1);
  equal(sent, ["key-1", "key-2"]);
});

test("another tab's answer ends the press here too", async () => {
  const storage = storageOf();
  const [one, other] = [queueOf({ storage }), queueOf({ storage })];
  one.queue.add(1);
  await other.queue.flush(1);
  equal([one.queue.state(1), await one.queue.flush(1), one.sent], [null, null, []]);
});

test("a browser without storage keeps the press while the page is open", async () => {
  const { queue, sent } = queueOf({ storage: REFUSING, answers: [unreachable()] });
  queue.add(1);
  await queue.flush(1);
  equal(queue.state(1).key, "key-1");
  await queue.flush(1);
  equal([sent, queue.state(1)], [["key-1", "key-1"], null]);
});

test("neither a press on its way nor a refused one holds back another person's", async () => {
  let answer;
  const sent = [];
  const send = ({ key }) => {
    sent.push(key);
    if (key === "of-2") return Promise.resolve({ id: "task-of-2" });
    return new Promise((_, refuse) => (answer = refuse));
  };
  const keys = ["of-1", "of-2", "again-of-2"];
  const queue = createPressQueue({ storage: storageOf(), send, makeKey: () => keys.shift() });
  queue.add(1);
  const first = queue.flush(1);
  queue.add(2);
  equal((await queue.flush(2)).id, "task-of-2");
  answer(status(403));
  await first;
  equal([queue.state(1).problem.status, queue.add(2).key, queue.state(2).problem, sent], [403, "again-of-2", null, ["of-1", "of-2"]]);
});

test("a press that the storage has no room for is sent instead of an old one", async () => {
  const full = { ...storageOf(new Map([["yaninda.press.1", JSON.stringify({ key: "old", note: null, at: -7 * HOUR_MS })]])), setItem: refuse };
  const { queue, sent } = queueOf({ storage: full });
  queue.add(1);
  await queue.flush(1);
  equal(sent, ["key-1"]);
});

test("a press of a clock that was a year ahead is not sent next week", async () => {
  const { queue, clock } = queueOf({ answers: [unreachable()] });
  clock.now = 9000 * HOUR_MS;
  queue.add(1);
  await queue.flush(1);
  clock.now = 200 * HOUR_MS;
  equal([queue.state(1).isOld, await queue.flush(1)], [true, null]);
});
