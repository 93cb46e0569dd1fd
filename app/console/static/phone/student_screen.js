// The student's phone: an offer takes the whole screen; otherwise the task or the duty, and the history beside it.

import { serverNow } from "../shared/clock.js";
import { createStore, useStore, useTick } from "../shared/store.js";
import { firstName } from "../shared/format.js";
import { word } from "../shared/words.js";
import { html, useEffect } from "../vendor/preact/preact.js";
import { DutyScreen } from "./duty_screen.js";
import { HistoryScreen } from "./history_screen.js";
import { OfferScreen } from "./offer_screen.js";
import { SignOut } from "./phone_app.js";
import { studentDeeds } from "./student_deeds.js";
import { endOfTask, studentView } from "./student_state.js";
import { TaskScreen } from "./task_screen.js";

const TABS = ["now", "history"];
const screen = createStore({ tab: "now" });

export function studentScreen({ place, sharing, notices }) {
  return function StudentScreen({ phone }) {
    const { me, ended, lostOffer } = useStore(phone.live.store);
    const { tab } = useStore(screen);
    useTick(1000); // An offer leaves the screen when its time is over.
    const deeds = studentDeeds(phone);
    const view = studentView({ me, nowMs: serverNow() });
    useEffect(() => notices.show(view), [view.kind, view.offer?.taskId]);
    if (view.kind === "offer") return html`<${OfferScreen} offer=${view.offer} onAnswer=${(deed) => deeds.answer(view.offer, deed)} />`;
    const shown = { me, view, place, sharing, notices, lostOffer, end: endOfTask(ended), onSeen: phone.live.forget };
    return html`
      <${Top} me=${me} phone=${phone} tab=${tab} />
      <main class="student">
        ${tab === "history" ? html`<${HistoryScreen} me=${me} api=${phone.api} />` : html`<${Now} ...${shown} deeds=${deeds} />`}
      </main>
    `;
  };
}

function Now({ deeds, ...shown }) {
  const { me, view, place, sharing } = shown;
  if (!view.task) return html`<${DutyScreen} ...${shown} onDuty=${deeds.duty} />`;
  return html`<${TaskScreen} me=${me} view=${view} place=${place} sharing=${sharing} onDeed=${(deed) => deeds.step(view.task, deed)} />`;
}

function Top({ me, phone, tab }) {
  return html`<header class="top">
    <p class="who">${firstName(me.name)}</p>
    <${Tabs} tab=${tab} />
    <${SignOut} phone=${phone} />
  </header>`;
}

function Tabs({ tab }) {
  return html`<nav class="tabs" aria-label=${word("places")}>
    ${TABS.map(
      (one) => html`<button key=${one} type="button" class="tab" aria-current=${tab === one ? "page" : undefined} onClick=${() => screen.set({ tab: one })}>
        ${word(one)}
      </button>`,
    )}
  </nav>`;
}
