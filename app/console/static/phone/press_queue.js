// A press until it has reached the server. It is stored before it is sent, with the key that makes a repeated request
// harmless, so neither a lost connection nor an expired token nor a second tab loses or doubles it.

// Help that was wanted in the morning may not be wanted in the evening.
const OLD_MS = 6 * 60 * 60 * 1000;
const REFUSED_FOR_NOW = [401, 408, 429];

export function storageKey(userId) {
  return `yaninda.press.${userId}`;
}

// `send(press)` asks the server and returns the task. Each person has a press of their own on this phone.
export function createPressQueue({ storage, send, now = Date.now, makeKey = () => crypto.randomUUID() }) {
  const listeners = new Set();
  const memory = new Map(); // Used while the browser refuses storage.
  let running = null;
  let problem = null;
  const tell = () => listeners.forEach((listener) => listener());

  const read = (userId) => {
    try {
      return JSON.parse(storage.getItem(storageKey(userId))) ?? memory.get(userId) ?? null;
    } catch {
      return memory.get(userId) ?? null;
    }
  };
  const write = (userId, press) => {
    memory.delete(userId);
    try {
      if (press) storage.setItem(storageKey(userId), JSON.stringify(press));
      else storage.removeItem(storageKey(userId));
    } catch {
      if (press) memory.set(userId, press);
    }
    tell();
  };
  const isOld = (press) => now() - press.at > OLD_MS;

  const sendNow = async (userId, press) => {
    try {
      const task = await send(press);
      if (read(userId)?.key === press.key) write(userId, null);
      return task;
    } catch (error) {
      // Whatever the server refuses for good would be refused again.
      if (error.status >= 400 && error.status < 500 && !REFUSED_FOR_NOW.includes(error.status)) problem = error;
      return null;
    } finally {
      running = null;
      tell();
    }
  };

  return {
    // What the phone shows: null, or the press with how it stands.
    state(userId) {
      const press = read(userId);
      return press && { ...press, sending: running !== null, isOld: isOld(press), problem };
    },
    // A second press is the first one, unless that one is over.
    add(userId, note) {
      const press = read(userId);
      if (press && !isOld(press) && !problem) return press;
      problem = null;
      const added = { key: makeKey(), note: note || null, at: now() };
      write(userId, added);
      return added;
    },
    // Resolves to the task, or to null if the server does not have the press yet.
    async flush(userId) {
      const press = read(userId);
      if (!press || isOld(press) || problem) return null;
      running ??= sendNow(userId, press);
      tell();
      return running;
    },
    drop(userId) {
      problem = null;
      write(userId, null);
    },
    // Also for another tab, which has changed the storage.
    tell,
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
