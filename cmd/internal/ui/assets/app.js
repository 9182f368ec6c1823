// What the pages don't need: keys, and rows that come while one looks. Nodes are made by the
// DOM's methods only; the page's policy forbids every sink that reads markup.
document.documentElement.classList.add("js");

const make = (name, text, attributes = {}) => {
  const node = document.createElement(name);
  if (text) node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};

const rows = () => [...document.querySelectorAll("[data-row]")];
const target = (row) => row.querySelector("a, summary");

function move(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, at + by));
  const to = target(all[next]);
  if (to) {
    to.focus();
    all[next].scrollIntoView({ block: "nearest" });
  }
}

let dialog;
function help() {
  if (!dialog) {
    dialog = make("dialog", "", { "aria-label": "Keys" });
    dialog.append(make("h2", "Keys"));
    const list = make("dl");
    for (const [key, what] of [
      ["/", "search tools"], ["j", "the next row"], ["k", "the row before"], ["Enter", "open it"],
      ["o", "overview"], ["t", "tools"], ["r", "runs"], ["a", "authority"], ["q", "questions"],
      ["n p v u", "in steps: next, previous, over, out"], ["e f E F", "in steps: to an effect, a failure; back to one"], ["s x", "in steps: start, end"], ["?", "this"],
    ]) {
      const dt = make("dt");
      dt.append(make("kbd", key));
      list.append(dt, make("dd", what));
    }
    const form = make("form", "", { method: "dialog" });
    form.append(make("button", "Close"));
    dialog.append(list, form);
    document.body.append(dialog);
  }
  if (!dialog.open) dialog.showModal();
}

const pages = { o: "Overview", t: "Tools", r: "Runs", a: "Authority", q: "Questions" };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
  const keyed = /^[A-Za-z]$/.test(event.key) && document.querySelector(`[data-key="${event.key}"]`);
  if (keyed) keyed.click();
  else if (event.key === "/") document.getElementById("search")?.focus();
  else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "?") help();
  else if (pages[event.key]) {
    const link = [...document.querySelectorAll("header nav a")].find((a) => a.textContent.trim().startsWith(pages[event.key]));
    if (!link) return;
    link.click();
  } else return;
  event.preventDefault();
});

// The rows of a list while one looks: at most so many stay.
const most = 200;
const linked = (text, href) => {
  const cell = make("td");
  cell.append(href ? make("a", text, { href }) : make("bdi", text));
  return cell;
};
const named = (cell, name) => (cell.className = name, cell);

function runRow(run) {
  const row = make("tr", "", { "data-row": "", "data-run": run.run, class: "fresh" });
  const result = make("td");
  result.append(make("span", run.state, { class: "state " + run.state }), " ");
  const gave = make("small");
  gave.append(make("bdi", run.gave));
  result.append(gave);
  row.append(linked(run.time, run.href), named(linked(run.called), "name"), named(linked(run.input), "data"), result,
    make("td", run.state === "running" ? "" : run.steps, { class: "num" }), make("td", run.state === "running" ? "" : run.took, { class: "num" }), named(linked(run.marks), "caps"));
  return row;
}

function eventRow(event) {
  const row = make("tr", "", { "data-row": "", class: "fresh" });
  const kind = make("td");
  kind.append(make("span", event.kind, { class: "kind" }));
  const one = new URL(location.pathname, location.href);
  one.searchParams.set("seq", event.seq);
  row.append(named(linked(String(event.seq), one.pathname + one.search), "num"), make("td", event.time), kind,
    event.run ? linked(event.run, event.href) : make("td"), named(linked(event.words, event.run ? "" : event.href), "data"));
  return row;
}

const live = document.querySelector("[data-live]");
if (live) {
  const body = document.querySelector(".rows tbody");
  const source = new EventSource(live.dataset.live);
  const status = (text) => { live.textContent = text; };
  source.onopen = () => { live.classList.add("on"); status("live: what happens appears here"); };
  source.onerror = () => { live.classList.remove("on"); status("not connected"); };
  source.onmessage = (message) => {
    if (!body) return location.reload();
    const data = JSON.parse(message.data);
    const isRun = "state" in data;
    const row = isRun ? runRow(data) : eventRow(data);
    const old = isRun && [...body.rows].find((r) => r.dataset.run === data.run);
    if (old) old.replaceWith(row);
    else body.prepend(row);
    while (body.rows.length > most) body.lastElementChild.remove();
  };
}
