// The open requests, most urgent first.

import { Badge, Empty } from "../shared/ui.js";
import { VirtualList } from "../shared/virtual_list.js";
import { word } from "../shared/words.js";
import { html } from "../vendor/preact/preact.js";
import { useConsole } from "./context.js";
import { badgeText, happening, kindOf, progress, waited } from "./request_words.js";

// In rem, so that rows grow with the text. In a narrow window, what stands in one line elsewhere stands in two (see
// `.request-line`).
const ROW_REM = 5.5;
const NARROW_ROW_REM = 11;
const NARROW_REM = 16;

export function RequestList({ rows, current, filters }) {
  if (!rows.length) return html`<${Empty}>${word(filters.q || filters.state ? "noneMatches" : "noOpenRequest")}<//>`;
  return html`<${VirtualList}
    rows=${rows}
    rowHeight=${rowHeight()}
    label=${word("view_requests")}
    keyOf=${({ task }) => task.id}
    render=${(row) => html`<${Row} ...${row} filters=${filters} isCurrent=${row.task.id === current} />`}
  />`;
}

function rowHeight() {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  return rem * (innerWidth <= NARROW_REM * rem ? NARROW_ROW_REM : ROW_REM);
}

function Row({ task, urgency, filters, isCurrent }) {
  const { router } = useConsole();
  return html`<a
    class=${`request ${kindOf(urgency)}`}
    href=${router.address(`requests/${task.id}`, filters)}
    aria-current=${isCurrent ? "true" : undefined}
  >
    <span class="request-line">
      <strong>${task.elder.name}</strong>
      <${Badge} kind=${`numbers ${kindOf(urgency)}`}>${badgeText(task, urgency)}<//>
    </span>
    <span class="request-line small">
      <span>${happening(task)}</span>
      <span class="soft numbers">${progress(task)} · ${waited(task)}</span>
    </span>
    <span class="request-line soft small"><span>${task.note ?? ""}</span></span>
  </a>`;
}
