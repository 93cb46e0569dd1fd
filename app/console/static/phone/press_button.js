// The large button. It is held for a second, so that a hand that slips calls nobody, or it is tapped, as the person has
// chosen. A click without a pointer comes from a screen reader or a switch, which cannot hold, and counts at once.

import { html, useEffect, useRef, useState } from "../vendor/preact/preact.js";
import { word } from "../shared/words.js";

export const HOLD_MS = 1000;
const HINT_MS = 4000;
const KEYS = ["Enter", " "];

export function PressButton({ way, onPress }) {
  const [holding, setHolding] = useState(false);
  const [short, setShort] = useState(false);
  const timer = useRef(null);
  useEffect(() => () => clearTimeout(timer.current), []);

  const done = () => {
    setHolding(false);
    timer.current = null;
    navigator.vibrate?.(60);
    onPress();
  };
  const begin = () => {
    if (way === "tap" || timer.current !== null) return;
    setShort(false);
    setHolding(true);
    timer.current = setTimeout(done, HOLD_MS);
  };
  const letGo = () => {
    if (timer.current === null) return;
    clearTimeout(timer.current);
    timer.current = null;
    setHolding(false);
    setShort(true);
  };
  useEffect(() => {
    if (!short) return undefined;
    const hide = setTimeout(() => setShort(false), HINT_MS);
    return () => clearTimeout(hide);
  }, [short]);
  const click = (event) => {
    if (way === "tap" || (event.detail === 0 && event.pointerType === "")) done();
  };
  const key = (deed) => (event) => {
    if (!KEYS.includes(event.key) || way === "tap") return;
    event.preventDefault();
    deed();
  };
  return html`<button
    type="button"
    class=${`press ${holding ? "holding" : ""}`}
    aria-describedby="press-hint"
    onPointerDown=${(event) => event.button === 0 && begin()}
    onPointerUp=${letGo}
    onPointerLeave=${letGo}
    onPointerCancel=${letGo}
    onKeyDown=${key(begin)}
    onKeyUp=${key(letGo)}
    onBlur=${letGo}
    onClick=${click}
    onContextMenu=${(event) => event.preventDefault()}
  >
    <${Ring} />
    <span class="press-words">
      <span class="press-label">${word("press")}</span>
      <span id="press-hint" class="press-hint" aria-live=${short ? "polite" : "off"}>${word(hintKey(way, holding, short))}</span>
    </span>
  </button>`;
}

function hintKey(way, holding, short) {
  if (way === "tap") return "hintTap";
  if (holding) return "hintHolding";
  return short ? "hintShort" : "hintHold";
}

function Ring() {
  return html`<svg class="press-ring" viewBox="0 0 100 100" aria-hidden="true">
    <circle class="press-track" cx="50" cy="50" r="46" />
    <circle class="press-fill" cx="50" cy="50" r="46" pathLength="100" />
    <g class="press-hand">
      <circle cx="50" cy="36" r="10" />
      <path d="M31 68c0-12 8-19 19-19s19 7 19 19z" />
    </g>
  </svg>`;
}
