// Messages that could not be delivered: what they were, why they failed, and sending them again.

import { dateAndTime } from "../../shared/format.js";
import { Badge } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { useDelayed } from "../delayed.js";
import { usePages } from "../pages.js";
import { BulkDeeds } from "./dead_letters/bulk_deeds.js";
import { DeadLetter } from "./dead_letters/dead_letter.js";
import { CHANNELS, STATES, reasonOf } from "./dead_letters/reasons.js";
import { FilterSearch, FilterSelect, Pages, wordOfCode } from "./parts.js";
import "./view_words.js";

const PAGE = 50;

export default function DeadLetters({ place }) {
  const [id] = place.parts;
  return id ? html`<${DeadLetter} key=${id} id=${id} />` : html`<${List} filters=${place.filters} />`;
}

function List({ filters }) {
  const { api, me } = useConsole();
  const { status = "OPEN", channel = "", code = "" } = filters;
  const errorCode = useDelayed(code.trim().toUpperCase());
  const meant = { channelType: channel || undefined, errorCode: errorCode || undefined };
  const letters = usePages((cursor) => api.listDeadLetters({ ...meant, status: status === "ALL" ? undefined : status, cursor, limit: PAGE }), [status, channel, errorCode]);
  return html`<section class="view">
    <h1>${word("view_dead_letters")}</h1>
    <p class="soft">${word("deadLettersAbout")}</p>
    <div class="filters">
      <${FilterSelect} name="status" label=${word("state")} value=${status} options=${[...STATES, "ALL"]} wordOf=${(one) => word(`letter_${one}`)} all=${null} />
      <${FilterSelect} name="channel" label=${word("channel")} value=${channel} options=${CHANNELS} wordOf=${(one) => wordOfCode("channel", one)} />
      <${FilterSearch} name="code" label=${word("errorCode")} value=${code} />
    </div>
    ${me.role === "ADMIN" && status === "OPEN" && letters.value?.length > 0 && html`<${BulkDeeds} meant=${meant} again=${letters.again} />`}
    <${Pages} of=${letters} empty=${word(status === "OPEN" ? "noOpenLetter" : "noLetter")}>${(letter) => html`<${Row} key=${letter.id} letter=${letter} />`}<//>
  </section>`;
}

function Row({ letter }) {
  const { router } = useConsole();
  return html`<li class="entry">
    <a class="entry-link" href=${router.address(`dead-letters/${letter.id}`)}>
      <strong>${reasonOf(letter.errorCode)}</strong>
      <span class="soft small">${wordOfCode("channel", letter.channelType)} · ${dateAndTime(letter.failedAt)} · ${word("tries", { count: letter.retryCount + 1 })}</span>
    </a>
    <${Badge} kind=${letter.status === "OPEN" ? "warn" : ""}>${word(`letter_${letter.status}`)}<//>
  </li>`;
}
