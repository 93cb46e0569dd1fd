// The open requests as a list and on the map, and one of them in full. Wide windows show them side by side, narrow ones
// one at a time.

import { serverNow } from "../../shared/clock.js";
import { useStore, useTick } from "../../shared/store.js";
import { word } from "../../shared/words.js";
import { html, useMemo, useState } from "../../vendor/preact/preact.js";
import { BoardFilters } from "../board_filters.js";
import { BoardState } from "../board_state.js";
import { useConsole } from "../context.js";
import { Later } from "../later.js";
import { MapPane } from "../map_pane.js";
import { useMedia } from "../media.js";
import { matchingTasks } from "../request_filter.js";
import { RequestList } from "../request_list.js";
import { useShortcut } from "../shortcuts.js";
import { mostUrgentFirst } from "../urgency.js";

const WIDE = "(min-width: 64rem)";
const requestPane = () => import("../request/request_pane.js");
const pressDialog = () => import("../press_dialog.js");

export function Board({ place }) {
  const { live, router } = useConsole();
  const { loaded, error } = useStore(live.store);
  const [pressing, setPressing] = useState(false);
  const isWide = useMedia(WIDE);
  const { filters, parts } = place;
  const [current = null] = parts;
  const rows = useRows(filters);
  const open = (id) => router.go(`requests/${id}`, filters);
  const openPoint = ({ kind, id, name }) => (kind === "elder" ? open(id) : router.go("duty", { duty: "all", q: name }));
  const showsMap = isWide || (filters.show === "map" && !current);
  useBoardShortcuts({ rows, current, open, filters, press: () => setPressing(true) });
  if (!loaded) return html`<section class="view"><h1>${word("view_requests")}</h1><${BoardState} error=${error} /></section>`;
  const pane = current ? "request" : showsMap && !isWide ? "map" : "list";
  return html`<div class="board" data-open=${pane}>
    <section class="pane list-pane" aria-labelledby="list-heading">
      <${BoardFilters} filters=${filters} count=${rows.length} isWide=${isWide} onPress=${() => setPressing(true)} />
      ${pane !== "map" && html`<${RequestList} rows=${rows} current=${current} filters=${filters} />`}
    </section>
    ${current && html`<${Later} load=${requestPane} key=${current} id=${current} back=${router.address("requests", filters)} />`}
    ${showsMap && html`<${MapPane} current=${current} onOpen=${openPoint} />`}
    ${pressing && html`<${Later} load=${pressDialog} onClose=${() => setPressing(false)} />`}
  </div>`;
}

// The order depends on time by minutes, the countdowns by seconds.
const ORDER_HOLDS_MS = 10_000;

function useRows({ q, state }) {
  const { live } = useConsole();
  const { tasks } = useStore(live.store);
  useTick(1000);
  const moment = Math.floor(serverNow() / ORDER_HOLDS_MS) * ORDER_HOLDS_MS;
  return useMemo(() => mostUrgentFirst(matchingTasks(tasks.values(), { q, state }), moment), [tasks, q, state, moment]);
}

function useBoardShortcuts({ rows, current, open, filters, press }) {
  const { router } = useConsole();
  const step = (by) => {
    const index = rows.findIndex(({ task }) => task.id === current);
    const next = rows[index === -1 ? 0 : index + by];
    if (next) open(next.task.id);
  };
  useShortcut("j", "shortcut_next", () => step(1));
  useShortcut("k", "shortcut_previous", () => step(-1));
  useShortcut("/", "shortcut_search", () => document.querySelector("[data-search]")?.focus());
  useShortcut("n", "shortcut_press", press);
  useShortcut("Escape", "shortcut_back", () => current && router.go("requests", filters));
}
