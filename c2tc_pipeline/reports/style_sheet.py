"""How the report looks: on a screen by day and by night, and on paper."""

STYLE_SHEET = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1f2328; --faint: #5f6772; --rule: #e1e4e8; --accent: #0072b2;
  --warm: #fff6e5; --warm-rule: #e69f00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1d2126; --ink: #e6e8eb; --faint: #a0a8b2; --rule: #343a42; --accent: #6cbcee;
    --warm: #2c2618;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif;
}
main { max-width: 900px; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
main:has(.board) { max-width: 1340px; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1.25rem; overflow-wrap: anywhere; }
h1 .name, a { color: var(--accent); }
nav {
  position: sticky; top: 0; z-index: 1; display: flex; gap: .5rem; overflow-x: auto;
  margin: 0 -1.25rem 1rem; padding: .6rem 1.25rem; background: var(--page); border-bottom: 1px solid var(--rule);
}
nav a {
  flex: none; padding: .2rem .7rem; border: 1px solid var(--rule); border-radius: 1rem;
  background: var(--card); font-size: .9rem; text-decoration: none;
}
[id] { scroll-margin-top: 3.5rem; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; }
.part { font-size: 1.4rem; margin-top: 3.5rem; padding-top: 1.25rem; border-top: 2px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 2.25rem 0 .5rem; }
h4 { font-size: .95rem; margin: 1.5rem 0 .5rem; }
p { margin: .4rem 0 .8rem; }
.faint, figcaption { color: var(--faint); font-size: .9rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem; margin: 0 0 1rem; }
.tile {
  flex: 1 1 auto; background: var(--card); border: 1px solid var(--rule); border-radius: 8px;
  padding: .8rem 1rem;
}
.tile dt { color: var(--faint); font-size: .85rem; }
.tile dd { margin: 0; }
.tile .value { font-size: 1.4rem; font-weight: 600; line-height: 1.3; white-space: nowrap; }
.notices { list-style: none; margin: 0; padding: 0; }
.notices li {
  background: var(--warm); border-left: 4px solid var(--warm-rule); border-radius: 4px;
  padding: .5rem .8rem; margin: 0 0 .5rem; overflow-wrap: anywhere;
}
figure { margin: 0 0 1rem; }
figure img {
  display: block; width: 100%; height: auto; padding: 14px;
  background: #ffffff; border: 1px solid var(--rule); border-radius: 8px;
}
figcaption { margin: .4rem 0 0; }
.scroll {
  overflow: auto; max-height: 34rem; margin: 0 0 .75rem;
  background: var(--card); border: 1px solid var(--rule); border-radius: 8px;
}
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td {
  text-align: left; vertical-align: top; padding: .35rem .75rem; border-bottom: 1px solid var(--rule);
  max-width: 22rem; overflow-wrap: break-word;
}
th {
  position: sticky; top: 0; vertical-align: bottom;
  background: var(--card); color: var(--faint); font-weight: 600;
}
tbody tr:last-child td { border-bottom: 0; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
th.number { white-space: normal; }
.rows th, .rows td { min-width: 5rem; }
.board th, .board td { padding: .35rem .55rem; }
.rows td { white-space: nowrap; max-width: none; }
.keyed { display: flex; align-items: baseline; gap: .5em; }
.swatch { flex: none; width: .7em; height: .7em; border-radius: 50%; box-shadow: 0 0 0 1px var(--rule); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 0 1.25rem; }
@media (max-width: 600px) {
  /* Shrunk to a phone's width a picture cannot be read; it scrolls and its caption stays. */
  figure { overflow-x: auto; }
  figure img { width: 560px; }
  figcaption { position: sticky; left: 0; }
}
@media print {
  :root {
    color-scheme: light;
    --page: #ffffff; --card: #ffffff; --ink: #000000; --faint: #444444; --rule: #cccccc; --accent: #0072b2;
    --warm: #ffffff;
  }
  main { max-width: none; padding: 0; }
  nav { display: none; }
  .scroll { overflow: visible; max-height: none; border: 0; }
  th { position: static; }
  .rows td { white-space: normal; }
  figure, .tile, tr, .notices li { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
}
"""
