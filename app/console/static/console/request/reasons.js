// Why a student was asked, skipped, or is not asked, in words.

import { secondsUntil } from "../../shared/clock.js";
import { clockTime, countdown, number } from "../../shared/format.js";
import { hasWord, word } from "../../shared/words.js";

// A code without words is shown as it is, because it says more than nothing.
export function reasonInWords(code, { distanceM } = {}) {
  if (code === "TOO_FAR" && distanceM !== null && distanceM !== undefined) {
    return word("reason_TOO_FAR_by", { distance: exactMetres(distanceM) });
  }
  return hasWord(`reason_${code}`) ? word(`reason_${code}`) : code;
}

// What decides about the order: how often they have helped, and how far away they are.
export function standing({ completedThisMonth, distanceM }) {
  const parts = [word("helpedThisMonth", { count: completedThisMonth })];
  if (distanceM !== null && distanceM !== undefined) parts.push(word("away", { distance: exactMetres(distanceM) }));
  return parts.join(" · ");
}

export function offerInWords(offer) {
  const { state, reason, deadline, closedAt } = offer;
  const because = reason ? reasonInWords(reason, offer) : "";
  switch (state) {
    case "PENDING":
      return word("offer_PENDING", { left: countdown(secondsUntil(deadline)) });
    case "SKIPPED":
      return because;
    case "WITHDRAWN":
      return because ? word("offer_WITHDRAWN_because", { because }) : word("offer_WITHDRAWN");
    case "ACCEPTED":
    case "RELEASED":
      return word(reason === "ASSIGNED_BY_HAND" ? `offer_${state}_by_hand` : `offer_${state}`);
    default:
      return closedAt ? word("offer_at", { what: word(`offer_${state}`), time: clockTime(closedAt) }) : word(`offer_${state}`);
  }
}

// Whole metres also beyond a kilometre, because they are compared with the radius of the search.
function exactMetres(value) {
  return `${number(Math.round(value))} m`;
}

const KINDS = { PENDING: "accent", ACCEPTED: "good", REJECTED: "warn", EXPIRED: "warn" };

export function kindOfOffer(state) {
  return KINDS[state] ?? "";
}
