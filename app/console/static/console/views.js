// The views of the console, in the order of the navigation. A view is loaded when it is opened: its module exports a
// component as default, which gets `place`, the path and filters of the address below the view's own path.
//
// A view takes what it needs from `useConsole()` of context.js, and brings its own words with `addWords`.

import { Board } from "./views/board.js";

const STAFF = ["COORDINATOR", "ADMIN"];
const ADMIN = ["ADMIN"];

const loaded = (component) => () => Promise.resolve({ default: component });

const named = (path, group, key, roles, load) => ({ path, title: `view_${path.replaceAll("-", "_")}`, group, key, roles, load });

// `key` opens the view after "g"; `group` is its place in the navigation.
export const VIEWS = [
  named("requests", "live", "r", STAFF, loaded(Board)),
  named("nobody-found", "live", "n", STAFF, () => import("./views/nobody_found.js")),
  named("duty", "live", "d", STAFF, () => import("./views/duty.js")),
  named("figures", "month", "f", STAFF, () => import("./views/figures.js")),
  named("people", "people", "p", ADMIN, () => import("./views/people.js")),
  named("roster", "people", "l", ADMIN, () => import("./views/roster.js")),
  named("dead-letters", "service", "m", STAFF, () => import("./views/dead_letters.js")),
  named("plans", "service", "w", STAFF, () => import("./views/plans.js")),
  named("jobs", "service", "j", ADMIN, () => import("./views/jobs.js")),
  named("audit", "service", "a", ADMIN, () => import("./views/audit.js")),
  named("health", "service", "h", STAFF, () => import("./views/health.js")),
];

export function viewsFor(role) {
  return VIEWS.filter((view) => view.roles.includes(role));
}

// `{ view, place }` for a place of the router; the view is undefined where the address names none. Without a path it is
// the first one.
export function viewAt({ parts, filters }, role) {
  const [first = VIEWS[0].path, ...rest] = parts;
  const view = viewsFor(role).find(({ path }) => path === first);
  return { view, place: { path: rest.join("/"), parts: rest, filters } };
}
