/** The page's style: light and dark, on paper, and of use without colours; nothing from elsewhere. */
export const STYLE = `
:root{color-scheme:light dark;--fg:#1b1f24;--soft:#57606a;--bg:#fff;--card:#f6f8fa;--line:#d0d7de;
--good:#116329;--good-bg:#dafbe1;--warn:#7d4e00;--warn-bg:#fff3c4;--bad:#a40e26;--bad-bg:#ffe3e6}
@media (prefers-color-scheme:dark){:root{--fg:#e6edf3;--soft:#9da7b3;--bg:#0d1117;--card:#161b22;--line:#30363d;
--good:#56d364;--good-bg:#12261e;--warn:#e3b341;--warn-bg:#2b230f;--bad:#ff8a80;--bad-bg:#321416}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:64rem;margin:0 auto;padding:2rem 1.25rem 3rem}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .75rem;display:flex;flex-wrap:wrap;gap:.5rem .75rem;align-items:baseline}
h2{font-size:1.05rem;margin:2.25rem 0 .6rem;padding-bottom:.3rem;border-bottom:1px solid var(--line)}
h3{font-size:.95rem;margin:1.25rem 0 .4rem}
p{margin:.4rem 0}
code{font:.88em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.outcome{padding:.1rem .6rem;border:1px solid;border-radius:.4rem;text-transform:uppercase;letter-spacing:.04em;font-size:1.1rem}
.verdict{font-size:1.1rem;border-left:.3rem solid;padding:.5rem .9rem;border-radius:0 .4rem .4rem 0;margin:0 0 1rem;overflow-wrap:anywhere}
.good{color:var(--good)}.warn{color:var(--warn)}.bad{color:var(--bad)}
.verdict.good,.outcome.good{background:var(--good-bg)}.verdict.warn,.outcome.warn{background:var(--warn-bg)}
.verdict.bad,.outcome.bad{background:var(--bad-bg)}
.verdict span{color:var(--fg)}
.soft,.state{color:var(--soft)}
.meta{font-size:.9rem;color:var(--soft);overflow-wrap:anywhere}
.scroll{overflow-x:auto}
.scroll:focus-visible{outline:2px solid var(--soft);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.92rem}
caption{text-align:left;color:var(--soft);padding:.2rem 0 .5rem}
th,td{text-align:left;vertical-align:top;padding:.4rem .6rem;border-bottom:1px solid var(--line)}
th{font-weight:600}thead th{color:var(--soft);font-size:.85rem;white-space:nowrap}
td ul{list-style:none;margin:0;padding:0}
td,td code{overflow-wrap:anywhere}
tr.fired>*{background:var(--card);border-top:2px solid var(--fg);border-bottom:2px solid var(--fg);font-weight:600}
tr.quiet>*{color:var(--soft)}
tr.bad>*:first-child,tr.bad td strong{color:var(--bad)}
.strip{display:flex;flex-wrap:wrap;gap:2px;list-style:none;margin:.8rem 0;padding:0}
.strip li{flex:1 1 0;min-width:2.6rem;padding:.35rem .4rem;border:1px solid;border-radius:.25rem;font-size:.8rem;line-height:1.3;overflow:hidden;overflow-wrap:anywhere;text-align:center}
.strip .at{flex:0 0 auto;min-width:0;border:0;align-self:center;color:var(--soft)}
.strip .delivered{color:var(--good);background:var(--good-bg)}
.strip .held{color:var(--bad);background:var(--bad-bg);border-width:2px;font-weight:700}
.strip .dropped{color:var(--soft);border-style:dotted}
.strip .waiting{color:var(--warn);background:var(--warn-bg);border-style:dashed}
.check{border:1px solid var(--line);border-radius:.4rem;padding:.6rem .9rem;margin-top:2.25rem;background:var(--card)}
.check.bad{border:2px solid var(--bad)}
pre{background:var(--card);border:1px solid var(--line);border-radius:.4rem;padding:.75rem .9rem;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85rem;margin:.4rem 0}
@media (max-width:40rem){.strip{flex-direction:column}.strip li{flex:none;text-align:left}.strip .at{align-self:auto}}
@media print{:root{--fg:#000;--soft:#333;--bg:#fff;--card:#fff;--line:#888;--good:#000;--warn:#000;--bad:#000;--good-bg:#fff;--warn-bg:#fff;--bad-bg:#fff}
@page{margin:16mm}body{font-size:10.5pt}main{max-width:none;padding:0}h2{break-after:avoid}tr,.strip,.verdict,.check{break-inside:avoid}
thead{display:table-header-group}.scroll{overflow:visible}}
`;
