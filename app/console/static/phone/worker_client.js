// The page's side of the service worker, which keeps the pages for when there is no connection. Everything works
// without one.

import { OLD_MS } from "./press_queue.js";

const SYNC = "press";

// `on.send` sends a press that waits; `on.sent` is told the key of one that the worker has sent.
export function openWorker({ on }) {
  const { serviceWorker } = navigator;
  if (!serviceWorker) return { async hold() {}, async forget() {}, registration: async () => null };
  const registered = serviceWorker.register("/phone/worker.js", { scope: "/phone/" }).catch(() => null);
  serviceWorker.addEventListener("message", ({ data }) => {
    if (data?.type === "send") on.send();
    if (data?.type === "sent") on.sent(data.key);
  });
  return {
    // Lets the browser send a press when the connection is back, also if it has put this page to sleep. The token
    // stays in the memory of the worker: where that has ended, the page sends the press itself.
    async hold(press, token) {
      const registration = await registered;
      if (!press || !registration?.sync || !registration.active) return;
      const { key, note, at } = press;
      registration.active.postMessage({ type: "hold", token, key, note, at, keepMs: OLD_MS });
      await registration.sync.register(SYNC).catch(() => null);
    },
    async forget() {
      (await registered)?.active?.postMessage({ type: "hold", token: null });
    },
    registration: () => registered,
  };
}
