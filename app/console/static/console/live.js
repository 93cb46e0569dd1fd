// Keeps what is known of this moment up to date: the board at once and when the stream is open, then its events.
//
// Events are applied together a few times a second. Tasks of which an event does not tell enough are read, each once for
// all events of that moment; if they are many, the board is read again instead.

import { followEvents } from "../shared/events.js";
import { createStore } from "../shared/store.js";
import { applyEvents, NOTHING_KNOWN, withBoard, withoutTasks, withStudents, withTasks } from "./live_state.js";

const COLLECT_MS = 200;
const BETWEEN_READS_MS = 1000;
const MOST_SINGLE_READS = 6;
const BETWEEN_BOARDS_MS = 5000;
const BOARD_PAGE = 1000;

export function createLive({ api, session, follow = followEvents }) {
  const store = createStore({ ...NOTHING_KNOWN, connection: "connecting", loaded: false, error: null });
  const listeners = new Set();
  const waiting = [];
  const toRead = new Set();
  let sinceBoard = null;
  let boardWanted = false;
  let boardReadAt = 0;
  let readAt = 0;
  let timer = null;
  let stream = null;
  let running = false;

  const soon = (delay = COLLECT_MS) => {
    if (running) timer ??= setTimeout(work, delay);
  };

  const take = (event) => {
    waiting.push(event);
    sinceBoard?.push(event);
    soon();
  };

  const work = async () => {
    timer = null;
    applyWaiting();
    if (sinceBoard !== null) return;
    if (toRead.size > MOST_SINGLE_READS) boardWanted = true;
    if (!boardWanted && toRead.size === 0) return;
    const next = boardWanted ? boardReadAt + BETWEEN_BOARDS_MS : readAt + BETWEEN_READS_MS;
    const pause = next - Date.now();
    if (pause > 0) soon(Math.max(pause, COLLECT_MS));
    else await (boardWanted ? readBoard() : readSome());
  };

  const applyWaiting = () => {
    const events = waiting.splice(0);
    if (!events.length) return;
    const { state, unknown } = applyEvents(store.get(), events);
    unknown.forEach((id) => toRead.add(id));
    store.set(state);
    listeners.forEach((listener) => listener(events));
  };

  const readSome = () => {
    readAt = Date.now();
    const ids = [...toRead];
    toRead.clear();
    return Promise.all(ids.map(readTask));
  };

  // An event that came while the task was read may be newer than the answer, so it is read again.
  const readTask = async (id) => {
    let overtaken = false;
    const forget = listen((events) => (overtaken ||= events.some((event) => event.taskId === id)));
    try {
      const task = await api.getTask(id);
      applyWaiting();
      if (overtaken) again(id);
      else store.set(withTasks(store.get(), [task]));
    } catch (error) {
      if (error.status === 404) store.set(withoutTasks(store.get(), [id]));
      else if (error.status !== 401) again(id);
    } finally {
      forget();
    }
  };

  const again = (id) => {
    toRead.add(id);
    soon();
  };

  // Events that come while the pages of the board are read are applied to it afterwards, once more.
  const readBoard = async () => {
    let failed = false;
    boardWanted = false;
    sinceBoard = [];
    toRead.clear();
    try {
      const items = [];
      for await (const item of api.showBoard({ limit: BOARD_PAGE })) items.push(item);
      const { state, unknown } = applyEvents(withBoard(store.get(), items), sinceBoard);
      unknown.forEach((id) => toRead.add(id));
      store.set({ ...state, loaded: true, error: null });
    } catch (error) {
      store.set({ error });
      failed = error.status !== 401;
    }
    sinceBoard = null;
    // Of what changed before a stream was open, only a board that was read later tells.
    if (!boardWanted) boardReadAt = Date.now();
    boardWanted ||= failed;
    if (boardWanted || toRead.size) soon();
  };

  const listen = (listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };

  const on = {
    event: take,
    state: (connection) => store.set({ connection }),
    fresh: () => {
      boardWanted = true;
      boardReadAt = 0;
      soon(0);
    },
    refused: (status) => {
      if (status === 401) session.end("expired");
    },
  };

  return {
    store,
    // Calls the listener with the events of a moment, after the state has them.
    listen,
    start() {
      running = true;
      stream = follow("/events", { token: session.token, on });
      // Not only when the stream is open: it may be refused for a while, and the list need not wait for it.
      readBoard();
      return () => {
        running = false;
        clearTimeout(timer);
        stream.close();
      };
    },
    retryNow: () => stream?.retryNow(),
    // After a deed of this page. Its event comes as well, but the stream may be interrupted.
    refresh: again,
    learnStudents: (students) => store.set(withStudents(store.get(), students)),
  };
}
