// The admin page. Everything that comes from the server is set as text, never as HTML.
"use strict";

const KEPT = "cuebench-admin-token"; // for this tab only
const EVERY = 10_000;
const STATES = { finished: "finished", active: "active", pausing: "pausing", "dropped out": "dropped" };
const MEANING = {
  finished: "finished",
  active: "active: answered within the last 10 minutes",
  pausing: "pausing",
  "dropped out": "dropped out: the trials are given to somebody else",
};
const $ = (id) => document.getElementById(id);
let timer = 0;
let rows = [];
let order = { column: "participant", down: false };

// ---- requests

class Refused extends Error {}

async function ask(path, options = {}) {
  const token = sessionStorage.getItem(KEPT) ?? "";
  const response = await fetch(path, { ...options, headers: { ...options.headers, Authorization: `Bearer ${token}` } });
  if (response.status === 401) throw new Refused("This is not the admin token of this study.");
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    throw new Error(problem.detail ?? `The server answered ${response.status}.`);
  }
  return response;
}

const read = async (path) => (await ask(path)).json();

async function download(path, name) {
  const data = await (await ask(path)).blob();
  const link = make("a", { href: URL.createObjectURL(data), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// ---- elements

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);
const number = (value, digits = 0) => (value === null ? "–" : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));

function time(text) {
  const date = new Date(text);
  const today = new Date().toDateString() === date.toDateString();
  const clock = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return make("time", { dateTime: text, title: date.toLocaleString("en-GB") },
    today ? clock : `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, ${clock}`);
}

function ago(from, now) {
  const seconds = Math.max(0, Math.round((new Date(now) - new Date(from)) / 1000));
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86400)} days ago`;
}

function bar(parts, whole, label) {
  const element = make("div", { className: "bar", role: "img", ariaLabel: label });
  for (const [kind, count] of parts) {
    const piece = make("span", { className: kind });
    piece.style.width = `${whole ? (100 * count) / whole : 0}%`;
    element.append(piece);
  }
  return element;
}

// ---- the parts of the page

function showProgress(data) {
  document.title = `${data.title} – administration`;
  $("title").textContent = data.title;
  const last = data.last_at ? `last activity ${ago(data.last_at, data.now)}` : "nobody has started yet";
  $("about").textContent = `${data.study} · design ${data.design} · ${last}`;
  $("notes").replaceChildren(...data.notes.map((note) => make("li", {}, note)));
  const finished = data.states.finished ?? 0;
  const tiles = [
    ["finished", number(finished), data.wanted ? `of ${number(data.wanted)}` : ""],
    ["active now", number(data.states.active ?? 0)],
    ["pausing", number(data.states.pausing ?? 0)],
    ["dropped out", number(data.states["dropped out"] ?? 0)],
    ["excluded by you", number(data.excluded)],
    ["answers", number(data.answers)],
    ["median duration", number(data.median_minutes, 1), "min"],
  ];
  $("tiles").replaceChildren(...tiles.map(([name, value, unit = ""]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value, unit ? make("small", {}, ` ${unit}`) : ""))));
  showGroups(data);
  rows = data.rows;
  showParticipants();
}

function showGroups(data) {
  const sizes = Object.values(data.groups).map((of) => Object.values(of).reduce((a, b) => a + b, 0));
  const longest = Math.max(1, ...sizes);
  $("groups").replaceChildren(...Object.entries(data.groups).map(([name, of], i) => {
    const parts = Object.entries(STATES).map(([state, kind]) => [kind, of[state] ?? 0]);
    const label = Object.keys(STATES).map((state) => `${of[state] ?? 0} ${state}`).join(", ");
    return make("div", { className: "group", title: label }, make("span", {}, name), bar(parts, longest, label),
      make("span", { className: "quiet" }, `${number(sizes[i])} people`));
  }));
  $("legend").replaceChildren(...Object.entries(STATES).map(([state, kind]) =>
    make("span", {}, make("i", { className: kind }), MEANING[state])));
}

function showAgreement(data) {
  const heads = ["task", "people", "answers", "no answer", "accuracy", "shape choices", "κ", "images", "median reaction"];
  const fields = { 4: "accuracy", 5: "shape_share" }; // not every design has them
  const shown = heads.map((_, i) => !fields[i] || data.tasks.some((task) => task[fields[i]] !== null));
  const line = (tag, cells) => make("tr", {}, ...cells.map((cell, i) =>
    shown[i] ? make(tag, { className: i ? "number" : "" }, cell) : ""));
  const lines = data.tasks.map((task) => {
    const kappa = task.kappa === null ? make("span", { title: task.note, className: "quiet" }, "–")
      : `${task.kappa.toFixed(2)} [${task.kappa_low.toFixed(2)}, ${task.kappa_high.toFixed(2)}]`;
    const cells = [task.task.replace("_", " "), number(task.people), number(task.answers), number(task.missing),
      percent(task.accuracy), percent(task.shape_share), kappa, number(task.images),
      task.median_rt_ms === null ? "–" : `${number(task.median_rt_ms)} ms`];
    return line("td", cells);
  });
  $("agreement").replaceChildren(make("thead", {}, line("th", heads)), make("tbody", {}, ...lines));
  if (!lines.length) $("agreement").replaceChildren(make("tbody", {}, make("tr", {}, make("td", {}, "No answers yet."))));
  $("reasons").replaceChildren(...Object.entries(data.excluded).map(([reason, count]) =>
    make("li", {}, `${number(count)} of ${number(data.trials)} trials excluded: ${reason}`)));
}

const COLUMNS = [
  ["participant", "participant", (row) => row.participant],
  ["group", "group", (row) => row.group],
  ["language", "language", (row) => row.language],
  ["from", "source", (row) => row.source || "link"],
  ["state", "state", (row) => {
    const state = make("span", { className: "state" }, row.state);
    state.style.setProperty("--dot", `var(--${STATES[row.state]})`);
    return state;
  }],
  ["answers", "answered", (row) => make("span", {}, bar([["finished", row.answered]], row.trials, ""),
    `${row.answered} / ${row.trials}`)],
  ["attention", "attention", (row) => (row.attention[1] ? `${row.attention[0]} / ${row.attention[1]}` : "–")],
  ["started", "started_at", (row) => time(row.started_at)],
  ["last answer", "last_at", (row) => time(row.last_at)],
  ["minutes", "minutes", (row) => number(row.minutes, 1)],
  ["code", "code", (row) => row.code],
  ["excluded", "excluded", (row) => row.excluded],
];

function showParticipants() {
  const wanted = $("filter").value;
  const chosen = rows.filter((row) => !wanted || (wanted === "excluded" ? row.excluded : row.state === wanted));
  const key = (row) => (Array.isArray(row[order.column]) ? row[order.column][0] : row[order.column] ?? -1);
  chosen.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (order.down ? -1 : 1));
  const columns = COLUMNS.filter(([name]) => name !== "code" || rows.some((row) => row.code));
  const head = make("tr", {}, ...columns.map(([name, column]) => {
    const mark = order.column === column ? (order.down ? " ↓" : " ↑") : "";
    const button = make("button", { type: "button" }, name + mark);
    button.addEventListener("click", () => {
      order = { column, down: order.column === column && !order.down };
      showParticipants();
    });
    return make("th", { scope: "col" }, button);
  }), make("th", { ariaLabel: "actions" }));
  const lines = chosen.map((row) => {
    const cells = columns.map(([name, , show]) => make("td", { className: name === "excluded" ? "long" : "" }, show(row)));
    const label = row.excluded ? "Include" : "Exclude…";
    const button = make("button", { className: "small", type: "button", ariaLabel: `${label} ${row.participant}` }, label);
    button.addEventListener("click", () => (row.excluded ? decide(row.participant, "") : openDialog(row.participant)));
    const link = make("button", { className: "small", type: "button", ariaLabel: `Link… ${row.participant}` }, "Link…");
    link.addEventListener("click", () => openReturn(row.participant));
    const actions = make("td", {}, make("span", { className: "actions" }, row.replaced ? "" : link, button));
    return make("tr", { className: row.excluded ? "excluded" : "" }, ...cells, actions);
  });
  $("participants").replaceChildren(make("thead", {}, head), make("tbody", {}, ...lines));
  $("count").textContent = `${number(chosen.length)} of ${number(rows.length)}`;
}

// ---- what the experimenter does

function openDialog(participant) {
  $("exclude-who").textContent = participant;
  $("reason").value = "";
  $("exclude").returnValue = "";
  $("exclude").showModal();
}

const send = (path, body) => ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

async function decide(participant, reason) {
  await guarded(() => send("api/admin/exclude", { participant, reason }));
  await refresh(true);
}

async function openReturn(participant) {
  await guarded(async () => {
    const { token } = await (await send("api/admin/link", { participant })).json();
    $("return-who").textContent = participant;
    $("link").value = `${new URL(".", location.href).href}#resume=${token}`;
    $("copy").textContent = "Copy";
    $("return").returnValue = "";
    $("return").showModal();
  });
}

async function copyLink() {
  $("link").select();
  const done = await navigator.clipboard.writeText($("link").value).then(() => true, () => document.execCommand("copy"));
  if (done) $("copy").textContent = "Copied";
}

async function beginAnew(participant) {
  await guarded(async () => {
    await send("api/admin/replace", { participant });
    $("found").textContent = `${participant} is excluded, and the identifier can begin anew.`;
  });
  await refresh(true);
}

async function find(identifier) {
  await guarded(async () => {
    const { participants } = await (await send("api/admin/find", { identifier })).json();
    $("found").textContent = participants.length ? "" : "Nobody has begun with this identifier.";
    if (participants.length) await openReturn(participants[0]);
  });
}

async function guarded(action) {
  try {
    await action();
    $("problem").textContent = "";
    return true;
  } catch (error) {
    if (error instanceof Refused) {
      logOut(error.message);
    } else {
      $("problem").textContent = error instanceof TypeError ? "The server cannot be reached; trying again." : error.message;
    }
    return false;
  }
}

let turn = 0;
async function refresh(everything = false) {
  clearTimeout(timer);
  if (!sessionStorage.getItem(KEPT)) return;
  const visible = document.visibilityState === "visible";
  const fine = visible && await guarded(async () => {
    showProgress(await read("api/admin/progress"));
    // Agreement reads every answer: not as often.
    if (everything || turn++ % 6 === 0) showAgreement(await read("api/admin/agreement"));
    $("login").hidden = true;
    $("dashboard").hidden = false;
  });
  if (fine || sessionStorage.getItem(KEPT)) timer = setTimeout(refresh, EVERY);
}

function logOut(message = "") {
  clearTimeout(timer);
  sessionStorage.removeItem(KEPT);
  $("login").hidden = false;
  $("dashboard").hidden = true;
  $("login-error").textContent = message;
  $("token").focus();
}

$("login-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEPT, $("token").value.trim());
  $("token").value = "";
  refresh(true);
});
$("exclude").addEventListener("close", () => {
  if ($("exclude").returnValue === "ok") decide($("exclude-who").textContent, $("reason").value.trim());
});
$("return").addEventListener("close", () => {
  if ($("return").returnValue === "anew") beginAnew($("return-who").textContent);
});
$("copy").addEventListener("click", copyLink);
$("find").addEventListener("submit", (event) => {
  event.preventDefault();
  find($("identifier").value);
  $("identifier").value = "";
});
$("filter").append(...[...Object.keys(STATES), "excluded"].map((state) => make("option", { value: state }, state)));
$("filter").addEventListener("change", showParticipants);
$("csv").addEventListener("click", () => guarded(() => download("api/admin/export.csv", "answers.csv")));
$("parquet").addEventListener("click", () => guarded(() => download("api/admin/export.parquet", "answers.parquet")));
$("logout").addEventListener("click", () => logOut());
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && refresh());

fetch("api/study").then((reply) => reply.json()).then((study) => { $("draft").hidden = !study.draft; }).catch(() => {});
if (sessionStorage.getItem(KEPT)) refresh(true);
else logOut();
