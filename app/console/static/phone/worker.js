// The service worker of both phones. The server writes two constants above it: KEPT, the files of the pages, and VERSION,
// which changes with any of them. It keeps the pages for when there is no connection, shows pushes, and sends a press.

const PAGES = ["/phone/elder", "/phone/student"];
const CACHE = `yaninda-phone-${VERSION}`;
// Which phone a push is for. A cancelled task concerns either, so the one that is open is shown.
const ADDRESSES = {
  OFFER: "/phone/student",
  ASSIGNED_TO_YOU: "/phone/student",
  RELEASED: "/phone/student",
  ON_THE_WAY: "/phone/elder",
  STARTED: "/phone/elder",
  COMPLETED: "/phone/elder",
  SEARCHING_AGAIN: "/phone/elder",
  NOBODY_FOUND: "/phone/elder",
};
const ANSWER_WITHIN_MS = 4000;

let held = null; // A press, its token, and how long it may be sent; only in memory.

self.addEventListener("install", (event) => {
  event.waitUntil(keepFiles().then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  event.waitUntil(forgetOldFiles().then(() => self.clients.claim()));
});

async function keepFiles() {
  const cache = await caches.open(CACHE);
  await cache.addAll(KEPT);
  for (const page of PAGES) {
    const answer = await fetch(page, { cache: "no-store" });
    // During an update, servers of two versions answer. A page needs the files of its own.
    if (!(await answer.clone().text()).includes(VERSION)) throw new Error("this page is of another version");
    await cache.put(page, answer);
  }
}

async function forgetOldFiles() {
  const names = await caches.keys();
  const old = names.filter((name) => name.startsWith("yaninda-phone-") && name !== CACHE);
  await Promise.all(old.map((name) => caches.delete(name)));
}

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const address = new URL(request.url);
  if (request.method !== "GET" || address.origin !== self.location.origin) return;
  if (request.mode === "navigate" && PAGES.includes(address.pathname)) event.respondWith(page(request, address.pathname));
  else if (address.pathname.startsWith(`/assets/${VERSION}/`)) event.respondWith(file(request));
});

// The newest page if the server answers soon, otherwise the one that was kept.
async function page(request, path) {
  try {
    const answer = await fetch(request, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
    if (answer.ok) return answer;
    return (await kept(path)) ?? answer;
  } catch (error) {
    const found = await kept(path);
    if (found) return found;
    throw error;
  }
}

async function file(request) {
  return (await kept(request)) ?? fetch(request);
}

async function kept(request) {
  const cache = await caches.open(CACHE);
  return cache.match(request);
}

// ---- a press that was made without a connection ----

self.addEventListener("message", ({ data }) => {
  if (data?.type === "hold") held = data.token ? data : null;
});

self.addEventListener("sync", (event) => {
  if (event.tag === "press") event.waitUntil(sendPress());
});

// A page that is asleep sends nothing, so the worker does. The key makes a press that both send one request.
async function sendPress() {
  if (held && Math.abs(Date.now() - held.at) > held.keepMs) held = null; // The page says that it is too old.
  if (!held) return tellPages("send");
  const { token, key, note } = held;
  const answer = await fetch("/tasks", {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", "Idempotency-Key": key },
    body: JSON.stringify(note ? { note } : {}),
  });
  if (answer.status >= 500) throw new Error(`answered with ${answer.status}`); // The browser tries again later.
  // Another person may have pressed meanwhile.
  if (held?.key === key) held = null;
  return answer.ok ? tellPages("sent", key) : tellPages("send");
}

async function tellPages(type, key = null) {
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  pages.forEach((page) => page.postMessage({ type, key }));
}

// ---- pushes ----

self.addEventListener("push", (event) => {
  const { notification = {}, data = {} } = event.data?.json() ?? {};
  event.waitUntil(notification.title ? show(notification, data) : close(data.taskId));
});

function show({ title, body }, data) {
  return self.registration.showNotification(title, { body, tag: data.taskId, data: { address: ADDRESSES[data.type] ?? null } });
}

// A push without words takes back the one before it.
async function close(tag) {
  (await self.registration.getNotifications({ tag })).forEach((shown) => shown.close());
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openPage(event.notification.data?.address));
});

async function openPage(wanted) {
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = pages.find((page) => (wanted ? new URL(page.url).pathname === wanted : page.url.includes("/phone/")));
  if (open) return open.focus();
  return self.clients.openWindow(wanted ?? "/phone/elder");
}
