// The page of coordinators and admins: signing in, then the frame with the view that the address names.

import { openApi } from "../shared/api.js";
import { learnServerTime } from "../shared/clock.js";
import { pageSettings } from "../shared/page_settings.js";
import { createRouter } from "../shared/router.js";
import { openSession } from "../shared/session.js";
import { SignIn, takeTokenFromAddress } from "../shared/sign_in.js";
import { Failure, Loading, Toasts, useRead } from "../shared/ui.js";
import { addWords, setLocale, word } from "../shared/words.js";
import { html, render, useEffect, useState } from "../vendor/preact/preact.js";
import { ConsoleContext } from "./context.js";
import { Frame } from "./frame.js";
import { followLanguage, language } from "./language.js";
import { createLive } from "./live.js";
import { followTogether } from "./one_stream.js";
import { CONSOLE_EN } from "./words_en.js";
import { CONSOLE_TR } from "./words_tr.js";

addWords(CONSOLE_TR, CONSOLE_EN);

const ROLES = ["COORDINATOR", "ADMIN"];
const session = openSession("console");
const router = createRouter("/console");
takeTokenFromAddress(session);
const api = openApi(session);

function Console() {
  const [sessionEnd, setSessionEnd] = useState(null);
  const [token, setToken] = useState(session.token());
  const locale = followLanguage();
  setLocale(locale);
  useEffect(
    () =>
      session.onChange((reason) => {
        setSessionEnd(reason);
        setToken(session.token());
      }),
    [],
  );
  return html`
    ${token
      ? html`<${SignedIn} key=${token} />`
      : html`<main><${SignIn} session=${session} roles=${ROLES} reason=${sessionEnd} /></main>`}
    <${Toasts} />
  `;
}

function SignedIn() {
  const who = useRead(() => Promise.all([api.me(), pageSettings()]), []);
  useEffect(() => {
    if (!who.value) return;
    const [{ locale, serverTime }] = who.value;
    language.follow(locale);
    learnServerTime(serverTime);
  }, [who.value]);
  if (who.error) return html`<main class="alone"><${Failure} error=${who.error} retry=${who.again} /></main>`;
  if (!who.value) return html`<main><${Loading} /></main>`;
  const [me, settings] = who.value;
  if (!ROLES.includes(me.role)) return html`<${WrongPerson} me=${me} />`;
  return html`<${Running} me=${me} settings=${settings} />`;
}

function WrongPerson({ me }) {
  return html`<main class="alone stack">
    <p class="notice warn" role="alert">${word("wrongPerson", { name: me.name, role: word(`role_${me.role}`) })}</p>
    <button class="button" type="button" onClick=${() => session.end()}>${word("signOut")}</button>
  </main>`;
}

function Running({ me, settings }) {
  const follow = (path, options) => followTogether(path, { ...options, name: `yaninda.events.${me.id}` });
  const [live] = useState(() => createLive({ api, session, follow }));
  useEffect(() => live.start(), [live]);
  return html`<${ConsoleContext.Provider} value=${{ api, me, settings, router, live, session }}>
    <${Frame} />
  <//>`;
}

render(html`<${Console} />`, document.getElementById("app"));
