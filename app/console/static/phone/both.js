// Two phones side by side: an elder's and a student's. Frames of one page share its sessions, so both are signed in here.

import { pageSettings } from "../shared/page_settings.js";
import { openSession } from "../shared/session.js";
import { demoPeople, signInAs } from "../shared/sign_in.js";
import { firstName } from "../shared/format.js";
import { Empty, messageOf, Read, tell, Toasts, useRead } from "../shared/ui.js";
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
  const read = useRead(signInBoth, []);
  return html`<main>
    <div class="row apart">
      <h1>${word("bothTitle")}</h1>
      <a class="button bare" href="/">${word("home")}</a>
    </div>
    <${Read} of=${read}>${(phones) => (phones ? html`<${Phones} phones=${phones} />` : html`<${Empty}>${word("noDemo")}<//>`)}<//>
    <${Toasts} />
  </main>`;
}

// On a narrow screen one phone is shown at a time; both stay connected.
function Phones({ phones }) {
  const [front, setFront] = useState("elder");
  const [people, setPeople] = useState(Object.fromEntries(phones.map(({ kind, person }) => [kind, person])));
  const become = async (kind, person) => {
    try {
      await signInAs(openSession(kind), person.id);
      setPeople((before) => ({ ...before, [kind]: person }));
    } catch (error) {
      tell(messageOf(error), "bad");
    }
  };
  return html`<div class="choose row" role="group" aria-label=${word("bothTitle")}>
      ${phones.map(
        ({ kind }) => html`<button key=${kind} type="button" class="button" aria-pressed=${front === kind ? "true" : "false"} onClick=${() => setFront(kind)}>
          ${firstName(people[kind].name)}
        </button>`,
      )}
    </div>
    <div class="phones">
      ${phones.map(
        ({ kind, others }) => html`<${Phone} key=${kind} kind=${kind} person=${people[kind]} others=${others} isFront=${front === kind} onBecome=${become} />`,
      )}
    </div>`;
}

// The next student who is asked may be another one, so the person of a phone can be changed.
function Phone({ kind, person, others, isFront, onBecome }) {
  const name = firstName(person.name);
  const choose = (event) => onBecome(kind, others.find((one) => String(one.id) === event.target.value));
  return html`<section class=${`phone ${isFront ? "front" : ""}`} aria-label=${name}>
    <div class="person-of">
      <label for=${`person-of-${kind}`}>${word(`phoneOf_${kind}`)}</label>
      <select id=${`person-of-${kind}`} value=${String(person.id)} onChange=${choose}>
        ${others.map((one) => html`<option key=${one.id} value=${String(one.id)}>${one.name}</option>`)}
      </select>
    </div>
    <iframe key=${person.id} title=${name} src=${`/phone/${kind}`} allow="geolocation"></iframe>
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
  const others = people.filter((one) => one.role === role && one.reserved);
  const person = others.find((one) => firstName(one.name) === name) ?? others[0];
  await signInAs(openSession(kind), person.id);
  return { kind, person, others };
}

render(html`<${Both} />`, document.getElementById("app"));
