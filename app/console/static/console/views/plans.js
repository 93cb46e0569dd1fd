// What the service says to whom: plans with their steps, and the texts of both languages. Admins may change them.

import { Badge } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { usePages } from "../pages.js";
import { Choices, Pages } from "./parts.js";
import { Plan } from "./plans/plan.js";
import { Template } from "./plans/template.js";
import { keysOf } from "./plans/template_texts.js";
import "./view_words.js";

const PAGE = 100;

export default function Plans({ place }) {
  const [first, second] = place.parts;
  if (first === "templates" && second) return html`<${Template} key=${second} templateKey=${second} />`;
  if (first && first !== "templates") return html`<${Plan} key=${first} id=${first} />`;
  return html`<${Lists} seen=${first ?? "plans"} />`;
}

function Lists({ seen }) {
  const { router } = useConsole();
  const choose = (wanted) => router.go(wanted === "plans" ? "plans" : "plans/templates");
  return html`<section class="view">
    <h1>${word("view_plans")}</h1>
    <${Choices} label=${word("view_plans")} options=${[["plans", word("plans")], ["templates", word("templates")]]} chosen=${seen} onChoose=${choose} />
    ${seen === "plans" ? html`<${PlanList} />` : html`<${TemplateList} />`}
  </section>`;
}

function PlanList() {
  const { api, router } = useConsole();
  const plans = usePages((cursor) => api.listActionPlans({ cursor, limit: PAGE }), []);
  return html`<${Pages} of=${plans} empty=${word("noPlan")}>${(plan) => html`<li key=${plan.id} class="entry">
    <a class="entry-link" href=${router.address(`plans/${plan.id}`)}><strong>${plan.name}</strong><span class="soft small">${plan.description}</span></a>
    ${!plan.status && html`<${Badge} kind="warn">${word("planOff")}<//>`}
  </li>`}<//>`;
}

function TemplateList() {
  const { api, router } = useConsole();
  const templates = usePages((cursor) => api.listTemplates({ cursor, limit: PAGE }), []);
  const byKey = { ...templates, value: templates.value && keysOf(templates.value) };
  return html`<${Pages} of=${byKey} empty=${word("noTemplate")}>${({ key, subject, locales }) => html`<li key=${key} class="entry">
    <a class="entry-link" href=${router.address(`plans/templates/${key}`)}><strong>${subject || key}</strong><span class="soft small">${key}</span></a>
    <span class="row">${locales.map((locale) => html`<${Badge} key=${locale}>${word(`language_${locale}`)}<//>`)}</span>
  </li>`}<//>`;
}
