// A list of which only the visible rows are in the page, so that ten thousand rows scroll as ten do. All rows have the
// same height, in pixels.

import { html, useEffect, useRef, useState } from "../vendor/preact/preact.js";

const MORE_ROWS = 8;

// Which rows stand in the window, with some more on each side.
function visibleRows({ scrollTop, height, rowHeight, count }) {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - MORE_ROWS);
  const last = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + MORE_ROWS);
  return { first: Math.min(first, last), last };
}

export function VirtualList({ rows, rowHeight, keyOf, render, label }) {
  const element = useRef(null);
  const [view, setView] = useState({ scrollTop: 0, height: 600 });
  useEffect(() => {
    const measure = () => setView({ scrollTop: element.current.scrollTop, height: element.current.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  const { first, last } = visibleRows({ ...view, rowHeight, count: rows.length });
  const onScroll = (event) => setView({ ...view, scrollTop: event.target.scrollTop });
  return html`<div class="virtual" ref=${element} onScroll=${onScroll} tabindex="0" role="region" aria-label=${label}>
    <ul class="plain" style=${{ height: `${rows.length * rowHeight}px`, position: "relative" }}>
      ${rows.slice(first, last).map(
        (row, index) => html`<li
          key=${keyOf(row)}
          style=${{ position: "absolute", top: `${(first + index) * rowHeight}px`, left: 0, right: 0, height: `${rowHeight}px` }}
          aria-setsize=${rows.length}
          aria-posinset=${first + index + 1}
        >${render(row)}</li>`,
      )}
    </ul>
  </div>`;
}
