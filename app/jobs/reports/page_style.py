"""The style sheet of the report's page. The colours differ in brightness too, for people who do not tell them apart."""

STYLE = """
:root { color-scheme: light dark; --ground: #f6f5f1; --card: #fff; --ink: #1d2327; --soft: #5d666d; --rule: #dfe1e0;
  --track: #eceded; --good: #1a7f6b; --bad: #c8501e; --other: #3b6fb6; --plain: #8d979e; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181a; --card: #1d2326; --ink: #e9ecee; --soft: #a3adb4;
  --rule: #343c41; --track: #2a3135; --good: #4cc3a8; --bad: #f08a54; --other: #7fabe8; --plain: #838e96; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 20px 14px 48px; max-width: 1180px; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
header p { margin: 0; color: var(--soft); }
h1 { margin: 0; font-size: 30px; line-height: 1.2; letter-spacing: -.01em; }
h2 { margin: 0 0 2px; font-size: 17px; }
section > p { margin: 0 0 12px; color: var(--soft); font-size: 13.5px; }
.tiles { display: grid; grid-template-columns: repeat(2, 1fr); gap: 10px; margin: 18px 0 14px; padding: 0;
  list-style: none; }
.tiles li, section { min-width: 0; background: var(--card); border: 1px solid var(--rule); border-radius: 12px; }
.tiles li { padding: 12px 14px; }
.tiles b { display: block; font-size: 22px; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tiles span { color: var(--soft); font-size: 13px; }
main { column-gap: 14px; }
section { margin-bottom: 14px; padding: 16px 14px; break-inside: avoid; }
figure { margin: 0 0 12px; }
svg { display: block; width: 100%; max-width: 520px; height: auto; margin: 0 auto; overflow: visible; }
svg text { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
svg .strong { fill: var(--ink); font-weight: 600; }
.end { text-anchor: end; } .mid { text-anchor: middle; }
.track { fill: var(--track); } .rule { stroke: var(--rule); stroke-width: 1; }
.good { fill: var(--good); } .bad { fill: var(--bad); } .other { fill: var(--other); } .plain { fill: var(--plain); }
.line { fill: none; stroke-width: 2; } .line.good { stroke: var(--good); } .line.other { stroke: var(--other); }
.line.faint { stroke: var(--plain); stroke-width: 1; stroke-dasharray: 4 4; }
.table { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 6px; border-top: 1px solid var(--rule); text-align: right; white-space: nowrap; }
thead th { border-top: 0; color: var(--soft); font-weight: 500; }
tbody th { min-width: 84px; font-weight: 500; white-space: normal; overflow-wrap: anywhere; }
th:first-child { padding-left: 0; text-align: left; } td:last-child, thead th:last-child { padding-right: 0; }
summary { color: var(--soft); font-size: 13.5px; cursor: pointer; }
.empty { margin: 0; padding: 22px; border: 1px dashed var(--rule); border-radius: 8px; text-align: center; }
.notes { margin: 6px 0 0; padding-left: 18px; color: var(--soft); font-size: 13.5px; }
@media (min-width: 640px) { .tiles { grid-template-columns: repeat(3, 1fr); } }
@media (min-width: 900px) { body { padding: 36px 28px 64px; } .tiles { grid-template-columns: repeat(6, 1fr); }
  main { columns: 2; } section { padding: 20px; } }
@media print { body { background: none; } }
"""
