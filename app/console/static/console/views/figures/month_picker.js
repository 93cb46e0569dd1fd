// Chooses the month, which stands in the address.

import { Button } from "../../../shared/ui.js";
import { currentLocale, word } from "../../../shared/words.js";
import { html } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { monthsAround, shifted, thisMonth } from "./months.js";

export function MonthPicker({ month }) {
  const { router } = useConsole();
  const choose = (wanted) => router.go("figures", { month: wanted });
  return html`<div class="row months">
    <${Step} label=${word("monthBefore")} onClick=${() => choose(shifted(month, -1))}>‹<//>
    <select class="button" aria-label=${word("month")} value=${month} onChange=${(event) => choose(event.target.value)}>
      ${monthsAround(month).map((one) => html`<option key=${one} value=${one}>${monthName(one)}</option>`)}
    </select>
    <${Step} label=${word("monthAfter")} disabled=${month >= thisMonth()} onClick=${() => choose(shifted(month, 1))}>›<//>
  </div>`;
}

function Step({ label, children, ...more }) {
  return html`<${Button} kind="icon-button" aria-label=${label} ...${more}>${children}<//>`;
}

function monthName(month) {
  const [year, number] = month.split("-").map(Number);
  const tag = currentLocale() === "en" ? "en-GB" : "tr-TR";
  return new Date(year, number - 1).toLocaleDateString(tag, { month: "long", year: "numeric" });
}
