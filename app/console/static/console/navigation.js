// The navigation: a column beside wide views, a drawer on narrow ones.

import { Badge, Button } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html, useEffect, useState } from "../vendor/preact/preact.js";
import { useAlarm } from "./alarm.js";
import { useConsole } from "./context.js";
import { viewsFor } from "./views.js";

const GROUPS = ["live", "month", "people", "service"];

export function Navigation({ current }) {
  const { me, router } = useConsole();
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [current]);
  const views = viewsFor(me.role);
  const onKey = (event) => event.key === "Escape" && setOpen(false);
  return html`<div class="navigation" onKeyDown=${onKey}>
    <${Button}
      kind="bare icon-button menu"
      aria-expanded=${String(open)}
      aria-controls="places"
      aria-label=${word("menu")}
      onClick=${() => setOpen(!open)}
    ><span aria-hidden="true">☰</span><//>
    <a class="brand" href=${router.address("")}>Yanında</a>
    <nav id="places" class=${open ? "places open" : "places"} aria-label=${word("navigation")}>
      ${GROUPS.map((group) => html`<${Group} key=${group} group=${group} views=${views} current=${current} />`)}
    </nav>
  </div>`;
}

function Group({ group, views, current }) {
  const own = views.filter((view) => view.group === group);
  if (!own.length) return null;
  return html`<div class="group">
    <p class="soft small" id=${`group-${group}`}>${word(`group_${group}`)}</p>
    <ul class="plain" aria-labelledby=${`group-${group}`}>
      ${own.map((view) => html`<li key=${view.path}><${Place} view=${view} current=${view === current} /></li>`)}
    </ul>
  </div>`;
}

function Place({ view, current }) {
  const { router } = useConsole();
  const { count } = useAlarm();
  const owed = view.path === "nobody-found" ? count : 0;
  return html`<a href=${router.address(view.path)} aria-current=${current ? "page" : undefined}>
    ${word(view.title)} ${owed > 0 && html`<${Badge} kind="bad">${owed}<//>`}
  </a>`;
}
