// Signing in: one click on a person of the demo, the sign-in page of the operator, or a token that somebody has issued.

import { html, useState } from "../vendor/preact/preact.js";
import { metres } from "./format.js";
import { pageSettings } from "./page_settings.js";
import { Button, Field, Read, useRead } from "./ui.js";
import { word } from "./words.js";

const BEGUN = "yaninda.sign-in-begun";

// The page that the operator has set sends people back with their token behind "#", which no server sees. It is taken
// only in a tab that has gone there to sign in: with a link of somebody else's, an elder would press in their name.
export function takeTokenFromAddress(session, storage = globalThis.sessionStorage) {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  if (storage.getItem(BEGUN) === null) return;
  storage.removeItem(BEGUN);
  session.begin(token);
}

export function noteThatSignInBegins(storage = globalThis.sessionStorage) {
  storage.setItem(BEGUN, "yes");
}

export async function signInAs(session, userId) {
  const answer = await fetch("/demo/sign-in", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ userId }),
  });
  if (!answer.ok) throw new Error(`${answer.status}`);
  session.begin((await answer.json()).token);
}

export async function demoPeople(roles) {
  const answer = await fetch("/demo/people");
  if (!answer.ok) throw new Error(`${answer.status}`);
  const { items } = await answer.json();
  return items.filter((person) => roles.includes(person.role));
}

export function SignIn({ session, roles, reason = null }) {
  const settings = useRead(pageSettings, []);
  return html`<section class="card stack sign-in">
    <h1>${word("signIn")}</h1>
    ${reason === "expired" && html`<p class="notice warn" role="alert">${word("signedOut")}</p>`}
    <${Read} of=${settings}>${(known) => html`
      ${known.demoSignIn && html`<${DemoPeople} session=${session} roles=${roles} />`}
      ${known.signInPage && html`<a class="button main" href=${signInAddress(known.signInPage)} onClick=${() => noteThatSignInBegins()}>${word("signInElsewhere")}</a>`}
      <${PastedToken} session=${session} open=${!known.demoSignIn && !known.signInPage} />
    `}<//>
  </section>`;
}

function signInAddress(page) {
  const address = new URL(page);
  address.searchParams.set("returnTo", location.origin + location.pathname);
  return address.href;
}

// Those who are kept for whoever tries the demo come first; all others are shown on request.
function DemoPeople({ session, roles }) {
  const people = useRead(() => demoPeople(roles), [roles.join()]);
  const [all, showAll] = useState(false);
  return html`<${Read} of=${people}>${(found) => html`
    <ul class="plain stack">
      ${found.filter((person) => all || person.reserved).map((person) => html`<li key=${person.id}>
        <${Button} kind="person" onClick=${() => signInAs(session, person.id)}>
          <strong>${person.name}</strong> <span class="soft small">${aboutPerson(person)}</span>
        <//>
      </li>`)}
    </ul>
    ${!all && found.some((person) => !person.reserved) && html`<${Button} kind="bare" onClick=${() => showAll(true)}>${word("more")}<//>`}
  `}<//>`;
}

function aboutPerson({ role, distanceM }) {
  const words = [word(`role_${role}`)];
  if (role === "STUDENT" && distanceM !== null) words.push(word("fromAyse", { distance: metres(distanceM) }));
  return words.join(" · ");
}

function PastedToken({ session, open }) {
  const [token, setToken] = useState("");
  const [wrong, setWrong] = useState(null);
  const submit = (event) => {
    event.preventDefault();
    const given = token.trim();
    if (given) session.begin(given);
    else setWrong(word("required"));
  };
  return html`<details open=${open}>
    <summary>${word("signInWithToken")}</summary>
    <form class="stack" onSubmit=${submit}>
      <${Field} label=${word("token")} hint=${word("tokenHint")} wrong=${wrong}>${(control) => html`
        <textarea ...${control} rows="3" autocomplete="off" spellcheck="false" value=${token} onInput=${(event) => setToken(event.target.value)}></textarea>
      `}<//>
      <button class="button" type="submit">${word("signIn")}</button>
    </form>
  </details>`;
}
