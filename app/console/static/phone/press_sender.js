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
  const worker = openWorker({ on: { send: () => flush(), sent: (key) => end(key) } });
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

  // The press goes when what has become of it is known, so that the button does not come back in between.
  const end = async (key) => {
    await live.read();
    const { me, connection } = live.store.get();
    if (connection === "there" && me && queue.state(me.id)?.key === key) queue.drop(me.id);
  };

  let wasThere = false;
  let lastId = null;
  live.store.listen(() => {
    const { me, connection } = live.store.get();
    const isThere = connection === "there";
    lastId = me?.id ?? lastId;
    if (isThere && !wasThere) flush();
    wasThere = isThere;
  });
  // Whoever signs out has been asked about a waiting press. An expired token leaves it to the next sign-in of the same
  // person. Either way the worker must not use the token any more.
  session.onChange((reason) => {
    wasThere = false;
    worker.forget();
    if (reason === "signed_out" && lastId !== null) queue.drop(lastId);
    lastId = null;
  });
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
