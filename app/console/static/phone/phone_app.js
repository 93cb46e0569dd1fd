// What both phones share: signing in, the language, the connection, and the service worker.

import { openApi } from "../shared/api.js";
import { clockTime } from "../shared/format.js";
import { openSession } from "../shared/session.js";
import { SignIn, takeTokenFromAddress } from "../shared/sign_in.js";
import { createStore, useStore } from "../shared/store.js";
import { Button, Failure, Loading, Toasts } from "../shared/ui.js";
import { addWords, setLocale, word } from "../shared/words.js";
import { html, render } from "../vendor/preact/preact.js";
import { openKeptState } from "./kept_state.js";
import { openLiveMe } from "./live_me.js";
import { openRecordedPushes, RecordedPush } from "./recorded_pushes.js";
import { PHONE_EN } from "./words_en.js";
import { PHONE_TR } from "./words_tr.js";

addWords(PHONE_TR, PHONE_EN);

// `Screen` is shown once `me` is known; `before` stands above the sign-in, for what must not be lost there.
export function openPhone({ kind, role }) {
  const session = openSession(kind);
  takeTokenFromAddress(session);
  const api = openApi(session);
  const live = openLiveMe({ session, api, kept: openKeptState(kind) });
  const signedIn = createStore({ reason: null, token: session.token() });
  session.onChange((reason) => signedIn.set({ reason, token: session.token() }));
  const pushes = openRecordedPushes({ session, api, live });
  const phone = { kind, role, session, api, live, signedIn, pushes };
  return {
    ...phone,
    show: (Screen, Before = null) =>
      render(html`<${PhoneApp} phone=${phone} Screen=${Screen} Before=${Before} />`, document.getElementById("app")),
  };
}

function PhoneApp({ phone, Screen, Before }) {
  const { me, at, connection, refused } = useStore(phone.live.store);
  const { token, reason } = useStore(phone.signedIn);
  setLocale(me?.locale ?? (navigator.language?.startsWith("en") ? "en" : "tr"));
  return html`
    <${Connection} lost=${connection === "lost"} at=${me && at} />
    <${RecordedPush} pushes=${phone.pushes} />
    <${Content} ...${{ phone, Screen, Before, me, connection, refused, token, reason }} />
    <${Toasts} />
  `;
}

function Content({ phone, Screen, Before, me, connection, refused, token, reason }) {
  const isRight = me?.role === phone.role;
  // Without a connection nobody can sign in, but the last state is better than nothing.
  if (!token && !(connection === "lost" && isRight)) {
    return html`<main class="phone-sign-in">
      ${Before && html`<${Before} phone=${phone} />`}
      <${SignIn} session=${phone.session} roles=${[phone.role]} reason=${reason} />
    </main>`;
  }
  if (me && !isRight) return html`<${WrongPhone} me=${me} phone=${phone} />`;
  if (refused) return html`<${Refused} error=${refused} phone=${phone} />`;
  if (!me) return html`<main class="phone-middle"><h1 class="unseen">${word("title")}</h1><${Loading} /></main>`;
  return html`<${Screen} phone=${phone} />`;
}

function Connection({ lost, at }) {
  const since = at ? ` ${word("lastKnown", { time: clockTime(at) })}` : "";
  return html`<div class="connection" role="status">${lost && html`<p class="notice warn">${word("offline") + since}</p>`}</div>`;
}

function Refused({ error, phone }) {
  return html`<main class="phone-middle stack">
    <h1>${word("title")}</h1>
    <${Failure} error=${error} retry=${phone.live.read} />
    <${SignOut} phone=${phone} />
  </main>`;
}

function WrongPhone({ me, phone }) {
  return html`<main class="phone-middle stack">
    <h1>${me.name}</h1>
    <p>${word("wrongPhone", { role: word(`role_${me.role}`) })}</p>
    <${SignOut} phone=${phone} />
  </main>`;
}

export function SignOut({ phone }) {
  return html`<${Button} onClick=${() => phone.session.end()}>${word("signOut")}<//>`;
}
