// The answer of `GET /me`, kept up to date: read again after each event, and every few seconds while there is no stream
// of events.

import { learnServerTime, serverNow } from "../shared/clock.js";
import { followEvents } from "../shared/events.js";
import { createStore } from "../shared/store.js";
import { changesOf } from "./me_changes.js";

const POLL_MS = 4000;
const QUIET_POLL_MS = 60_000; // Beside a stream, in case it says nothing by a mistake of ours.
const TIMEOUT_MS = 8000;
const NOTHING = { me: null, at: null, ended: null, withdrawn: null, lostOffer: null, answering: null };

// The store has `me` and when it was read (`at`), what `changesOf` says of it, `answering`, the task whose offer is being
// answered on this phone, `connection` ("starting", "there" or "lost") and `refused`, the error of a server that answers
// but not with `me`.
export function openLiveMe({ session, api, kept }) {
  const store = createStore({ ...NOTHING, ...kept.read(session.token()), connection: "starting", refused: null });
  // What was shown before somebody signed in. It may be another person's, so it is not shown any more.
  let hidden = null;
  let stream = null;
  let streamIsOpen = false;
  let timer = null;
  let reading = null;
  let isStale = false;
  let losses = 0;

  const take = async (me, connection) => {
    if (me.serverTime) learnServerTime(me.serverTime);
    const before = hidden ?? store.get();
    hidden = null;
    const { gone, withdrawn, lostOffer } = changesOf(before, me, serverNow());
    const ended = gone ? await endOf(api, gone) : before.me?.id === me.id && !me.openTask ? before.ended : null;
    const keptOffer = me.offer || me.openTask || before.me?.id !== me.id ? null : before.lostOffer;
    set({ me, at: Date.now(), ended, withdrawn, lostOffer: lostOffer ?? keptOffer, connection, refused: null });
  };

  const set = (changes) => {
    store.set(changes);
    const { me, at, ended, withdrawn, lostOffer } = store.get();
    if (me) kept.write({ me, at, ended, withdrawn, lostOffer });
  };

  const readOnce = async () => {
    const token = session.token();
    const lossesBefore = losses;
    try {
      const me = await api.me({ timeoutMs: TIMEOUT_MS });
      // Somebody else may have signed in meanwhile.
      if (session.token() !== token) return;
      // An answer that was on its way when the connection was lost does not mean that it is back.
      await take(me, losses === lossesBefore ? "there" : "lost");
    } catch (error) {
      // A token that was refused has ended the session.
      if (error.status !== 401) set(error.status ? { connection: "there", refused: error } : { connection: "lost" });
    }
  };

  // What changes while an answer is on its way asks for another one.
  const read = async () => {
    isStale = reading !== null;
    reading ??= (async () => {
      do {
        isStale = false;
        await readOnce();
      } while (isStale && session.token());
      reading = null;
      plan();
    })();
    await reading;
  };

  const plan = () => {
    clearTimeout(timer);
    if (session.token()) timer = setTimeout(read, streamIsOpen ? QUIET_POLL_MS : POLL_MS);
  };

  const follow = () => {
    stream = followEvents("/events", {
      token: session.token,
      on: {
        event: read,
        fresh: read,
        state(state) {
          streamIsOpen = state === "open";
          if (!streamIsOpen) plan();
        },
        refused(status) {
          if (status === 401) session.end("expired");
        },
      },
    });
  };

  const back = () => {
    if (!session.token()) return store.set({ connection: "starting" });
    stream?.retryNow();
    read();
  };
  const away = () => {
    losses += 1;
    set({ connection: "lost" });
  };

  const stop = () => {
    stream?.close();
    stream = null;
    clearTimeout(timer);
  };

  // Nobody is asked to sign in while there is no connection.
  const start = () => {
    stop();
    if (!session.token()) return store.set({ connection: navigator.onLine ? "starting" : "lost" });
    follow();
    read();
  };

  session.onChange((reason) => {
    if (reason === "signed_out") kept.forget();
    if (reason === "begun") hidden = store.get();
    if (reason !== "expired") store.set({ ...NOTHING, refused: null });
    start();
  });
  globalThis.addEventListener("online", back);
  globalThis.addEventListener("offline", away);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) back();
  });
  start();
  if (!navigator.onLine) away();
  // `know` is for what the answer to a deed tells, so that the phone shows it at once.
  return {
    store,
    read,
    know: (changes) => set({ me: { ...store.get().me, ...changes } }),
    forget: (name) => set({ [name]: null }),
    answering: (taskId) => store.set({ answering: taskId }),
  };
}

// Nothing else of a task that has ended is kept on the phone.
async function endOf(api, { id }) {
  try {
    const { status } = await api.getTask(id, { timeoutMs: TIMEOUT_MS });
    return { id, status };
  } catch (error) {
    // It does not concern a student any more to whom it does not belong.
    return error.status === 404 ? { id, status: "PENDING" } : null;
  }
}
