// Notifications of the browser, so that an offer is noticed while the page is behind others. Where the server has a key
// for Web Push they come also when the page is closed; otherwise the open page shows them itself.

import { createStore } from "../shared/store.js";
import { pageSettings } from "../shared/page_settings.js";
import { word } from "../shared/words.js";

const DEVICE = "yaninda.device";

// The store has `state`: "unsupported", "off", "refused" or "on"; and `pushed`, true if the server sends them.
export function openNotices({ api, worker }) {
  const store = createStore({ state: stateOf(), pushed: false });

  const subscribe = async () => {
    const { vapidPublicKey } = await pageSettings();
    const registration = await worker.registration();
    if (!vapidPublicKey || !registration?.pushManager) return false;
    const subscription = await registration.pushManager.subscribe({
      userVisibleOnly: true,
      applicationServerKey: bytesOf(vapidPublicKey),
    });
    const name = deviceName();
    const device = { token: JSON.stringify(subscription), platform: "WEB", addressKind: "WEB_PUSH" };
    try {
      await api.putDevice(name.read(), device);
    } catch (error) {
      // Somebody else has used this browser.
      if (error.code !== "device_taken") throw error;
      await api.putDevice(name.renew(), device);
    }
    return true;
  };

  return {
    store,
    async switchOn() {
      await Notification.requestPermission();
      store.set({ state: stateOf() });
      if (stateOf() === "on") store.set({ pushed: await subscribe().catch(() => false) });
    },
    // Says in the title of the tab, and outside of it, what waits for an answer.
    async show(view) {
      document.title = view.kind === "offer" ? `● ${word("offerTitle", { name: view.offer.elderName })}` : word("studentTitle");
      if (view.kind !== "offer") return;
      if (navigator.userActivation?.hasBeenActive) navigator.vibrate?.([200, 100, 200]);
      if (!document.hidden || store.get().state !== "on" || store.get().pushed) return;
      const registration = await worker.registration();
      const title = word("offerTitle", { name: view.offer.elderName });
      await registration?.showNotification(title, { tag: view.offer.taskId, data: { address: "/phone/student" } });
    },
  };
}

function stateOf() {
  if (!globalThis.Notification || !navigator.serviceWorker) return "unsupported";
  return { granted: "on", denied: "refused" }[Notification.permission] ?? "off";
}

// The server knows a phone by a name that the phone has given itself.
function deviceName() {
  const keep = (name) => {
    try {
      localStorage.setItem(DEVICE, name);
    } catch {
      // Then it has another name next time.
    }
    return name;
  };
  const renew = () => keep(crypto.randomUUID());
  return { renew, read: () => known() ?? renew() };
}

function known() {
  try {
    return localStorage.getItem(DEVICE);
  } catch {
    return null;
  }
}

function bytesOf(base64url) {
  return Uint8Array.from(atob(base64url.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
}
