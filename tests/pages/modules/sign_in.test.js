import { openSession } from "../../../app/console/static/shared/session.js";
import { noteThatSignInBegins, takeTokenFromAddress } from "../../../app/console/static/shared/sign_in.js";
import { equal, test } from "./cases.js";

function tab(address) {
  const entries = new Map();
  const storage = { getItem: (key) => entries.get(key) ?? null, setItem: (key, value) => entries.set(key, value), removeItem: (key) => entries.delete(key) };
  const come = () => {
    const session = openSession("elder", storage);
    history.replaceState(null, "", address);
    takeTokenFromAddress(session, storage);
    equal(location.hash, "");
    return session.token();
  };
  return { storage, come };
}

test("the token of a link that somebody has sent signs nobody in", () => {
  equal(tab("#token=of-the-sender").come(), null);
});

test("a token is taken once by the tab that has gone to sign in", () => {
  const { storage, come } = tab("#token=of-ayse");
  noteThatSignInBegins(storage);
  equal(come(), "of-ayse");
  storage.removeItem("yaninda.token.elder");
  equal(come(), null);
});
