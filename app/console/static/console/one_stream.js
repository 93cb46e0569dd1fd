// One stream of events for all tabs of a person: browsers open six connections to a server and no more, and the service
// bounds the streams of a person. The tab that holds a lock has the stream, and tells the others what it reads. When it
// is closed, the lock goes to another tab, which connects anew and lets all tabs read afresh.

import { learnServerTime } from "../shared/clock.js";
import { followEvents } from "../shared/events.js";

const SILENT_MS = 60_000; // The tab with the stream says something every 15 s, or that it has no connection.

// Takes what `followEvents` takes, and a `name` that the tabs of a person share.
export function followTogether(path, { name, token, on }, follow = followEvents) {
  // Both need a secure context. Without them each tab has its own stream.
  if (!navigator.locks || !globalThis.BroadcastChannel) return follow(path, { token, on });
  const channel = new BroadcastChannel(name);
  const closing = new AbortController();
  let stream = null;
  let state = "connecting";
  let isFresh = false;
  let letGo = () => {};
  let silence = null;
  let leaveAlone = null;

  const tell = (message) => closing.signal.aborted || channel.postMessage(message);

  // A browser may put the tab with the stream to sleep, which keeps its lock. Then this one reads by itself.
  const hear = () => {
    leaveAlone?.();
    clearTimeout(silence);
    silence = setTimeout(readAlone, SILENT_MS);
  };

  const readAlone = () => {
    let isLeft = false;
    const state = (now) => isLeft || take({ state: now });
    const fresh = () => take({ fresh: true });
    const alone = follow(path, { token, on: { event: (event) => take({ event }), fresh, state, refused: on.refused } });
    leaveAlone = () => {
      isLeft = true;
      leaveAlone = null;
      alone.close();
    };
  };

  const stopHearing = () => {
    leaveAlone?.();
    clearTimeout(silence);
  };

  const lead = () => {
    stopHearing();
    stream = follow(path, {
      token,
      on: {
        event: (event) => both({ event }),
        fresh: () => both({ fresh: true }),
        state: (now) => both({ state: now }),
        alive: () => tell({ alive: true }),
        refused: on.refused,
      },
    });
    return new Promise((done) => (letGo = done));
  };

  const both = (message) => {
    take(message);
    tell(message);
  };

  const take = (message) => {
    if (message.event) {
      if (!stream && message.event.at) learnServerTime(message.event.at);
      on.event(message.event);
    } else if (message.fresh) {
      isFresh = true;
      on.fresh();
    } else if (message.state) {
      state = message.state;
      on.state(state);
    }
  };

  channel.onmessage = ({ data }) => {
    if (data.hello) {
      if (stream) tell({ state });
    } else if (data.retry) {
      stream?.retryNow();
    } else {
      if (!stream) hear();
      take(data);
      // Whoever comes to an open stream has not read anything yet.
      if (data.state === "open" && !isFresh) take({ fresh: true });
    }
  };
  hear();
  tell({ hello: true });
  navigator.locks.request(name, { signal: closing.signal }, lead).catch(() => {});

  return {
    close() {
      closing.abort();
      stopHearing();
      stream?.close();
      letGo();
      channel.close();
    },
    retryNow() {
      if (stream) stream.retryNow();
      else tell({ retry: true });
    },
  };
}
