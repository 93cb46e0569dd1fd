import { createRouter } from "../../../app/console/static/shared/router.js";
import { equal, test } from "./cases.js";

test("an address with a broken escape is a place like any other", () => {
  history.replaceState(null, "", "/console/requests/%ff?search=a");
  const router = createRouter("/console");
  equal(router.store.get(), { path: "requests/%ff", parts: ["requests", "%ff"], filters: { search: "a" } });
  router.close();
});
