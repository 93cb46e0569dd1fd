// How the parts of the service are doing, read again while it is looked at.

import { serverNow } from "../../shared/clock.js";
import { clockTime, number } from "../../shared/format.js";
import { Badge, Read, useRead } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html, useEffect } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { wordOfCode } from "./parts.js";
import "./view_words.js";

const HOLDS_MS = 15_000;
const KINDS = { ok: "good", late: "warn", down: "bad" };
const SIGNS = { ok: "✓", late: "…", down: "✕" };
const BREAKER_PARTS = { CLOSED: "ok", HALF_OPEN: "late", OPEN: "down" };

export default function HealthView() {
  const { api } = useConsole();
  const health = useRead(async () => ({ ...(await api.showHealth()), readAt: serverNow() }), []);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && health.again(), HOLDS_MS);
    return () => clearInterval(timer);
  }, []);
  return html`<section class="view">
    <h1>${word("view_health")}</h1>
    <${Read} of=${health}>${(found) => html`<${Found} health=${found} />`}<//>
  </section>`;
}

function Found({ health }) {
  const { router } = useConsole();
  return html`
    <p class=${`notice ${{ ready: "good", degraded: "warn", unready: "bad" }[health.status]}`} role="status">${word(`health_${health.status}`)}</p>
    <ul class="plain parts">${health.parts.map((part) => html`<li key=${part.name} class="card stack part">
      <div class="row apart"><h2>${wordOfCode("part", part.name)}</h2><${State} status=${part.status} /></div>
      <p class="soft small" lang="en">${part.detail}</p>
    </li>`)}</ul>
    <dl class="sums">
      <div class="card"><dt class="soft small">${word("backlog")}</dt><dd class="numbers">${number(health.backlog)}</dd></div>
      <div class="card"><dt class="soft small">${word("openDeadLetters")}</dt><dd class="numbers"><a href=${router.address("dead-letters")}>${number(health.openDeadLetters)}</a></dd></div>
    </dl>
    ${health.breakers.length > 0 &&
    html`<section class="stack"><h2>${word("providers")}</h2>
      <ul class="plain entries">${health.breakers.map(({ name, state }) => html`<li key=${name} class="entry"><span>${name}</span><${State} status=${BREAKER_PARTS[state.toUpperCase()]} text=${wordOfCode("breaker", state.toUpperCase())} /></li>`)}</ul></section>`}
    <p class="soft small">${word("readAt", { time: clockTime(health.readAt) })}</p>
  `;
}

function State({ status, text = word(`part_is_${status}`) }) {
  return html`<${Badge} kind=${KINDS[status]}><span aria-hidden="true">${SIGNS[status]}</span> ${text}<//>`;
}
