// The server's time. Deadlines are the server's, and clocks of phones are wrong by minutes.

let aheadMs = 0;

// `receivedAtMs` is when the answer came, by this machine's clock.
export function learnServerTime(instant, receivedAtMs = Date.now()) {
  const serverMs = Date.parse(instant);
  if (!Number.isNaN(serverMs)) aheadMs = serverMs - receivedAtMs;
}

export function serverNow() {
  return Date.now() + aheadMs;
}

export function secondsUntil(instant, nowMs = serverNow()) {
  return Math.max(0, (Date.parse(instant) - nowMs) / 1000);
}

export function secondsSince(instant, nowMs = serverNow()) {
  return Math.max(0, (nowMs - Date.parse(instant)) / 1000);
}
