// The page: an editor whose text is coloured behind it, a worker that checks while one
// types, and one that runs and can be stopped. Nodes are made by the DOM's methods only.
const $ = (id) => document.getElementById(id);
const make = (name, text, attributes = {}) => {
  const node = document.createElement(name);
  if (text) node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};
const own = ["worker.js", "sw.js"];
const policy = window.trustedTypes?.createPolicy("pif", {
  createScriptURL: (url) => {
    if (!own.includes(url)) throw new TypeError("not of this page: " + url);
    return url;
  },
});
const script = (url) => (policy ? policy.createScriptURL(url) : url);

let module;
class Evaluator {
  #worker; #asked = new Map(); #last = 0;
  ask(request) {
    if (!this.#worker) {
      this.#worker = new Worker(script("worker.js"), { type: "module" });
      this.#worker.onmessage = ({ data }) => this.#answer(data.id, data.list ?? data.answer);
      this.#worker.onerror = (event) => { event.preventDefault(); this.stop("the evaluator failed: " + event.message); };
      this.#worker.postMessage({ module });
    }
    const id = ++this.#last;
    this.#worker.postMessage({ id, request });
    return new Promise((resolve) => this.#asked.set(id, resolve));
  }
  #answer(id, answer) {
    this.#asked.get(id)?.(answer);
    this.#asked.delete(id);
  }
  get busy() { return this.#asked.size > 0; }
  stop(why) {
    this.#worker?.terminate();
    this.#worker = undefined;
    for (const id of [...this.#asked.keys()]) this.#answer(id, { stopped: why });
  }
}
const checker = new Evaluator(), runner = new Evaluator();

const code = $("code"), shown = $("shown");
function colour(parts, marks) {
  const nodes = [];
  let at = 0;
  for (const { Class: name, Text: text } of parts) {
    let from = 0;
    const cuts = marks.flatMap((m) => [m.from - at, m.to - at]).filter((n) => n > 0 && n < text.length).sort((a, b) => a - b);
    for (const to of [...cuts, text.length]) {
      const bad = marks.some((m) => m.from <= at + from && m.to >= at + to && m.from < m.to);
      const classes = [name, bad && "wrong"].filter(Boolean).join(" ");
      nodes.push(classes ? make("span", text.slice(from, to), { class: classes }) : text.slice(from, to));
      from = to;
    }
    at += text.length;
  }
  const last = marks.some((m) => m.from >= at);
  shown.replaceChildren(...nodes, last ? make("span", " ", { class: "wrong" }) : "", "\n");
  follow();
}
const follow = () => { shown.scrollTop = code.scrollTop; shown.scrollLeft = code.scrollLeft; };
code.addEventListener("scroll", follow);

function tell(problem) {
  const item = make("li");
  const go = make("button", `${problem.kind ?? "problem"}${problem.at ? " at " + problem.at : ""}`, { type: "button" });
  if (problem.from >= 0) go.addEventListener("click", () => { code.focus(); code.setSelectionRange(problem.from, problem.to); });
  else go.disabled = true;
  item.append(go, " " + problem.message);
  if (problem.caret) item.append(make("pre", problem.caret));
  if (problem.hint) item.append(make("small", problem.hint));
  return item;
}

let timer, again = false, otherText = "";
function edited() {
  old();
  shown.replaceChildren(code.value + "\n");
  follow();
  clearTimeout(timer);
  timer = setTimeout(check, 150);
}
function old() { // the result is of what stood there before
  if (!$("took").textContent || $("result").classList.contains("stale")) return;
  $("result").classList.add("stale");
  $("took").textContent += ", before the last change";
}
async function check() {
  if (!module) return;
  if ((again = checker.busy)) return;
  const late = setTimeout(() => checker.stop("this program takes too long to check"), 10000);
  const told = await checker.ask({ do: "check", code: code.value });
  clearTimeout(late);
  if (again) return check(); // it was edited meanwhile
  if (told.stopped) { $("known").textContent = told.stopped; return; }
  const problems = told.fault ? [told.fault] : told.problems ?? [];
  colour(told.parts ?? [], problems.filter((p) => p.from >= 0));
  code.setAttribute("aria-invalid", String(problems.length > 0));
  $("form").textContent = told.isText ? "text" : "JSON";
  $("otherform").textContent = told.isText ? "The same as JSON" : "The same as text";
  $("problems").replaceChildren(...problems.map(tell));
  const known = [];
  if (told.type) known.push(make("code", told.type));
  if (told.effects) known.push(make("p", "Asks for " + [...new Set(told.effects)].join(", ") + ", which nothing performs here."));
  if (told.cost && told.bound) {
    const cost = make("details");
    cost.append(make("summary", `Cost: ${told.cost}`), make("p", `At most ${told.bound}.`));
    known.push(cost);
  } else if (told.cost) known.push(make("p", `Cost: ${told.cost}, no bound but the budget`));
  $("known").replaceChildren(...known);
  if (!told.fault) $("other").textContent = otherText = told.other;
  $("other").classList.toggle("stale", Boolean(told.fault));
  $("swap").disabled = Boolean(told.fault);
}
code.addEventListener("input", edited);
$("input").addEventListener("input", old);
$("swap").addEventListener("click", () => { code.value = otherText; edited(); code.focus(); });

async function run() {
  if (!module || $("run").disabled) return;
  if (runner.busy) runner.stop(); // it works out where the last one's steps went
  $("run").disabled = true;
  $("stop").disabled = false;
  $("result").className = "";
  $("result").textContent = "…";
  $("took").textContent = $("notes").textContent = "";
  $("lines").hidden = true;
  const request = { code: code.value, input: $("input").value, steps: Number($("steps").value) };
  const told = await runner.ask({ do: "run", ...request });
  $("run").disabled = false;
  $("stop").disabled = true;
  if ("stopped" in told) {
    $("result").textContent = told.stopped ?? "stopped";
    return;
  }
  $("took").textContent = `${(told.steps ?? 0).toLocaleString("en")} steps, ${told.ms < 10 ? told.ms.toFixed(1) : Math.round(told.ms).toLocaleString("en")} ms`;
  $("result").className = told.fault ? "failed" : "";
  $("result").textContent = told.fault ? `${told.fault.kind}${told.fault.at ? " at " + told.fault.at : ""}: ${told.fault.message}\n${told.fault.caret ?? ""}${told.fault.hint ?? ""}` : told.result;
  $("notes").textContent = (told.notes ?? []).join(" · ");
  if (!told.steps) return;
  const { lines, steps } = await runner.ask({ do: "lines", ...request });
  if (!lines) return;
  $("lines").tBodies[0].replaceChildren(...lines.map((line) => {
    const row = make("tr");
    row.append(make("td", line.steps.toLocaleString("en")), make("td", (100 * line.steps / steps).toFixed(1) + " %"), make("td", `${line.function || (line.in === "input" ? "the input" : line.in ? "the program" : "the result")}${line.line ? ", line " + line.line : ""}`));
    return row;
  }));
  $("lines").hidden = false;
}
$("run").addEventListener("click", run);
$("stop").addEventListener("click", () => runner.stop("stopped"));

function open(task, button) {
  code.value = task.code;
  $("input").value = task.input;
  for (const other of document.querySelectorAll("#tasks [aria-current]")) other.removeAttribute("aria-current");
  button.setAttribute("aria-current", "true");
  edited();
  run();
}
function list(tasks) {
  const groups = Map.groupBy ? Map.groupBy(tasks, (t) => t.of) : tasks.reduce((m, t) => m.set(t.of, [...(m.get(t.of) ?? []), t]), new Map());
  for (const [of, some] of groups) {
    const group = make("details"), items = make("ul");
    group.append(make("summary", of), items);
    for (const task of some) {
      const item = make("li"), button = make("button", task.name, { type: "button", title: task.says });
      button.addEventListener("click", () => open(task, button));
      item.append(button);
      items.append(item);
    }
    $("tasks").append(group);
  }
  $("tasks").firstElementChild.open = true;
  const of = location.hash.slice(1).replaceAll("_", " ");
  const first = tasks.find((t) => t.name === of) ?? tasks.find((t) => t.name === "invoice total") ?? tasks[0];
  for (const button of document.querySelectorAll("#tasks button")) {
    if (button.textContent !== first.name) continue;
    button.closest("details").open = true;
    open(first, button);
  }
}
$("find").addEventListener("input", () => {
  const words = $("find").value.toLowerCase();
  for (const group of document.querySelectorAll("#tasks details")) {
    let any = false;
    for (const item of group.querySelectorAll("li")) {
      const button = item.firstElementChild;
      item.hidden = !(button.textContent + " " + button.title).toLowerCase().includes(words);
      any ||= !item.hidden;
    }
    group.hidden = !any;
    if (words) group.open = any;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  else if (event.key === "Escape" && runner.busy) runner.stop("stopped");
  else if (event.key === "/" && !event.target.closest("textarea, input, select")) $("find").focus();
  else return;
  event.preventDefault();
});

async function load() {
  const packed = await fetch("pif.wasm.gz");
  if (!packed.ok) throw new Error(`pif.wasm.gz: ${packed.status}`);
  const bytes = new Uint8Array(await packed.arrayBuffer());
  // A server may have unpacked it on the way.
  const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const body = isPacked ? new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")) : new Blob([bytes]);
  module = await WebAssembly.compile(await new Response(body).arrayBuffer());
  list(await checker.ask({ do: "tasks" }));
  $("status").textContent = "Ready.";
  document.documentElement.dataset.ready = "";
}
load().catch((error) => { $("status").textContent = `The evaluator can't be loaded: ${error.message}${location.protocol === "file:" ? ". Browsers don't load modules from files: serve this folder" : ""}`; });
navigator.serviceWorker?.register(script("sw.js")).catch(() => {}); // without it, it needs its server
