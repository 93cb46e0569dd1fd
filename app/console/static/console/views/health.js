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
const WHOLE = { ready: "good", late: "warn", degraded: "warn", unready: "bad" };
const KINDS = { ok: "good", late: "warn", down: "bad" };
const SIGNS = { ok: "✓", late: "…", down: "✕" };
const BREAKER_PARTS = { closed: "ok", half_open: "late", open: "down" };

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
  const whole = wholeOf(health);
  return html`
    <p class=${`notice ${WHOLE[whole]}`} role="status">${word(`health_${whole}`)}</p>
    <ul class="plain parts">${health.parts.map(partCard)}</ul>
    <dl class="sums">
      <${Sum} name="backlog">${number(health.backlog)}<//>
      <${Sum} name="openDeadLetters"><a href=${router.address("dead-letters")}>${number(health.openDeadLetters)}</a><//>
    </dl>
    ${health.breakers.length > 0 &&
    html`<section class="stack">
      <h2>${word("providers")}</h2>
      <ul class="plain entries">${health.breakers.map(provider)}</ul>
    </section>`}
    <p class="soft small">${word("readAt", { time: clockTime(health.readAt) })}</p>
  `;
}

// A service that is ready takes presses, and yet its messages or jobs may be late.
function wholeOf({ status, parts }) {
  return status === "ready" && parts.some((part) => part.status !== "ok") ? "late" : status;
}

function partCard({ name, status, detail }) {
  return html`<li key=${name} class="card stack part">
    <div class="row apart"><h2>${wordOfCode("part", name)}</h2><${State} status=${status} /></div>
    <p class="soft small" lang="en">${detail}</p>
  </li>`;
}

function provider({ name, state }) {
  const text = wordOfCode("breaker", state);
  return html`<li key=${name} class="entry"><span>${wordOfCode("provider", name)}</span><${State} status=${BREAKER_PARTS[state]} text=${text} /></li>`;
}

function Sum({ name, children }) {
  return html`<div class="card"><dt class="soft small">${word(name)}</dt><dd class="numbers">${children}</dd></div>`;
}

function State({ status, text = word(`part_is_${status}`) }) {
  return html`<${Badge} kind=${KINDS[status]}><span aria-hidden="true">${SIGNS[status]}</span> ${text}<//>`;
}
