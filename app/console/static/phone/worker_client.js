// The page's side of the service worker, which keeps the pages for when there is no connection. Everything works
// without one.

const SYNC = "press";

// `on.send` sends a press that waits.
export function openWorker({ on }) {
  const { serviceWorker } = navigator;
  if (!serviceWorker) return { async hold() {}, async forget() {}, registration: async () => null };
  const registered = serviceWorker.register("/phone/worker.js", { scope: "/phone/" }).catch(() => null);
  serviceWorker.addEventListener("message", ({ data }) => {
    if (data?.type === "send") on.send();
  });
  return {
    // Lets the browser send a press when the connection is back, also if it has put this page to sleep. The token
    // stays in the memory of the worker: where that has ended, the page sends the press itself.
    async hold(press, token) {
      const registration = await registered;
      if (!press || !registration?.sync || !registration.active) return;
      registration.active.postMessage({ type: "hold", token, key: press.key, note: press.note });
      await registration.sync.register(SYNC).catch(() => null);
    },
    async forget() {
      (await registered)?.active?.postMessage({ type: "hold", token: null });
    },
    registration: () => registered,
  };
}
