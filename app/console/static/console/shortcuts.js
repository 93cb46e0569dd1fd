// Keyboard shortcuts: one key, or "g" and a key. They never act while somebody writes, and can be switched off.

import { createStore, useStore } from "../shared/store.js";
import { Dialog } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html, useEffect, useRef } from "../vendor/preact/preact.js";
import { readChoice, writeChoice } from "./choices.js";

const FIRST_KEY_COUNTS_MS = 1500;
const store = createStore({ all: new Map(), on: readChoice("shortcuts", true) });

// The shortcut that a key completes, or null. `before` is the key pressed before it, if it was a moment ago.
export function shortcutFor(shortcuts, before, key) {
  return shortcuts.get(`${before} ${key}`) ?? shortcuts.get(key) ?? null;
}

export function isForPage(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return false;
  const { target } = event;
  return !target.closest?.("input, textarea, select, [contenteditable], dialog");
}

export function useShortcut(keys, title, run) {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    const entry = { title, run: () => latest.current() };
    change((all) => all.set(keys, entry));
    return () => change((all) => all.get(keys) === entry && all.delete(keys));
  }, [keys, title]);
}

function change(edit) {
  const all = new Map(store.get().all);
  edit(all);
  store.set({ all });
}

export function useShortcutListener() {
  useEffect(() => {
    let before = { key: "", at: 0 };
    const onKey = (event) => {
      const { all, on } = store.get();
      if (!on || !isForPage(event)) return;
      const first = Date.now() - before.at < FIRST_KEY_COUNTS_MS ? before.key : "";
      const found = shortcutFor(all, first, event.key);
      before = { key: event.key, at: Date.now() };
      if (!found) return;
      event.preventDefault();
      before.key = "";
      found.run();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}

export function ShortcutsCard({ onClose }) {
  const { all, on } = useStore(store);
  const toggle = () => {
    writeChoice("shortcuts", !on);
    store.set({ on: !on });
  };
  return html`<${Dialog} title=${word("shortcut_card")} onClose=${onClose}>
    <label class="row choice"><input type="checkbox" checked=${on} onChange=${toggle} /> ${word("shortcutsOn")}</label>
    <dl class="shortcuts">
      ${[...all].sort(([one], [other]) => one.startsWith("g ") - other.startsWith("g ")).map(
        ([keys, { title }]) => html`<div key=${keys}>
          <dt>${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</dt>
          <dd>${word(title)}</dd>
        </div>`,
      )}
    </dl>
  <//>`;
}
