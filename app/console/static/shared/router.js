// Addresses within one page: the path below `base` names the place, the query its filters. Uses the history of the
// browser, so that links, reload and "back" do what people expect.

import { createStore } from "./store.js";

export function createRouter(base) {
  const store = createStore(read(base));
  const update = () => store.set(read(base));
  globalThis.addEventListener("popstate", update);
  const router = {
    store,
    address(path, filters = {}) {
      const given = Object.entries(filters).filter(([, value]) => value !== undefined && value !== null && value !== "");
      const query = new URLSearchParams(given).toString();
      return `${base}${path ? `/${path}` : ""}${query ? `?${query}` : ""}`;
    },
    go(path, filters = {}) {
      history.pushState(null, "", router.address(path, filters));
      update();
    },
    // Filters replace the address, so that "back" leaves the place and not every letter of a search.
    filter(changes) {
      const { path, filters } = store.get();
      history.replaceState(null, "", router.address(path, { ...filters, ...changes }));
      update();
    },
    // For the click of a link inside the page. Clicks that open another tab stay the browser's.
    onLink(event) {
      const link = event.target.closest?.("a[href]");
      if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
      if (link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
      if (link.pathname !== base && !link.pathname.startsWith(`${base}/`)) return;
      event.preventDefault();
      history.pushState(null, "", link.href);
      update();
      globalThis.scrollTo(0, 0);
    },
    close() {
      globalThis.removeEventListener("popstate", update);
    },
  };
  return router;
}

function read(base) {
  const path = decoded(location.pathname).slice(base.length).replace(/^\/|\/$/g, "");
  return { path, parts: path ? path.split("/") : [], filters: Object.fromEntries(new URLSearchParams(location.search)) };
}

// A link with a broken escape names no place, and must not leave the page empty.
function decoded(pathname) {
  try {
    return decodeURI(pathname);
  } catch {
    return pathname;
  }
}
