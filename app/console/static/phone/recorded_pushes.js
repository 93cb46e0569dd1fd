// The pushes that a copy without providers has recorded for this person, shown as a phone would show them. A copy that
// sends pushes answers 404, and is not asked again.

import { createStore, useStore } from "../shared/store.js";
import { Button } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html } from "../vendor/preact/preact.js";

const LOOKS_MS = [300, 1500, 4000]; // A push is recorded some time after what it tells of.
const SHOWN_MS = 8000;

export function openRecordedPushes({ session, api, live }) {
  const store = createStore({ shown: null });
  let newest = null;
  let isRecording = true;
  let timers = [];
  let hiding = null;
  let about = "";

  const look = async () => {
    if (!session.token() || !isRecording) return;
    try {
      const [push] = (await api.listPushes({ limit: 1 })).items;
      const isNew = newest !== null && push && push.id > newest;
      newest = push?.id ?? 0;
      if (isNew) show(push);
    } catch (error) {
      if (error.status === 404) isRecording = false;
    }
  };
  const show = (push) => {
    if (!push.title) return;
    clearTimeout(hiding);
    store.set({ shown: push });
    hiding = setTimeout(() => store.set({ shown: null }), SHOWN_MS);
  };
  live.store.listen(() => {
    const { me } = live.store.get();
    const now = me && `${me.id} ${me.openTask?.status} ${me.openTask?.asked} ${me.offer?.taskId}`;
    if (!now || now === about) return;
    about = now;
    timers.forEach(clearTimeout);
    timers = LOOKS_MS.map((pause) => setTimeout(look, pause));
  });
  session.onChange(() => {
    newest = null;
    about = "";
    store.set({ shown: null });
  });
  return { store, hide: () => store.set({ shown: null }) };
}

// Screen readers are told by the screen itself, so this is not announced a second time.
export function RecordedPush({ pushes }) {
  const { shown } = useStore(pushes.store);
  if (!shown) return null;
  return html`<aside class="push" aria-label=${word("notice")}>
    <div>
      <strong>${shown.title}</strong>
      <p>${shown.body}</p>
    </div>
    <${Button} kind="bare" onClick=${pushes.hide} aria-label=${word("close")}>✕<//>
  </aside>`;
}
