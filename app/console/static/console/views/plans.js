// What the service says to whom: plans with their steps, and the texts of both languages. Admins may change them.

import { Badge, Button } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html, useState } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { ChoiceButtons } from "../form_parts.js";
import { usePages } from "../pages.js";
import { EntryLink, Pages } from "./parts.js";
import { Plan } from "./plans/plan.js";
import { PlanDialog } from "./plans/plan_dialog.js";
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
  const options = ["plans", "templates"].map((value) => ({ value, text: word(value) }));
  return html`<section class="view">
    <h1>${word("view_plans")}</h1>
    <${ChoiceButtons} label=${word("view_plans")} value=${seen} options=${options} onChoose=${choose} />
    ${seen === "plans" ? html`<${PlanList} />` : html`<${TemplateList} />`}
  </section>`;
}

function PlanList() {
  const { api, me } = useConsole();
  const plans = usePages((cursor) => api.listActionPlans({ cursor, limit: PAGE }), []);
  const row = ({ id, name, description, status }) => html`<li key=${id} class="entry">
    <${EntryLink} to=${`plans/${id}`} title=${name} about=${description} />
    ${!status && html`<${Badge} kind="warn">${word("planOff")}<//>`}
  </li>`;
  return html`${me.role === "ADMIN" && html`<${NewPlan} />`}<${Pages} of=${plans} empty=${word("noPlan")}>${row}<//>`;
}

function NewPlan() {
  const { router } = useConsole();
  const [isAdding, setAdding] = useState(false);
  const close = () => setAdding(false);
  return html`<div>
    <${Button} onClick=${() => setAdding(true)}>${word("addPlan")}<//>
    ${isAdding && html`<${PlanDialog} onMade=${({ id }) => router.go(`plans/${id}`)} onClose=${close} />`}
  </div>`;
}

function TemplateList() {
  const { api } = useConsole();
  const templates = usePages((cursor) => api.listTemplates({ cursor, limit: PAGE }), []);
  const byKey = { ...templates, value: templates.value && keysOf(templates.value) };
  const row = ({ key, subject, locales }) => html`<li key=${key} class="entry">
    <${EntryLink} to=${`plans/templates/${key}`} title=${subject || key} about=${key} />
    <span class="row">${locales.map((locale) => html`<${Badge} key=${locale}>${word(`language_${locale}`)}<//>`)}</span>
  </li>`;
  return html`<${Pages} of=${byKey} empty=${word("noTemplate")}>${row}<//>`;
}
