// The elder's phone: one large button, and what becomes of a press.

import { useStore } from "../shared/store.js";
import { CallLink } from "../shared/ui.js";
import { addWords, word } from "../shared/words.js";
import { html } from "../vendor/preact/preact.js";
import { elderScreen } from "./elder_screen.js";
import { openPhone } from "./phone_app.js";
import { POLITE_TR } from "./polite_tr.js";
import { openPressSender } from "./press_sender.js";

addWords(POLITE_TR, {});

const phone = openPhone({ kind: "elder", role: "ELDER" });
const sender = openPressSender(phone);

// Above the sign-in: a press is not lost because a token has expired.
function WaitingPress() {
  const { me } = useStore(phone.live.store);
  if (!me || !sender.queue.state(me.id)) return null;
  return html`<div class="notice warn">
    <p>${word("pressWaitsForSignIn")}</p>
    <${CallLink} phone=${me.helpline} label=${word("callHelpline")} />
  </div>`;
}

phone.show(elderScreen(sender, phone.session), WaitingPress);
