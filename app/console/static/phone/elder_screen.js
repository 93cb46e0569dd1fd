// The elder's phone: a sentence, one large thing in the middle, and a person to call below it.

import { serverNow } from "../shared/clock.js";
import { firstName } from "../shared/format.js";
import { createStore, useStore, useTick } from "../shared/store.js";
import { Button, CallLink, Confirm, Dialog, Field } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html, useEffect, useRef, useState } from "../vendor/preact/preact.js";
import { Announcer } from "./announcer.js";
import { ElderProgress } from "./elder_progress.js";
import { ElderSettings, readWay, SignOutSheet } from "./elder_settings.js";
import { canPress, elderView } from "./elder_state.js";
import { detail, headline } from "./elder_words.js";
import { PressButton } from "./press_button.js";
import { ReadAloud } from "./read_aloud.js";

const screen = createStore({ dialog: null, way: readWay(), note: "" });

export function elderScreen(sender, session) {
  // The words of one person must not be sent with the press of the next.
  session.onChange((reason) => reason !== "expired" && screen.set({ dialog: null, note: "" }));
  const pressed = createStore({ changes: 0 });
  sender.queue.listen(() => pressed.set(({ changes }) => ({ changes: changes + 1 })));
  return function ElderScreen({ phone }) {
    useStore(pressed);
    const { me, ended, withdrawn } = useStore(phone.live.store);
    const view = elderView({ me, ended, withdrawn, press: sender.queue.state(me.id) });
    return html`<${Shown} ...${{ phone, sender, me, view }} />`;
  };
}

function Shown({ phone, sender, me, view }) {
  const { dialog, way, note } = useStore(screen);
  const close = () => screen.set({ dialog: null });
  const signOut = () => (["sending", "kept"].includes(view.kind) ? screen.set({ dialog: "signOut" }) : phone.session.end());
  const press = () => {
    screen.set({ note: "" });
    sender.press(note);
  };
  return html`<main class=${`elder ${view.kind}`}>
    <${Sentence} view=${view} me=${me} />
    <div class="middle">
      ${canPress(view) ? html`<${PressButton} way=${way} onPress=${press} />` : html`<${ElderProgress} view=${view} />`}
    </div>
    <${Below} ...${{ sender, me, view, note }} />
    ${dialog === "settings" && html`<${ElderSettings} way=${way} onWay=${(chosen) => screen.set({ way: chosen })} onSignOut=${signOut} onClose=${close} />`}
    ${dialog === "signOut" && html`<${SignOutSheet} session=${phone.session} onClose=${close} />`}
    ${dialog === "note" && html`<${NoteSheet} note=${note} onClose=${close} />`}
    ${dialog === "cancel" && html`<${CancelSheet} phone=${phone} view=${view} onClose=${close} />`}
  </main>`;
}

function Sentence({ view, me }) {
  useTick(5000); // The minutes in it run down.
  const first = view.kind === "idle" ? word("elder_idle", { name: firstName(me.name) }) : headline(view);
  const second = detail(view, serverNow());
  const said = useRef({ about: "", text: "" });
  // Minutes that pass are no news.
  const about = `${view.kind} ${view.name ?? ""} ${view.turn ?? ""} ${first}`;
  if (said.current.about !== about) said.current = { about, text: `${first} ${second}` };
  return html`<header class="sentence">
    <h1>${first}</h1>
    ${second && html`<p>${second}</p>`}
    <${ReadAloud} text=${`${first}. ${second}`} />
    <${Announcer} text=${said.current.text} />
  </header>`;
}

function Below({ sender, me, view, note }) {
  const open = view.task && !canPress(view);
  const needsPerson = ["nobody", "refused", "keptTooLong"].includes(view.kind);
  return html`<footer class="below">
    ${open && html`<${CallLink} phone=${view.task.student?.phone} label=${word("callStudent", { name: view.name })} kind="main" />`}
    <${CallLink} phone=${me.helpline} label=${word("callHelpline")} kind=${needsPerson ? "main" : ""} />
    ${note && canPress(view) && html`<p class="note">${word("note")}: ${note}</p>`}
    <div class="row small-things">
      ${canPress(view) && html`<${Button} kind="bare" onClick=${() => screen.set({ dialog: "note" })}>${word(note ? "changeNote" : "addNote")}<//>`}
      ${open && html`<${Button} kind="bare" onClick=${() => screen.set({ dialog: "cancel" })}>${word("cancelCall")}<//>`}
      ${view.kind === "kept" && html`<${Button} kind="bare" onClick=${sender.drop}>${word("cancelCall")}<//>`}
      <${Button} kind="bare" onClick=${() => screen.set({ dialog: "settings" })}>${word("settings")}<//>
    </div>
  </footer>`;
}

function NoteSheet({ note, onClose }) {
  const [text, setText] = useState(note);
  const field = useRef(null);
  useEffect(() => field.current?.focus(), []);
  const keep = (event) => {
    event.preventDefault();
    screen.set({ note: text.trim() });
    onClose();
  };
  return html`<${Dialog} title=${word("noteTitle")} onClose=${onClose}>
    <form class="stack" onSubmit=${keep}>
      <${Field} label=${word("noteLabel")}>${(control) => html`
        <textarea ...${control} ref=${field} rows="3" maxlength="500" value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
      `}<//>
      <button class="button main" type="submit">${word("save")}</button>
    </form>
  <//>`;
}

function CancelSheet({ phone, view, onClose }) {
  const cancel = async () => {
    await phone.api.cancelTask(view.task.id);
    await phone.live.read();
  };
  return html`<${Confirm}
    title=${word("cancelTitle")}
    question=${word("cancelQuestion")}
    label=${word("cancelYes")}
    dismiss=${word("cancelNo")}
    kind="bad"
    onConfirm=${cancel}
    onClose=${onClose}
  />`;
}
