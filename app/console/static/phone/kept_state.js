// The last state that a phone has shown, for when it is opened without a connection. It holds a phone number and perhaps
// a place, so it is forgotten when somebody signs out, and not shown when it is old.

const SHOWN_MS = 12 * 60 * 60 * 1000;

// Tabs share what is kept, but each has a session of its own, so `sessions` remembers whose state a tab has written.
export function openKeptState(kind, { storage = globalThis.localStorage, sessions = globalThis.sessionStorage, now = Date.now } = {}) {
  const key = `yaninda.kept.${kind}`;
  const attempt = (deed) => {
    try {
      return deed();
    } catch {
      return null; // A browser that refuses storage keeps nothing.
    }
  };
  const forget = () => attempt(() => storage.removeItem(key));
  return {
    // Without a token somebody has just opened the app, and sees what it showed last.
    read(token) {
      const kept = attempt(() => JSON.parse(storage.getItem(key)));
      if (!kept || now() - kept.at > SHOWN_MS) return forget() ?? null;
      const owner = attempt(() => sessions.getItem(key));
      return token && owner !== String(kept.me.id) ? null : kept;
    },
    write(state) {
      attempt(() => storage.setItem(key, JSON.stringify(state)));
      attempt(() => sessions.setItem(key, String(state.me.id)));
    },
    forget,
  };
}
