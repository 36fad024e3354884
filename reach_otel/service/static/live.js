// Keep a page up to date from the service's events. Without this script every page is complete as it was loaded.
//
// Nothing here makes markup out of data: pieces of a page are cloned from the <template>s which the server wrote, and
// filled by textContent and a few named attributes. The content-security-policy (trusted types) lets nothing else pass.
// The words are those of render.py and run_view.py; a browser test holds the two equal.

const FRAME_MS = 250;
const LINGER_MS = 6000; // how long a finished run stays among the running ones if nobody needs its place
const SAY_MS = 12000; // how often a screen reader may be spoken to
const REFRESH_MS = 15000;
const RUN_MS = 1000;
const CARDS_MAX = 24;
const ROWS_MAX = 50;
const WAITING_MAX = 2000;
const NOTHING = "–";
const MARKS = { reached: "●", passed: "◐", missed: "○" };
const OUTCOME_MARKS = { success: "✓", partial: "◐", failed: "✕", running: "▸" };
const ACTION_KINDS = new Set(["tool", "handoff", "retrieval"]);
const LEVELS = { L0: "intent", L1: "resource", L2: "action", L3: "result", L4: "delivery" };
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Cn}\p{Co}]/u;

// Words.

function visible(value, most = 80) {
  const text = String(value);
  let characters = Array.from(text.slice(0, 2 * most + 2));
  if (characters.length > most) characters = [...characters.slice(0, most - 1), "…"];
  return characters.map(seen).join("");
}

function seen(character) {
  if (character === "\u200c" || character === "\u200d" || !HIDDEN.test(character)) return character;
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return code === 0x7f ? "\u2421" : `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
}

const isNumber = (value) => typeof value === "number";
const words = (value) => (value === null || value === undefined ? NOTHING : visible(value).replaceAll("_", " "));
const ratio = (value) => (isNumber(value) ? value.toFixed(2) : NOTHING);
const percent = (value) => (isNumber(value) ? `${(value * 100).toFixed(0)} %` : NOTHING);
const width = (value) => (Math.max(0, Math.min(1, value ?? 0)) * 100).toFixed(1);
const outcomeMark = (outcome) => OUTCOME_MARKS[outcome] ?? "◌";
const runPath = (run) => `/runs/${encodeURIComponent(run).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)}`;

function number(value) {
  if (!isNumber(value)) return NOTHING;
  const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : 1;
  return value.toFixed(digits).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

function seconds(value) {
  if (!isNumber(value)) return NOTHING;
  if (value < 1) return `${(value * 1000).toFixed(0)} ms`;
  if (value < 60) return `${value.toFixed(1)} s`;
  const minutes = Math.floor(value / 60);
  return minutes < 60 ? `${minutes} min ${Math.floor(value) % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function moment(text) {
  const found = new Date(text ?? "");
  return Number.isNaN(found.getTime()) ? NOTHING : `${found.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

const clock = (text) => moment(text).slice(11, 19) || NOTHING;

// A run's id may be any text; pages bear it as the server's templates spell it.
const keyOf = (run) => visible(run, 400);

const agentName = (run) => visible(run.agent || (run.final ? "no agent name" : "agent not named yet"));

function summaryView(run) {
  const must = run.milestones.filter((m) => m.type === "must");
  const view = {
    task: visible(run.task),
    agent: agentName(run),
    variant: visible(run.variant || ""),
    short: visible(run.run, 9),
    outcome: words(run.outcome),
    mark: outcomeMark(run.outcome),
    time: clock(run.start),
    age: seconds(run.duration_seconds),
    actions: `${run.actions} action${run.actions === 1 ? "" : "s"}`,
    reached: `${must.filter((m) => m.state === "reached").length} of ${must.length}`,
    doing: visible(run.last_tool || "thinking", 32),
    stopped: stopped(run, must),
    desc: description(run.milestones),
  };
  return { ...view, ...scores(run.scores) };
}

function scores(given) {
  const view = {};
  for (const name of ["composite", "depth", "purity", "digestion", "high_layer"]) {
    view[name] = ratio(given[name]);
    view[`${name}_width`] = width(given[name]);
  }
  return view;
}

// What a record says of a run in small.
function asSummary(record) {
  const actions = Object.values(record.actions).reduce((sum, n) => sum + n, 0);
  const findings = [...new Set(record.findings.map((f) => f.finding))];
  return { ...record, actions, findings };
}

const byLayer = (milestones) => [...milestones].sort((a, b) => a.layer - b.layer);

function stopped(run, must) {
  const ordered = byLayer(must);
  const passed = ordered.find((m) => m.state === "passed");
  if (passed) return `${visible(passed.id)}: ${words(passed.reason)}`;
  if (run.findings.length) return run.findings.slice(0, 3).map(words).join(", ");
  const missed = ordered.find((m) => m.state === "missed");
  return run.final && missed ? `${visible(missed.id)}: ${words(missed.reason ?? "missed")}` : "";
}

function description(milestones) {
  const said = byLayer(milestones).map((m) => `${visible(m.id)} ${m.state}${m.reason ? ` (${words(m.reason)})` : ""}`);
  return said.join("; ") || "no milestones";
}

// Filling.

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function set(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

function fill(root, view) {
  for (const element of root.querySelectorAll("[data-t]")) {
    const text = view[element.dataset.t];
    if (text !== undefined) put(element, text);
  }
  for (const element of root.querySelectorAll("[data-w]")) {
    const length = view[`${element.dataset.w}_width`];
    if (length !== undefined) set(element, "width", length);
  }
}

function fillGraph(root, milestones, final) {
  const states = new Map(milestones.map((m) => [m.id, m.state]));
  const notes = new Map(milestones.map((m) => [m.id, [note(m, final, false), note(m, final, true)]]));
  for (const node of root.querySelectorAll("[data-node]")) {
    set(node, "data-state", states.get(node.dataset.node) ?? "missed");
  }
  for (const text of root.querySelectorAll("[data-note]")) {
    put(text, notes.get(text.dataset.note)?.[text.classList.contains("small") ? 1 : 0] ?? "");
  }
  for (const edge of root.querySelectorAll("[data-to]")) {
    const { from, to } = edge.dataset;
    edge.classList.toggle("done", states.get(to) === "reached" && (from === "" || states.get(from) === "reached"));
  }
}

function fillPath(root, milestones) {
  const path = root.querySelector(".path");
  if (!path) return;
  const text = byLayer(milestones).map((m) => `${m.layer}${m.state}`).join();
  if (path.dataset.shown === text) return;
  path.dataset.shown = text;
  const layers = new Map();
  for (const milestone of milestones) {
    const mark = make("span", MARKS[milestone.state] ?? MARKS.missed);
    mark.dataset.state = milestone.state;
    if (!layers.has(milestone.layer)) layers.set(milestone.layer, []);
    layers.get(milestone.layer).push(mark);
  }
  path.replaceChildren(
    ...[...layers.keys()].sort((a, b) => a - b).map((layer) => {
      const group = make("span");
      group.className = "layer";
      group.append(...layers.get(layer));
      return group;
    }),
  );
}

function make(name, text = "") {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}

function fillRun(element, run) {
  fill(element, summaryView(run));
  fillPath(element, run.milestones);
  set(element, "data-run", keyOf(run.run));
  for (const link of element.querySelectorAll("[data-href]")) set(link, "href", runPath(run.run));
  for (const outcome of element.querySelectorAll(".outcome")) set(outcome, "data-outcome", run.outcome);
  for (const mark of element.querySelectorAll("[data-if=risk]")) mark.hidden = !(run.final && run.high_risk);
}

// Speaking: one sentence now and then, whatever happens.

const spoken = { finished: new Map(), at: 0, timer: 0 };

function tellFinished(outcome) {
  spoken.finished.set(outcome, (spoken.finished.get(outcome) ?? 0) + 1);
  if (spoken.timer) return;
  spoken.timer = setTimeout(() => {
    spoken.timer = 0;
    spoken.at = Date.now();
    const counts = [...spoken.finished].map(([name, n]) => `${n} ${words(name)}`).join(", ");
    spoken.finished.clear();
    say(`Runs finished: ${counts}.`);
  }, Math.max(1500, spoken.at + SAY_MS - Date.now()));
}

function say(text) {
  put(document.getElementById("said"), text);
}

// The line to the service.

function listen(handlers, onBack) {
  const lamp = document.getElementById("link");
  let lost = false;
  const show = (state, text) => {
    lamp.hidden = false;
    set(lamp, "data-state", state);
    fill(lamp, { link: text });
  };
  const source = new EventSource("/api/events");
  source.addEventListener("open", () => {
    show("live", "live");
    if (lost) onBack();
    lost = false;
  });
  source.addEventListener("error", () => {
    lost = true;
    show("lost", source.readyState === EventSource.CLOSED ? "not live: reload" : "reconnecting");
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), REFRESH_MS);
  });
  for (const [name, handle] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => {
      let data;
      try {
        data = JSON.parse(event.data);
      } catch {
        return; // a line cut short; the next one will tell
      }
      handle(data);
    });
  }
  addEventListener("pagehide", () => source.close());
}

async function ask(path) {
  const answer = await fetch(path, { credentials: "same-origin", headers: { accept: "application/json" } });
  return answer.ok ? answer.json() : null;
}

// The overview.

function overview() {
  const cards = document.getElementById("cards");
  const rows = document.getElementById("rows");
  const query = new URLSearchParams(location.search);
  const older = query.has("cursor");
  const waiting = new Map(); // run -> its latest summary, until the next frame
  const running = new Set();
  let frame = 0;

  for (const card of cards.children) running.add(card.dataset.run);

  const fits = (run) =>
    ["task", "agent", "variant"].every((key) => !query.get(key) || query.get(key) === (run[key] ?? "")) &&
    (!query.get("finding") || run.findings.includes(query.get("finding")));
  const fitsFinished = (run) => fits(run) && (!query.get("outcome") || query.get("outcome") === run.outcome);

  function take(run) {
    if (!waiting.has(run.run) && waiting.size >= WAITING_MAX) return;
    waiting.set(run.run, run);
    if (!frame) frame = setTimeout(() => requestAnimationFrame(draw), FRAME_MS);
  }

  function draw() {
    frame = 0;
    const runs = [...waiting.values()];
    waiting.clear();
    for (const run of runs) {
      if (run.final) finish(run);
      else progress(run);
    }
    tidy();
  }

  function progress(run) {
    if (!fits(run)) return;
    running.add(keyOf(run.run));
    const card = cardOf(run) ?? newCard(run);
    if (card) show(card, run);
  }

  function finish(run) {
    running.delete(keyOf(run.run));
    tellFinished(run.outcome);
    const card = cardOf(run);
    if (card) {
      show(card, run);
      card.classList.add("done");
      card.dataset.gone = String(Date.now() + LINGER_MS);
      setTimeout(tidy, LINGER_MS + 100);
    }
    if (older || !fitsFinished(run)) return;
    const row = rowOf(run) ?? newRow();
    fillRun(row, run);
  }

  function show(card, run) {
    fillRun(card, run);
    fillGraph(card, run.milestones, run.final);
    set(card, "data-outcome", run.outcome);
    set(card, "data-task", run.task);
  }

  const cardOf = (run) => [...cards.children].find((card) => card.dataset.run === keyOf(run.run));
  const rowOf = (run) => [...rows.children].find((row) => row.dataset.run === keyOf(run.run));

  function template(run) {
    const templates = [...document.querySelectorAll("template[data-card]")];
    const fitting = templates.find((t) => t.dataset.card === run.task && run.task !== "");
    return fitting ?? templates.find((t) => t.dataset.card === "");
  }

  // A new run takes the place of one that is done, so that the others stay where they are.
  function newCard(run) {
    const card = template(run).content.firstElementChild.cloneNode(true);
    const done = [...cards.children].find((c) => c.classList.contains("done") && !c.contains(document.activeElement));
    if (done) done.replaceWith(card);
    else if (cards.children.length < CARDS_MAX) cards.append(card);
    else return null;
    return card;
  }

  function newRow() {
    const row = document.getElementById("row").content.querySelector("tr").cloneNode(true);
    row.classList.add("new");
    rows.prepend(row);
    for (const last of [...rows.children].slice(ROWS_MAX)) {
      if (!last.contains(document.activeElement)) last.remove();
    }
    return row;
  }

  function tidy() {
    const now = Date.now();
    for (const card of [...cards.children]) {
      if (Number(card.dataset.gone ?? Infinity) <= now && !card.contains(document.activeElement)) card.remove();
    }
    for (const list of [cards, rows]) {
      document.querySelector(`[data-empty=${list.id}]`).hidden = list.children.length > 0;
    }
    fill(document.getElementById("running-title"), { running: number(running.size) });
  }

  function forget(run) {
    running.delete(keyOf(run));
    waiting.delete(run);
    [...cards.children].find((card) => card.dataset.run === keyOf(run))?.remove();
    tidy();
  }

  // After a gap: what runs now, and what became of those that were running.
  async function catchUp() {
    const answer = await ask(`/api/runs?live=true&limit=${CARDS_MAX}`);
    if (!answer) return;
    const now = new Set(answer.runs.map((run) => keyOf(run.run)));
    for (const run of [...running].filter((name) => !now.has(name))) {
      const record = await ask(`/api${runPath(run)}`);
      if (record) take(asSummary(record));
      else forget(run);
    }
    answer.runs.forEach(take);
  }

  async function refreshTiles() {
    for (const tile of document.querySelectorAll("[data-tile]")) {
      const summary = await ask(`/api/tasks/${encodeURIComponent(tile.dataset.tile)}/summary?window=900`);
      if (summary) fillTile(tile, summary);
    }
  }

  const gone = (event) => forget(event.run);
  listen({ run: take, closed: take, merged: gone, dropped: gone, reset: catchUp }, catchUp);
  every(REFRESH_MS, refreshTiles);
  arrows(rows);
  for (const select of document.querySelectorAll(".filters select")) {
    select.addEventListener("change", () => select.form.requestSubmit());
  }
  document.querySelector(".filters")?.addEventListener("submit", (event) => {
    for (const field of event.target.elements) if (field.name && !field.value) field.disabled = true; // a short address
  });
}

function fillTile(tile, summary) {
  const high = summary.high_layer.ratio;
  const success = summary.runs ? (summary.outcomes.success ?? 0) / summary.runs : null;
  fill(tile, { high: ratio(high), high_width: width(high), runs: `${number(summary.runs)} run${summary.runs === 1 ? "" : "s"}`, success: percent(success) });
  tile.classList.toggle("high", summary.high_risk);
  tile.querySelector(".reach").classList.toggle("low", isNumber(high) && high < 0.5);
  tile.querySelector("[data-if=risk]").hidden = !summary.high_risk;
}

function every(milliseconds, act) {
  setInterval(() => {
    if (!document.hidden) act().catch(() => {});
  }, milliseconds);
}

// Up and down move through the links of a list; Tab still reaches each of them.
function arrows(list) {
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    const links = [...list.querySelectorAll("a")];
    const next = links[links.indexOf(document.activeElement) + step];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
}

// One run.

function note(milestone, final, short) {
  if (milestone.state === "reached") {
    if (!isNumber(milestone.action)) return "reached";
    return `action ${milestone.action}${!short && isNumber(milestone.seconds) ? ` · ${seconds(milestone.seconds)}` : ""}`;
  }
  if (milestone.reason) return words(milestone.reason);
  return milestone.state === "passed" ? "passed" : final ? "missed" : "not yet";
}

function runView(record) {
  const must = record.milestones.filter((m) => m.type === "must");
  const stop = record.break_point;
  return {
    outcome: words(record.outcome),
    why_outcome: visible(record.why_outcome ?? "", 300),
    mark: outcomeMark(record.outcome),
    agent: agentName(record),
    variant: visible(record.variant || NOTHING),
    start: moment(record.start),
    duration: seconds(record.duration_seconds),
    reached: `${must.filter((m) => m.state === "reached").length} of ${must.length}`,
    break_point: stop ? `${stop.level} ${LEVELS[stop.level] ?? ""}: ${words(stop.reason)}` : "none",
    tokens: number(record.tokens.total),
    cost: isNumber(record.cost_dollars) ? `$${record.cost_dollars.toFixed(4)}` : NOTHING,
    actions: number(Object.values(record.actions).reduce((sum, n) => sum + n, 0)),
    desc: description(record.milestones),
    ...scores(record.scores),
  };
}

function stepViews(record) {
  const told = new Map();
  const tell = (action, kind, text) => {
    if (!isNumber(action)) return;
    if (!told.has(action)) told.set(action, []);
    told.get(action).push({ kind, text });
  };
  for (const m of record.milestones) {
    const name = visible(m.id);
    const text = m.state === "reached" ? `${name} reached` : `${name} ${m.state}: ${words(m.reason ?? "not reached")}`;
    tell(m.action, m.state, `${MARKS[m.state]} ${text}`);
  }
  for (const t of record.traps) tell(t.action, "risk", `▲ trap ${visible(t.id)}`);
  for (const o of record.obstacles) {
    tell(o.action, "obstacle", `◆ obstacle: ${words(o.kind)}, ${o.digested ? "digested" : "not digested"}`);
  }
  for (const f of record.findings) {
    if (f.finding !== "unused" && f.finding !== "trap") tell(f.action, "finding", `▲ ${words(f.finding)}`);
  }
  let action = 0;
  return (record.steps ?? []).map((step) => {
    const acts = ACTION_KINDS.has(step.kind);
    if (acts) action += 1;
    return {
      number: acts ? String(action) : "",
      kind: step.kind,
      name: visible(step.tool ?? step.agent ?? step.kind),
      by: step.agent && step.agent !== record.agent ? visible(step.agent) : "",
      class: step.class ? words(step.class) : "",
      state: step.ok ? "ok" : "error",
      ok: step.ok ? "✓ ok" : "✕ error",
      args: content(step.args),
      result: content(step.result),
      error: content(step.error),
      seconds: seconds(step.seconds),
      derived: step.derived ? "no span of its own" : "",
      notes: acts ? (told.get(action) ?? []) : [],
    };
  });
}

function content(value) {
  if (value === null || value === undefined) return "";
  return visible(typeof value === "string" ? value : JSON.stringify(value), 400);
}

function obstacleView(o, n, why) {
  return {
    kind: words(o.kind),
    tool: visible(o.tool),
    milestone: o.milestone === null ? NOTHING : visible(o.milestone),
    action: String(o.action),
    retries: String(o.retries),
    end: o.digested ? "✓ digested" : "✕ not digested",
    why: visible(why?.[n] ?? "", 300),
  };
}

function findingView(f) {
  return {
    finding: words(f.finding),
    action: f.action === null ? NOTHING : String(f.action),
    detail: visible(f.detail ?? "", 300),
  };
}

// Make a list as long as its views, and fill each item.
function fillList(list, template, selector, views, more = () => {}) {
  while (list.children.length > views.length) list.lastElementChild.remove();
  views.forEach((view, n) => {
    let item = list.children[n];
    if (!item) {
      item = document.getElementById(template).content.querySelector(selector).cloneNode(true);
      list.append(item);
    }
    fill(item, view);
    more(item, view);
  });
  const full = document.querySelector(`[data-full=${list.id}]`);
  if (full) full.hidden = views.length === 0;
  document.querySelector(`[data-empty=${list.id}]`).hidden = views.length > 0;
}

function fillStep(item, view) {
  item.className = `step ${ACTION_KINDS.has(view.kind) ? view.kind : "quiet"}`;
  set(item, "data-state", view.state);
  set(item.querySelector(".class"), "data-class", view.class);
  const notes = item.querySelector(".notes");
  const text = view.notes.map((n) => n.text).join("\n");
  if (notes.dataset.shown === text) return;
  notes.dataset.shown = text;
  notes.replaceChildren(
    ...view.notes.map((n) => {
      const line = make("li", n.text);
      line.dataset.kind = n.kind;
      return line;
    }),
  );
}

function oneRun() {
  const page = document.getElementById("run");
  if (page.dataset.final === "yes") return;
  let asked = 0;
  let over = false;

  function show(record) {
    const view = runView(record);
    fill(page.querySelector(".head"), view);
    fill(page.querySelector(".scoreboard"), view);
    for (const title of page.querySelectorAll("h2")) fill(title, view);
    for (const graph of page.querySelectorAll(".graph")) {
      fillGraph(graph, record.milestones, record.final);
      fill(graph, view);
    }
    for (const row of page.querySelectorAll("[data-milestone]")) {
      const m = record.milestones.find((other) => other.id === row.dataset.milestone);
      if (!m) continue;
      set(row, "data-state", m.state);
      const why = record.why?.[m.id] || words(m.reason ?? m.state);
      fill(row, {
        mark: MARKS[m.state],
        state: m.state,
        action: m.action === null ? NOTHING : String(m.action),
        seconds: seconds(m.seconds),
        why: visible(why, 300),
      });
    }
    for (const item of page.querySelectorAll("[data-level]")) fillLevel(item, record);
    fillList(document.getElementById("steps"), "step", "li", stepViews(record), fillStep);
    fillList(document.getElementById("obstacles"), "obstacle", "tr", record.obstacles.map((o, n) => obstacleView(o, n, record.why_obstacles)));
    fillList(document.getElementById("findings"), "finding", "tr", record.findings.map(findingView));
    set(page.querySelector(".outcome"), "data-outcome", record.outcome);
    page.querySelector("[data-if=risk]").hidden = !(record.final && record.high_risk);
    if (record.final && !over) {
      over = true;
      page.dataset.final = "yes";
      say(`This run has finished: ${words(record.outcome)}.`);
    }
  }

  function refresh() {
    if (asked || over) return;
    asked = setTimeout(async () => {
      asked = 0;
      const record = await ask(`/api${location.pathname}`).catch(() => null);
      // The milestones of a run change when its task becomes known: the page is laid out anew then.
      const laidOut = page.querySelectorAll("[data-milestone]").length;
      if (record && record.milestones.length !== laidOut) location.reload();
      else if (record) show(record);
    }, RUN_MS);
  }

  const mine = (run) => keyOf(run.run) === page.dataset.run && refresh();
  const moved = (event) => keyOf(event.run) === page.dataset.run && location.replace(runPath(event.into));
  listen({ run: mine, closed: mine, merged: moved, reset: refresh }, refresh);
}

function fillLevel(item, record) {
  const level = record.levels[item.dataset.level];
  const breaks = record.break_point?.level === item.dataset.level;
  const state = !level ? "unknown" : level.passed ? "pass" : "fail";
  set(item, "data-state", breaks ? "break" : state);
  fill(item, {
    mark: { pass: "✓", fail: "✕" }[state] ?? NOTHING,
    said: { pass: "passed", fail: words(level?.reason) }[state] ?? NOTHING,
    why: visible(record.why_levels?.[item.dataset.level] ?? "", 300),
    breaks: breaks ? "break point" : "",
  });
}

// The system.

const SPELLINGS = { number, seconds, bytes, text: (value) => (value === null || value === undefined ? NOTHING : visible(value)) };

function bytes(value) {
  return isNumber(value) ? `${number(Math.round(value / 1048576))} MiB` : NOTHING;
}

function system() {
  every(3000, async () => {
    const signals = await ask("/api/system");
    if (!signals) return;
    for (const element of document.querySelectorAll("[data-path]")) {
      let value = signals;
      for (const key of element.dataset.path.split(".")) value = value?.[key];
      put(element, SPELLINGS[element.dataset.kind](value ?? null));
      set(element, "data-bad", element.dataset.bad !== undefined && value > 0 ? "yes" : "no");
    }
  });
}

({ overview, run: oneRun, system })[document.body.dataset.page]?.();
