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
import { EntryLink, FilterSearch, FilterSelect, Pages, wordOfCode } from "./parts.js";
import "./view_words.js";

const PAGE = 50;
const ANY = "ALL";

export default function DeadLetters({ place }) {
  const [id] = place.parts;
  return id ? html`<${DeadLetter} key=${id} id=${id} />` : html`<${List} filters=${place.filters} />`;
}

function List({ filters }) {
  const { api, me } = useConsole();
  const { status = "OPEN", channel = "", code = "" } = filters;
  const errorCode = useDelayed(code.trim().toUpperCase());
  const meant = { channelType: channel || undefined, errorCode: errorCode || undefined };
  const state = status === ANY ? undefined : status;
  const read = (cursor) => api.listDeadLetters({ ...meant, status: state, cursor, limit: PAGE });
  const letters = usePages(read, [status, channel, errorCode]);
  const hasBulk = me.role === "ADMIN" && status === "OPEN" && letters.value?.length > 0;
  const wordOfState = (one) => word(`letter_${one}`);
  const wordOfChannel = (one) => wordOfCode("channel", one);
  const states = [...STATES, ANY];
  return html`<section class="view">
    <h1>${word("view_dead_letters")}</h1>
    <p class="soft">${word("deadLettersAbout")}</p>
    <div class="filters">
      <${FilterSelect} name="status" label=${word("state")} value=${status} options=${states} wordOf=${wordOfState} all=${null} />
      <${FilterSelect} name="channel" label=${word("channel")} value=${channel} options=${CHANNELS} wordOf=${wordOfChannel} />
      <${FilterSearch} name="code" label=${word("errorCode")} value=${code} />
    </div>
    ${hasBulk && html`<${BulkDeeds} meant=${meant} again=${letters.again} />`}
    <${Pages} of=${letters} empty=${word(status === "OPEN" ? "noOpenLetter" : "noLetter")}>${row}<//>
  </section>`;
}

function row(letter) {
  const { id, status, channelType, failedAt, retryCount } = letter;
  const tries = word("tries", { count: retryCount + 1 });
  const about = [wordOfCode("channel", channelType), dateAndTime(failedAt), tries].join(" · ");
  return html`<li key=${id} class="entry">
    <${EntryLink} to=${`dead-letters/${id}`} title=${reasonOf(letter.errorCode)} about=${about} />
    <${Badge} kind=${status === "OPEN" ? "warn" : ""}>${word(`letter_${status}`)}<//>
  </li>`;
}
