// Reads a sentence aloud when somebody asks for it.

import { html, useEffect, useState } from "../vendor/preact/preact.js";
import { currentLocale, word } from "../shared/words.js";

export function ReadAloud({ text }) {
  const voice = globalThis.speechSynthesis;
  const [speaking, setSpeaking] = useState(false);
  useEffect(() => () => voice?.cancel(), []);
  if (!voice || !globalThis.SpeechSynthesisUtterance) return null;
  const speak = () => {
    voice.cancel();
    if (speaking) return setSpeaking(false);
    const sentence = new SpeechSynthesisUtterance(text);
    sentence.lang = currentLocale() === "en" ? "en-GB" : "tr-TR";
    sentence.rate = 0.9;
    sentence.onend = sentence.onerror = () => setSpeaking(false);
    setSpeaking(true);
    voice.speak(sentence);
  };
  return html`<button type="button" class="button read-aloud" aria-pressed=${speaking} onClick=${speak}>
    <${Speaker} />${word("readAloud")}
  </button>`;
}

function Speaker() {
  return html`<svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2">
    <path d="M4 9v6h4l5 4V5L8 9z" fill="currentColor" stroke-linejoin="round" />
    <path d="M16.5 8.5a5 5 0 0 1 0 7M19 6a9 9 0 0 1 0 12" stroke-linecap="round" />
  </svg>`;
}
