// Sends a waiting press as soon as it can: at once, when the connection is back, after a new sign-in, or when the
// service worker asks for it.

import { createPressQueue } from "./press_queue.js";
import { openWorker } from "./worker_client.js";

const AGAIN_MS = 5000;

export function openPressSender({ session, api, live }) {
  const queue = createPressQueue({
    storage: globalThis.localStorage,
    send: ({ key, note }) => api.createTask(note ? { note } : {}, { idempotencyKey: key }),
  });
  const worker = openWorker({ on: { send: () => flush() } });
  let timer = null;

  const flush = async () => {
    clearTimeout(timer);
    const { me } = live.store.get();
    if (!me || !session.token()) return;
    const token = session.token();
    const task = await queue.flush(me.id);
    // Somebody else may have signed in meanwhile, and nothing of this is theirs.
    if (session.token() !== token) return;
    if (task) {
      live.know({ openTask: task });
      worker.forget();
      return live.read();
    }
    const left = queue.state(me.id);
    if (!left || left.isOld || left.problem) return;
    worker.hold(left, token);
    timer = setTimeout(flush, AGAIN_MS);
  };

  let wasThere = false;
  live.store.listen(() => {
    const isThere = live.store.get().connection === "there";
    if (isThere && !wasThere) flush();
    wasThere = isThere;
  });
  session.onChange(() => (wasThere = false));
  globalThis.addEventListener("storage", queue.tell);
  return {
    queue,
    press(note) {
      queue.add(live.store.get().me.id, note);
      live.forget("ended");
      return flush();
    },
    drop() {
      queue.drop(live.store.get().me.id);
      worker.forget();
    },
  };
}
