// The first page: what this is, three doors, and whether it works.

import { pageSettings } from "../shared/page_settings.js";
import { createStore, useStore } from "../shared/store.js";
import { Button, Read, Toasts, useRead } from "../shared/ui.js";
import { addWords, currentLocale, setLocale, word } from "../shared/words.js";
import { html, render } from "../vendor/preact/preact.js";
import { HOME_EN } from "./words_en.js";
import { HOME_TR } from "./words_tr.js";

addWords(HOME_TR, HOME_EN);

const DOORS = [
  { name: "elder", href: "/phone/elder" },
  { name: "student", href: "/phone/student" },
  { name: "coordinator", href: "/console" },
];
const language = createStore({ locale: navigator.language?.startsWith("en") ? "en" : "tr" });

function Home() {
  const { locale } = useStore(language);
  setLocale(locale);
  return html`<main>
    <header class="stack">
      <div class="row apart">
        <p class="name">Yanında</p>
        <${Button} kind="bare" lang=${locale === "tr" ? "en" : "tr"} onClick=${switchLanguage}>${word("language")}<//>
      </div>
      <h1>${word("claim")}</h1>
      <p>${word("about")}</p>
    </header>
    <ul class="plain doors">${DOORS.map((door) => html`<${Door} key=${door.name} ...${door} />`)}</ul>
    <${TryBoth} />
    <footer class="row apart">
      <${Health} />
      <a href="/docs">${word("apiDoor")}</a>
    </footer>
    <${Toasts} />
  </main>`;
}

function switchLanguage() {
  language.set({ locale: currentLocale() === "tr" ? "en" : "tr" });
}

function Door({ name, href }) {
  return html`<li><a class="card door" href=${href}>
    <strong>${word(`${name}Door`)}</strong>
    <span class="soft">${word(`${name}About`)}</span>
  </a></li>`;
}

function TryBoth() {
  const settings = useRead(pageSettings, []);
  if (!settings.value?.demoSignIn) return null;
  return html`<section class="card row apart try">
    <div>
      <h2>${word("bothTitle")}</h2>
      <p class="soft">${word("bothAbout")}</p>
    </div>
    <a class="button main" href="/phone/both">${word("bothButton")}</a>
  </section>`;
}

function Health() {
  const health = useRead(readHealth, []);
  return html`<${Read} of=${health}>${(status) => html`<p class=${`health ${status}`} role="status">${word(`health_${status}`)}</p>`}<//>`;
}

async function readHealth() {
  const answer = await fetch("/readyz");
  return (await answer.json()).status;
}

render(html`<${Home} />`, document.getElementById("app"));
