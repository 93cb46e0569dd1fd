// The map beside the list. Leaflet is loaded when the map is shown for the first time, so that the list need not wait.

import { useStore } from "../shared/store.js";
import { Button, Failure, Loading } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html, useEffect, useRef, useState } from "../vendor/preact/preact.js";
import { useConsole } from "./context.js";
import { happening } from "./request_words.js";

const MOVE_SETTLES_MS = 400;
const STUDENTS_HOLD_MS = 60_000;

export function MapPane({ current, onOpen }) {
  const { live, settings } = useConsole();
  const { tasks, students } = useStore(live.store);
  const element = useRef(null);
  const [map, setMap] = useState(null);
  const [error, setError] = useState(null);
  const { look, truncated } = useStudentsInSight();

  useEffect(() => {
    let opened = null;
    let closed = false;
    import("./map/live_map.js").then(({ openLiveMap }) => {
      if (closed) return;
      const describe = (point) => describePoint(point, live.store.get().tasks);
      opened = openLiveMap(element.current, { settings, describe, on: { open: onOpen, moved: look } });
      opened.show({ ...live.store.get(), current });
      opened.showAllAtFirst();
      setMap(opened);
    }, setError);
    return () => {
      closed = true;
      opened?.close();
    };
  }, []);
  useEffect(() => map?.show({ tasks, students, current }), [map, tasks, students, current]);

  return html`<section class="map-pane" aria-label=${word("map")}>
    <p class="unseen">${word("mapForReaders")}</p>
    <div class="map" ref=${element}></div>
    ${!map && (error ? html`<${Failure} error=${{ name: "Unreachable" }} />` : html`<${Loading} />`)}
    ${map &&
    html`<div class="map-buttons">
      <${Button} aria-label=${word("zoomIn")} onClick=${() => map.zoomBy(1)}>+<//>
      <${Button} aria-label=${word("zoomOut")} onClick=${() => map.zoomBy(-1)}>−<//>
    </div>`}
    <${Legend} />
    ${truncated && html`<p class="notice map-note small">${word("mapTruncated")}</p>`}
    ${settings.tileAddress && settings.tileAttribution && html`<p class="map-source small">${settings.tileAttribution}</p>`}
  </section>`;
}

function describePoint(point, tasks) {
  if (point.kind === "student") return word("mapStudent", { name: point.name, state: word(`student_${point.state}`) });
  const task = tasks.get(point.id);
  return task ? word("mapElder", { name: point.name, state: happening(task) }) : point.name;
}

// Reads the students of the part of the world that is shown: after a move, and now and then because they move as well.
function useStudentsInSight() {
  const { api, live } = useConsole();
  const [truncated, setTruncated] = useState(false);
  const bounds = useRef(null);
  const timer = useRef(null);
  const read = async () => {
    const answer = await api.showMap(bounds.current).catch(() => null);
    schedule(STUDENTS_HOLD_MS);
    if (!answer) return;
    live.learnStudents(answer.students);
    setTruncated(answer.truncated);
  };
  const schedule = (delay) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(read, delay);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  const look = (now) => {
    const isFirst = bounds.current === null;
    bounds.current = now;
    schedule(isFirst ? 0 : MOVE_SETTLES_MS);
  };
  return { look, truncated };
}

const SIGNS = ["elder", "elder_bad", "free", "asked", "busy"];

function Legend() {
  return html`<ul class="plain legend small">
    ${SIGNS.map((sign) => html`<li key=${sign} class=${`sign ${sign}`}>${word(`sign_${sign}`)}</li>`)}
  </ul>`;
}
