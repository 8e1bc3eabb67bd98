"""How a page looks: wide and on a phone, by day and by night."""

from __future__ import annotations

CSS = """
:root { color-scheme: light dark; --paper: #f6f7f9; --card: #fff; --ink: #1b1f24; --quiet: #5b6470;
  --line: #dfe3e8; --accent: #0072b2; --good: #00735a; --bad: #b34700; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #101317; --card: #181c22; --ink: #e6e9ed; --quiet: #9aa4b0; --line: #2b323b;
    --accent: #56b4e9; --good: #3ac29b; --bad: #f08a4b; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 940px; margin: 0 auto; padding: 24px 20px 48px; }
header p, .quiet, footer { color: var(--quiet); }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 8px; }
h3, h4 { font-size: 1rem; margin: 16px 0 4px; overflow-wrap: anywhere; }
p { margin: 0 0 8px; }
section.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: 20px; margin-top: 16px; }
.answer .big { font-size: 2.6rem; font-weight: 700; line-height: 1.1; margin: 0 0 6px; }
.answer .big.good { color: var(--good); } .answer .big.bad { color: var(--bad); }
.answer .big.open { color: var(--quiet); }
dl.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin: 16px 0 0; }
dl.figures div { border-top: 2px solid var(--line); padding-top: 8px; }
dt { color: var(--quiet); font-size: .85rem; }
dd { margin: 0; font-size: 1.25rem; font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums;
  font-size: .92rem; }
th { text-align: left; color: var(--quiet); font-weight: 500; vertical-align: bottom; }
th, td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td { min-width: 3.2em; max-width: 24em; overflow-wrap: break-word; }
td.day { white-space: nowrap; }
td.number, th.number { text-align: right; } td.number { white-space: nowrap; }
td.main { font-weight: 700; color: var(--accent); }
.scroll + p { margin-top: 10px; }
.figure svg { display: block; width: 100%; height: auto; }
.figure.narrow { display: none; }
ul { margin: 0; padding-left: 20px; } li { margin: 2px 0; overflow-wrap: anywhere; }
details { margin-top: 12px; } summary { cursor: pointer; color: var(--accent); }
footer { margin-top: 24px; font-size: .85rem; }
@media (max-width: 640px) {
  main { padding: 16px 12px 32px; } section.card { padding: 16px 14px; }
  .answer .big { font-size: 2.1rem; }
  .figure.wide, .more { display: none; } .figure.narrow { display: block; }
  table { font-size: .86rem; } th, td { padding-right: 8px; } td { min-width: 0; }
  th:last-child, td:last-child { padding-right: 0; }
}
@media print { body { background: none; } section.card { break-inside: avoid; } }
"""
