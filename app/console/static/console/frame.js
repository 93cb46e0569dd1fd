// What surrounds every view: navigation, connection, sound, shortcuts, and whoever has signed in.

import { useStore } from "../shared/store.js";
import { Button } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html, useEffect, useRef, useState } from "../vendor/preact/preact.js";
import { useAlarm, useNews } from "./alarm.js";
import { Connection } from "./connection.js";
import { useConsole } from "./context.js";
import { language } from "./language.js";
import { Later } from "./later.js";
import { Navigation } from "./navigation.js";
import { ShortcutsCard, useShortcut, useShortcutListener } from "./shortcuts.js";
import { viewAt, viewsFor } from "./views.js";

export function Frame() {
  const { me, router } = useConsole();
  const { view, place } = viewAt(useStore(router.store), me.role);
  const [card, setCard] = useState(false);
  const main = useRef(null);
  useShortcutListener();
  useNews();
  useShortcut("?", "shortcut_card", () => setCard(true));
  for (const { path, title, key } of viewsFor(me.role)) useShortcut(`g ${key}`, title, () => router.go(path));
  useTitle(view);
  // A place that came with a click begins at its heading, also for those who hear the page.
  useFocusOnChange(main, view);
  return html`<div class="frame" onClick=${router.onLink}>
    <a class="skip button" href="#view" onClick=${(event) => focusMain(event, main)}>${word("skipToView")}</a>
    <header class="top">
      <${Navigation} current=${view} />
      <div class="row top-end">
        <${Connection} />
        <${AlarmSwitch} />
        <${Button} kind="bare icon-button" aria-label=${word("shortcut_card")} onClick=${() => setCard(true)}>?<//>
        <${Me} />
      </div>
    </header>
    <main id="view" ref=${main} tabindex="-1">
      <${View} view=${view} place=${place} />
    </main>
    ${card && html`<${ShortcutsCard} onClose=${() => setCard(false)} />`}
  </div>`;
}

function View({ view, place }) {
  if (!view) return html`<${NoSuchPlace} />`;
  return view.component ? html`<${view.component} place=${place} />` : html`<${Later} load=${view.load} place=${place} />`;
}

function focusMain(event, main) {
  event.preventDefault();
  main.current.focus();
}

function useFocusOnChange(main, view) {
  const before = useRef(view);
  useEffect(() => {
    if (before.current !== view) main.current.focus({ preventScroll: true });
    before.current = view;
  }, [view]);
}

function useTitle(view) {
  const { count } = useAlarm();
  const title = `${view ? `${word(view.title)} · ` : ""}Yanında`;
  useEffect(() => {
    document.title = count ? `(${count}) ${title}` : title;
  }, [count, title]);
}

function AlarmSwitch() {
  const { muted, toggle } = useAlarm();
  useShortcut("s", "shortcut_sound", toggle);
  return html`<${Button}
    kind="bare icon-button"
    aria-pressed=${String(!muted)}
    aria-label=${word("sound")}
    title=${word(muted ? "soundOff" : "soundOn")}
    onClick=${toggle}
  ><${Bell} muted=${muted} /><//>`;
}

// Drawn, because not every computer has a font with this sign.
function Bell({ muted }) {
  return html`<svg class="bell" viewBox="0 0 24 24" aria-hidden="true">
    <path d="M6 17V11a6 6 0 0 1 12 0v6M4 17h16M10 20.5h4" />
    ${muted && html`<path d="M4 4l16 16" />`}
  </svg>`;
}

function Me() {
  const { me, session } = useConsole();
  return html`<details class="me">
    <summary class="button bare icon-button" aria-label=${me.name}>
      <span class="full">${me.name}</span><span class="initials">${initials(me.name)}</span>
    </summary>
    <div class="card stack me-card">
      <p><strong>${me.name}</strong><br /><span class="soft small">${word(`role_${me.role}`)}</span></p>
      <${Button} lang=${word("otherLanguageCode")} onClick=${language.switch}>${word("otherLanguage")}<//>
      <${Button} onClick=${() => session.end()}>${word("signOut")}<//>
    </div>
  </details>`;
}

function initials(name) {
  return name
    .split(/\s+/)
    .slice(0, 2)
    .map((part) => [...part][0] ?? "")
    .join("");
}

function NoSuchPlace() {
  const { router } = useConsole();
  return html`<div class="alone stack">
    <h1>${word("noSuchPlace")}</h1>
    <a class="button" href=${router.address("")}>${word("view_requests")}</a>
  </div>`;
}
