// Draws attention to requests for which nobody was found: a sound for each new one, and a number in the title.

import { createStore, useStore } from "../shared/store.js";
import { tell } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { useEffect } from "../vendor/preact/preact.js";
import { readChoice, writeChoice } from "./choices.js";
import { useConsole } from "./context.js";
import { newlyNobodyFound } from "./live_state.js";

const MOST_TOLD = 3;
const store = createStore({ muted: readChoice("muted", false) });

export function useAlarm() {
  const { live } = useConsole();
  const { nobodyFound } = useStore(live.store);
  const { muted } = useStore(store);
  return { count: nobodyFound, muted, toggle: toggleSound };
}

function toggleSound() {
  const muted = !store.get().muted;
  writeChoice("muted", muted);
  store.set({ muted });
  if (!muted) beep();
}

// Sounds and tells each new one. Those that were there when the page was opened are in the number only.
export function useNews() {
  const { live, router } = useConsole();
  useEffect(() => {
    let before = live.store.get();
    return live.store.listen(() => {
      const now = live.store.get();
      const news = before.loaded && now.tasks !== before.tasks ? newlyNobodyFound(before.tasks, now.tasks) : [];
      before = now;
      if (!news.length) return;
      if (!store.get().muted) beep();
      for (const task of news.slice(0, MOST_TOLD)) tellOf(task, router);
    });
  }, [live]);
}

function tellOf(task, router) {
  const open = { label: word("open"), run: () => router.go(`requests/${task.id}`) };
  tell(word("nobodyFoundNews", { name: task.elder.name }), "bad", open);
}

let audio = null;

// Browsers allow sound only after somebody has touched the page.
for (const gesture of ["pointerdown", "keydown"]) {
  globalThis.addEventListener?.(gesture, () => (audio ??= new AudioContext()), { once: true });
}

const TONES = [
  { from: 0, hertz: 660 },
  { from: 0.22, hertz: 880 },
];
const TONE_S = 0.18;

export function beep() {
  if (!audio) return;
  audio.resume();
  for (const { from, hertz } of TONES) {
    const start = audio.currentTime + from;
    const tone = new OscillatorNode(audio, { frequency: hertz });
    const volume = new GainNode(audio, { gain: 0 });
    volume.gain.setValueAtTime(0, start);
    volume.gain.linearRampToValueAtTime(0.2, start + 0.02);
    volume.gain.linearRampToValueAtTime(0, start + TONE_S);
    tone.connect(volume).connect(audio.destination);
    tone.start(start);
    tone.stop(start + TONE_S);
  }
}
