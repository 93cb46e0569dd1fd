// The time that is left until a deadline of the server, as a ring and as digits. Screen readers are not told of every
// second.

import { secondsUntil, serverNow } from "../shared/clock.js";
import { countdown } from "../shared/format.js";
import { useTick } from "../shared/store.js";
import { html } from "../vendor/preact/preact.js";
import { partLeft } from "./student_state.js";

const HOUR_S = 3600;
const firstSeen = new Map();

export function Countdown({ deadline, id, quiet = false }) {
  useTick(1000);
  const now = serverNow();
  if (!firstSeen.has(id)) firstSeen.set(id, now);
  const left = secondsUntil(deadline, now);
  return html`<div class="countdown ${left < 60 && !quiet ? "soon" : ""}">
    <svg viewBox="0 0 100 100" aria-hidden="true">
      <circle class="ring-track" cx="50" cy="50" r="46" />
      <circle class="ring-left" cx="50" cy="50" r="46" pathLength="100" stroke-dasharray=${`${100 * partLeft(deadline, firstSeen.get(id), now)} 100`} />
    </svg>
    <span class=${`numbers digits ${left > HOUR_S - 1 ? "with-hours" : ""}`} role="timer" aria-live="off">${countdown(left)}</span>
  </div>`;
}
