// Components that every page uses: buttons, fields, dialogs, and the states of what is read from the server.

import { html, useEffect, useRef, useState } from "../vendor/preact/preact.js";
import { phoneNumber } from "./format.js";
import { createStore, useStore } from "./store.js";
import { word } from "./words.js";

// `onClick` may return a promise: until it ends the button is busy and takes no second click, and a failure is told.
export function Button({ onClick, kind = "", busy = false, disabled = false, children, ...more }) {
  const [running, setRunning] = useState(false);
  const isBusy = busy || running;
  const click = async (event) => {
    if (isBusy || disabled) return;
    setRunning(true);
    try {
      await onClick?.(event);
    } catch (error) {
      tell(messageOf(error), "bad");
    } finally {
      setRunning(false);
    }
  };
  // Not `disabled`, which would take the focus away from whoever uses a keyboard.
  return html`<button
    type="button"
    class=${`button ${kind}`}
    aria-disabled=${isBusy || disabled ? "true" : undefined}
    aria-busy=${isBusy ? "true" : undefined}
    onClick=${click}
    ...${more}
  >${children}</button>`;
}

export function CallLink({ phone, label = null, kind = "" }) {
  if (!phone) return null;
  return html`<a class=${`button call ${kind}`} href=${`tel:${phone}`}>
    <span>${label ?? word("call")}</span> <span class="number">${phoneNumber(phone)}</span>
  </a>`;
}

export function Badge({ kind = "", children }) {
  return html`<span class=${`badge ${kind}`}>${children}</span>`;
}

let newestField = 0;

export function Field({ label, wrong = null, hint = null, children }) {
  const id = useRef(null);
  id.current ??= `field-${(newestField += 1)}`;
  const about = `${id.current}-about`;
  const control = children({
    id: id.current,
    "aria-invalid": wrong ? "true" : undefined,
    "aria-describedby": wrong || hint ? about : undefined,
  });
  return html`<div class="field">
    <label for=${id.current}>${label}</label>
    ${control}
    ${wrong ? html`<span id=${about} class="wrong">${wrong}</span>` : hint && html`<span id=${about} class="soft small">${hint}</span>`}
  </div>`;
}

// ---- what is read from the server: on its way, failed, empty, there ----

export function Loading() {
  return html`<p class="loading" role="status">${word("loading")}</p>`;
}

export function Empty({ children }) {
  return html`<div class="empty"><p>${children ?? word("nothingHere")}</p></div>`;
}

export function Failure({ error, retry }) {
  return html`<div class="notice bad" role="alert">
    <p>${messageOf(error)}</p>
    ${retry && html`<${Button} onClick=${retry}>${word("tryAgain")}<//>`}
  </div>`;
}

// What people read of an error. Problems of the API have words of their own where their code has some.
export function messageOf(error) {
  if (error?.name === "Unreachable") return word(error.reason === "TIMEOUT" ? "timedOut" : "unreachable");
  const own = error?.code ? `problem_${error.code}` : "";
  const found = own && word(own, { detail: error.detail ?? "" });
  if (found && found !== own) return found;
  if (error?.status >= 500) return word("serverAway");
  return word("failed", { detail: error?.detail ?? error?.message ?? String(error) });
}

// Reads when it is mounted and whenever one of `causes` changes. An older answer never replaces a newer one.
export function useRead(read, causes) {
  const [state, setState] = useState({ value: null, error: null, reading: true });
  const newest = useRef(0);
  const again = async () => {
    const turn = (newest.current += 1);
    setState((before) => ({ ...before, reading: true }));
    try {
      const value = await read();
      if (turn === newest.current) setState({ value, error: null, reading: false });
    } catch (error) {
      if (turn === newest.current) setState((before) => ({ ...before, error, reading: false }));
    }
  };
  useEffect(() => {
    again();
    return () => {
      newest.current += 1;
    };
  }, causes);
  return { ...state, again };
}

// Shows what `useRead` has: a failure does not take away what was read before.
export function Read({ of, children }) {
  if (of.value !== null) return html`${of.error && html`<${Failure} error=${of.error} retry=${of.again} />`}${children(of.value)}`;
  return of.error ? html`<${Failure} error=${of.error} retry=${of.again} />` : html`<${Loading} />`;
}

// ---- dialogs ----

const dialogs = createStore({ open: 0 });

export function Dialog({ title, onClose, children }) {
  const element = useRef(null);
  useEffect(() => {
    const opener = document.activeElement;
    element.current.showModal();
    dialogs.set(({ open }) => ({ open: open + 1 }));
    return () => {
      dialogs.set(({ open }) => ({ open: open - 1 }));
      opener?.focus?.();
    };
  }, []);
  return html`<dialog ref=${element} aria-labelledby="dialog-title" onClose=${onClose}>
    <div class="stack">
      <div class="row apart">
        <h2 id="dialog-title">${title}</h2>
        <${Button} kind="bare" onClick=${() => element.current.close()} aria-label=${word("close")}>✕<//>
      </div>
      ${children}
    </div>
    <div class="toasts-inside" role="status" aria-live="polite"><${AllToasts} /></div>
  </dialog>`;
}

// A failure closes it too: the deed may be possible no more.
export function Confirm({ title, question, label, dismiss, kind = "main", onConfirm, onClose }) {
  const confirm = async () => {
    try {
      await onConfirm();
    } finally {
      onClose();
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>${question}</p>
    <div class="row">
      <${Button} kind=${kind} onClick=${confirm}>${label ?? word("confirm")}<//>
      <${Button} onClick=${onClose}>${dismiss ?? word("cancel")}<//>
    </div>
  <//>`;
}

// ---- short messages at the edge of the window ----

const SHOWN_MS = 8000;
const toasts = createStore({ all: [] });
let newestToast = 0;

// `action` is `{label, run}`, for example to undo what was done.
export function tell(text, kind = "good", action = null) {
  const id = (newestToast += 1);
  toasts.set(({ all }) => ({ all: [...all.slice(-3), { id, text, kind, action }] }));
  setTimeout(() => forget(id), SHOWN_MS);
}

function forget(id) {
  toasts.set(({ all }) => ({ all: all.filter((toast) => toast.id !== id) }));
}

// While a dialog is open it shows them itself, because all else is behind it and cannot be reached.
export function Toasts() {
  const { open } = useStore(dialogs);
  return html`<div class="toasts" role="status" aria-live="polite">${!open && html`<${AllToasts} />`}</div>`;
}

function AllToasts() {
  const { all } = useStore(toasts);
  return all.map(
    ({ id, text, kind, action }) => html`<div key=${id} class=${`notice ${kind}`}>
      <p>${text}</p>
      ${action &&
      html`<${Button} kind="bare" onClick=${async () => {
        forget(id);
        await action.run();
      }}>${action.label}<//>`}
    </div>`,
  );
}

// ---- connection ----

export function useOnline() {
  const [online, setOnline] = useState(navigator.onLine);
  useEffect(() => {
    const update = () => setOnline(navigator.onLine);
    globalThis.addEventListener("online", update);
    globalThis.addEventListener("offline", update);
    return () => {
      globalThis.removeEventListener("online", update);
      globalThis.removeEventListener("offline", update);
    };
  }, []);
  return online;
}
