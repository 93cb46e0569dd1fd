// Reads a stream of server-sent events with `fetch`, because `EventSource` cannot send a token and a token may not stand
// in an address. Connects again by itself after the id that was read last, and notices a silent connection.

import { learnServerTime } from "./clock.js";

const SILENT_MS = 40_000; // The server says something every 15 s.
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

// `on.event(event)` for each event, `on.state(state)` with "connecting", "open", "waiting" or "closed",
// `on.alive()`, if given, when the server says that nothing has happened,
// `on.fresh()` when events may have been missed, so that what is shown has to be read again,
// `on.refused(status)` when the server does not let us in, after which nothing more comes.
export function followEvents(path, { token, on, fetch = globalThis.fetch, random = Math.random }) {
  let lastId = null;
  let closed = false;
  let attempt = null;
  let failures = 0;
  let timer = null;

  const connect = async () => {
    timer = null;
    attempt = new AbortController();
    on.state("connecting");
    try {
      await readOnce(path, { token, fetch, lastId, signal: attempt, on: { ...on, event: take, open: opened } });
    } catch (error) {
      if (error instanceof Refused) return refused(error.status);
    }
    if (!closed) again();
  };

  const opened = () => {
    failures = 0;
    on.state("open");
  };

  const take = (event) => {
    if (event.at) learnServerTime(event.at);
    if (event.type === "READY") {
      const isFirst = lastId === null;
      lastId = event.id;
      if (isFirst) on.fresh();
    } else if (event.id !== undefined) {
      lastId = event.id;
      on.event(event);
    } else {
      on.alive?.();
    }
  };

  const refused = (status) => {
    // The events after this id are gone, or the id is of a time before a backup was restored.
    if (status === 410 || (status === 400 && lastId !== null)) {
      lastId = null;
      return again();
    }
    closed = true;
    on.state("closed");
    on.refused(status);
  };

  const again = () => {
    const longest = Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS);
    failures += 1;
    on.state("waiting");
    timer = setTimeout(connect, longest * (0.5 + random() / 2));
  };

  connect();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
      attempt?.abort();
      on.state("closed");
    },
    // For a page that comes back to the front or has a connection again: nothing is won by waiting longer.
    retryNow() {
      if (closed || timer === null) return;
      clearTimeout(timer);
      failures = 0;
      connect();
    },
  };
}

class Refused extends Error {
  constructor(status) {
    super(`refused with ${status}`);
    this.status = status;
  }
}

async function readOnce(path, { token, fetch, lastId, signal, on }) {
  const headers = { Accept: "text/event-stream", Authorization: `Bearer ${token()}` };
  if (lastId !== null) headers["Last-Event-ID"] = String(lastId);
  const answer = await withinSilence(signal, fetch(path, { headers, signal: signal.signal, cache: "no-store" }));
  // Overload and restarts pass; what is said of the caller does not.
  if ([400, 401, 403, 404, 410].includes(answer.status)) throw new Refused(answer.status);
  if (!answer.ok) throw new Error(`answered with ${answer.status}`);
  on.open();
  await readLines(answer.body.getReader(), signal, on.event);
}

async function readLines(reader, signal, take) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { value, done } = await withinSilence(signal, reader.read());
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parseEvent(block);
      if (event) take(event);
    }
  }
}

// Also for the beginning of an answer: a server that hangs, or a proxy that collects, may never send it.
function withinSilence(signal, promise) {
  const silence = setTimeout(() => signal.abort(), SILENT_MS);
  return promise.finally(() => clearTimeout(silence));
}

// The data of every event of ours is one line of JSON that repeats its id and type.
function parseEvent(block) {
  const line = block.split("\n").find((one) => one.startsWith("data:"));
  return line ? JSON.parse(line.slice(5)) : null;
}
