// The views of the console, in the order of the navigation. All but the first are loaded when they are opened: the module
// exports a component as default, which gets `place`, the path and filters of the address below the view's own path.
//
// A view takes what it needs from `useConsole()` of context.js, and brings its own words with `addWords`.

import { Board } from "./views/board.js";

const STAFF = ["COORDINATOR", "ADMIN"];
const ADMIN = ["ADMIN"];

const named = (path, group, key, roles, more) => ({ path, title: `view_${path.replaceAll("-", "_")}`, group, key, roles, ...more });
const later = (path, group, key, roles, load) => named(path, group, key, roles, { load });

// `key` opens the view after "g"; `group` is its place in the navigation.
export const VIEWS = [
  named("requests", "live", "r", STAFF, { component: Board }),
  later("nobody-found", "live", "n", STAFF, () => import("./views/nobody_found.js")),
  later("duty", "live", "d", STAFF, () => import("./views/duty.js")),
  later("figures", "month", "f", STAFF, () => import("./views/figures.js")),
  later("people", "people", "p", ADMIN, () => import("./views/people.js")),
  later("roster", "people", "l", ADMIN, () => import("./views/roster.js")),
  later("dead-letters", "service", "m", STAFF, () => import("./views/dead_letters.js")),
  later("plans", "service", "w", STAFF, () => import("./views/plans.js")),
  later("jobs", "service", "j", ADMIN, () => import("./views/jobs.js")),
  later("audit", "service", "a", ADMIN, () => import("./views/audit.js")),
  later("health", "service", "h", STAFF, () => import("./views/health.js")),
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
