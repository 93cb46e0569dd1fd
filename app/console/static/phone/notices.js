// Notifications of the browser, so that an offer is noticed while the page is behind others. Where the server has a key
// for Web Push they come also when the page is closed; otherwise the open page shows them itself.

import { createStore } from "../shared/store.js";
import { pageSettings } from "../shared/page_settings.js";
import { word } from "../shared/words.js";

const DEVICE = "yaninda.device";
const STATES = { granted: "on", denied: "refused", none: "unsupported" };

// The store has `state`: "unsupported", "off", "refused" or "on"; and `pushed`, true if the server sends them.
export function openNotices({ api, worker, session, permission = askedPermission, settings = pageSettings }) {
  const stateOf = () => STATES[permission()] ?? "off";
  const store = createStore({ state: stateOf(), pushed: false });
  let last = Promise.resolve();
  // One after another, so that signing out does not end what the next person has begun.
  const inTurn = (deed) => (last = last.then(deed).catch(() => store.set({ pushed: false })));

  const subscribe = async () => {
    const { vapidPublicKey } = await settings();
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

  // Permission is the browser's, and a subscription is a person's: whoever signs in gets one of their own.
  const follow = async () => {
    store.set({ state: stateOf() });
    if (stateOf() === "on" && session.token()) store.set({ pushed: await subscribe() });
  };

  // What comes later for whoever has signed out is not shown on this phone. It needs no connection to us: the push
  // service tells us that the subscription has ended.
  const forget = async () => {
    store.set({ pushed: false });
    const registration = await worker.registration();
    const subscription = await registration?.pushManager?.getSubscription();
    await subscription?.unsubscribe();
    (await registration?.getNotifications())?.forEach((shown) => shown.close());
  };

  session.onChange((reason) => {
    if (reason === "signed_out") inTurn(forget);
    if (reason === "begun") inTurn(follow);
  });
  inTurn(follow);

  return {
    store,
    async switchOn() {
      await Notification.requestPermission();
      await inTurn(follow);
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

function askedPermission() {
  return globalThis.Notification && navigator.serviceWorker ? Notification.permission : "none";
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
