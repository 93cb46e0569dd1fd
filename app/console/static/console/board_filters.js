// What stands above the list of open requests: search, states, list or map, and the call of an elder by telephone.

import { Button } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html } from "../vendor/preact/preact.js";
import { useConsole } from "./context.js";
import { ChoiceButtons, SearchField, SelectField } from "./form_parts.js";
import { STATES } from "./request_filter.js";

export function BoardFilters({ filters, count, isWide, onPress }) {
  const { router } = useConsole();
  return html`<div class="board-head stack">
    <div class="row apart">
      <h1 id="list-heading">${word("view_requests")} <span class="soft numbers">${count}</span></h1>
      <${Button} kind="main" onClick=${onPress}>${word("pressButton")}<//>
    </div>
    <div class="filters">
      <${SearchField}
        label=${word("search")}
        placeholder=${word("searchRequestHint")}
        value=${filters.q ?? ""}
        onSearch=${(q) => router.filter({ q })}
        data-search
      />
      <${SelectField}
        label=${word("state")}
        value=${filters.state ?? ""}
        options=${["", ...STATES].map((value) => ({ value, text: word(`state_${value || "all"}`) }))}
        onSelect=${(state) => router.filter({ state })}
      />
    </div>
    ${!isWide && html`<${ListOrMap} show=${filters.show ?? ""} />`}
  </div>`;
}

function ListOrMap({ show }) {
  const { router } = useConsole();
  const options = [
    { value: "", text: word("list") },
    { value: "map", text: word("map") },
  ];
  const choose = (value) => router.filter({ show: value });
  return html`<${ChoiceButtons} label=${word("listOrMap")} value=${show} options=${options} onChoose=${choose} />`;
}
