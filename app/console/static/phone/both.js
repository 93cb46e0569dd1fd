// Two phones side by side: an elder's and a student's. Frames of one page share its sessions, so both are signed in here.

import { pageSettings } from "../shared/page_settings.js";
import { openSession } from "../shared/session.js";
import { demoPeople, signInAs } from "../shared/sign_in.js";
import { firstName } from "../shared/format.js";
import { Empty, Read, Toasts, useRead } from "../shared/ui.js";
import { addWords, setLocale, word } from "../shared/words.js";
import { html, render, useState } from "../vendor/preact/preact.js";
import { PHONE_EN } from "./words_en.js";
import { PHONE_TR } from "./words_tr.js";

addWords(PHONE_TR, PHONE_EN);
setLocale(navigator.language?.startsWith("en") ? "en" : "tr");

const PHONES = [
  { kind: "elder", role: "ELDER", name: "Ayşe" },
  { kind: "student", role: "STUDENT", name: "Ahmet" },
];

function Both() {
  const people = useRead(signInBoth, []);
  return html`<main>
    <div class="row apart">
      <h1>${word("bothTitle")}</h1>
      <a class="button bare" href="/">${word("home")}</a>
    </div>
    <${Read} of=${people}>${(found) => (found ? html`<${Phones} people=${found} />` : html`<${Empty}>${word("noDemo")}<//>`)}<//>
    <${Toasts} />
  </main>`;
}

// On a narrow screen one phone is shown at a time; both stay connected.
function Phones({ people }) {
  const [front, setFront] = useState("elder");
  return html`<div class="choose row" role="group" aria-label=${word("bothTitle")}>
      ${people.map(
        ({ kind, name }) => html`<button key=${kind} type="button" class="button" aria-pressed=${front === kind ? "true" : "false"} onClick=${() => setFront(kind)}>${name}</button>`,
      )}
    </div>
    <div class="phones">${people.map((person) => html`<${Phone} key=${person.kind} ...${person} isFront=${front === person.kind} />`)}</div>`;
}

function Phone({ kind, name, isFront }) {
  return html`<section class=${`phone ${isFront ? "front" : ""}`} aria-label=${name}>
    <h2>${name} <span class="soft small">${word(`role_${kind.toUpperCase()}`)}</span></h2>
    <iframe title=${name} src=${`/phone/${kind}`} allow="geolocation"></iframe>
  </section>`;
}

// Null where nobody may sign in with one click.
async function signInBoth() {
  const settings = await pageSettings();
  if (!settings.demoSignIn) return null;
  const people = await demoPeople(PHONES.map(({ role }) => role));
  return Promise.all(PHONES.map((phone) => signIn(phone, people)));
}

async function signIn({ kind, role, name }, people) {
  const others = people.filter((one) => one.role === role);
  const person = others.find((one) => firstName(one.name) === name) ?? others[0];
  await signInAs(openSession(kind), person.id);
  return { kind, name: firstName(person.name) };
}

render(html`<${Both} />`, document.getElementById("app"));
