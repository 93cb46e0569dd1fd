import { openNotices } from "../../../app/console/static/phone/notices.js";
import { openSession } from "../../../app/console/static/shared/session.js";
import { equal, test } from "./cases.js";

function browserWith({ permission = "granted", token = "of-ayse" } = {}) {
  const did = [];
  let subscription = null;
  const unsubscribe = async () => {
    did.push("unsubscribed");
    subscription = null;
  };
  const pushManager = {
    getSubscription: async () => subscription,
    subscribe: async () => (subscription ??= { endpoint: "https://push.example.org/1", unsubscribe }),
  };
  const shown = { close: () => did.push("closed") };
  const registration = { pushManager, getNotifications: async () => [shown] };
  const storage = { getItem: () => token, setItem: () => {}, removeItem: () => {} };
  const session = openSession("student", storage);
  const api = { putDevice: async () => did.push(`device ${session.token()}`) };
  const settings = async () => ({ vapidPublicKey: "BEEF" });
  const worker = { registration: async () => registration };
  const notices = openNotices({ api, worker, session, settings, permission: () => permission });
  return { did, session, notices };
}

async function until(look) {
  for (let turn = 0; turn < 100 && !look(); turn += 1) await new Promise((done) => setTimeout(done));
  return look();
}

test("who signs out gets no more pushes on this phone, and who signs in gets their own", async () => {
  const { did, session, notices } = browserWith();
  await until(() => notices.store.get().pushed);
  session.end();
  session.begin("of-ahmet");
  await until(() => did.length === 4);
  equal(did, ["device of-ayse", "unsubscribed", "closed", "device of-ahmet"]);
  equal(notices.store.get(), { state: "on", pushed: true });
});

test("pushes go on when a token expires, and nobody is asked who has not allowed them", async () => {
  const { did, session, notices } = browserWith();
  await until(() => notices.store.get().pushed);
  session.end("expired");
  equal([did, notices.store.get().pushed], [["device of-ayse"], true]);
  const refused = browserWith({ permission: "denied" });
  equal([refused.notices.store.get().state, await until(() => refused.did.length)], ["refused", 0]);
});
