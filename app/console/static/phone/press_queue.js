// A press until it has reached the server. It is stored before it is sent, with the key that makes a repeated request
// harmless, so neither a lost connection nor an expired token nor a second tab loses or doubles it.

// Help that was wanted in the morning may not be wanted in the evening.
export const OLD_MS = 6 * 60 * 60 * 1000;
const REFUSED_FOR_NOW = [401, 408, 429];

export function storageKey(userId) {
  return `yaninda.press.${userId}`;
}

// `send(press)` asks the server and returns the task. Each person has a press of their own on this phone.
export function createPressQueue({ storage, send, now = Date.now, makeKey = () => crypto.randomUUID() }) {
  const listeners = new Set();
  const memory = new Map(); // Used while the browser refuses storage.
  // Of each person, because another one may sign in while an answer is on its way.
  const running = new Map();
  const problems = new Map();
  const tell = () => listeners.forEach((listener) => listener());

  // What is in memory was refused by the storage, so it is newer than what is there.
  const read = (userId) => {
    try {
      return memory.get(userId) ?? JSON.parse(storage.getItem(storageKey(userId)));
    } catch {
      return null;
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
  // A clock that was ahead has been set back meanwhile, so nobody knows how old the press is.
  const isOld = (press) => Math.abs(now() - press.at) > OLD_MS;

  const sendNow = async (userId, press) => {
    try {
      const task = await send(press);
      if (read(userId)?.key === press.key) write(userId, null);
      return task;
    } catch (error) {
      // Whatever the server refuses for good would be refused again.
      if (error.status >= 400 && error.status < 500 && !REFUSED_FOR_NOW.includes(error.status)) problems.set(userId, error);
      return null;
    } finally {
      running.delete(userId);
      tell();
    }
  };

  return {
    // What the phone shows: null, or the press with how it stands.
    state(userId) {
      const press = read(userId);
      return press && { ...press, sending: running.has(userId), isOld: isOld(press), problem: problems.get(userId) ?? null };
    },
    // A second press is the first one, unless that one is over.
    add(userId, note) {
      const press = read(userId);
      if (press && !isOld(press) && !problems.has(userId)) return press;
      problems.delete(userId);
      const added = { key: makeKey(), note: note || null, at: now() };
      write(userId, added);
      return added;
    },
    // Resolves to the task, or to null if the server does not have the press yet.
    async flush(userId) {
      const press = read(userId);
      if (!press || isOld(press) || problems.has(userId)) return null;
      if (!running.has(userId)) running.set(userId, sendNow(userId, press));
      tell();
      return running.get(userId);
    },
    drop(userId) {
      problems.delete(userId);
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
