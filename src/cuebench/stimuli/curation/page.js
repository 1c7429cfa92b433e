"use strict";
// Keep or reject cues. Nothing is shown as judged before the server has confirmed that it is on the disk.
const at = (id) => document.getElementById(id);
let cues = [], reasons = [], judge = "", verdicts = new Map(), place = 0, busy = false;

async function ask(address, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let answer;
  try {
    answer = await fetch(address, options);
  } catch {
    throw new Error("the server does not answer: is `cuebench curate` still running?");
  }
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.error || answer.statusText);
  return data;
}

async function attempt(action) {
  if (busy) return;
  busy = true;
  try {
    await action();
    at("error").hidden = true;
  } catch (error) {
    at("error").textContent = "Not saved: " + error.message;
    at("error").hidden = false;
  } finally {
    busy = false;
  }
}

const wanted = {
  all: () => true,
  shape: (cue) => cue.cue === "shape",
  texture: (cue) => cue.cue === "texture",
  flagged: (cue) => cue.said !== "",
  kept: (cue, i) => verdicts.get(i)?.verdict === "keep",
  rejected: (cue, i) => verdicts.get(i)?.verdict === "reject",
};

function shown() {
  const fits = wanted[at("filter").value];
  return cues.map((cue, i) => i).filter((i) => fits(cues[i], i));
}

function question(cue) {
  const name = cue.label.replaceAll("_", " ");
  if (cue.cue === "shape") return `Is this recognisable as ${name} by its shape, and by nothing else?`;
  if (cue.cue === "texture") return `Is this recognisable as ${name} by its texture, and by nothing else?`;
  return `Is this a good picture of ${name}?`;
}

function draw() {
  const judged = verdicts.size;
  at("filled").style.width = `${100 * judged / cues.length}%`;
  at("bar").setAttribute("aria-valuenow", judged);
  at("bar").setAttribute("aria-valuemax", cues.length);
  const cue = cues[place], verdict = verdicts.get(place);
  at("judging").hidden = place < 0;
  at("done").hidden = place >= 0;
  if (place < 0) {
    const kept = [...verdicts.values()].filter((v) => v.verdict === "keep").length;
    at("summary").textContent = `${judged} of ${cues.length} cues judged by ${judge}: ${kept} kept, ${judged - kept} rejected.`;
    return;
  }
  at("question").textContent = question(cue);
  at("picture").src = `image/${place}`;
  at("picture").alt = `${cue.cue} cue of ${cue.label}`;
  at("caption").textContent = `${cue.name} · ${place + 1} of ${cues.length}`;
  at("frame").className = verdict ? verdict.verdict : "";
  at("state").textContent = !verdict ? `${judged} judged` :
    (verdict.verdict === "keep" ? "You keep it." : `You reject it${verdict.reason ? ": " + verdict.reason : "."}`);
  at("said").textContent = cue.said ? `The inspection rejects it: ${cue.said}` : "The inspection accepts it.";
  const ahead = following(place);
  if (ahead >= 0) new Image().src = `image/${ahead}`;
}

function following(from) {
  const list = shown();
  const open = list.filter((i) => !verdicts.has(i));
  return open.find((i) => i > from) ?? open[0] ?? -1;
}

function go(to) {
  place = to;
  at("said").hidden = true;
  draw();
}

const step = (by) => {
  const list = shown();
  if (!list.length) return;
  if (place < 0) return go(list[list.length - 1]);
  const next = by > 0 ? list.find((i) => i > place) : list.findLast((i) => i < place);
  if (next !== undefined) go(next);
};

const decide = (verdict, reason = "") => attempt(async () => {
  if (place < 0) return;
  const here = place;
  await ask("verdict", { judge, cue: here, verdict, reason });
  verdicts.delete(here);
  verdicts.set(here, { verdict, reason });
  go(following(here));
});

const undo = () => attempt(async () => {
  const { undone } = await ask("undo", { judge });
  if (undone === null) return;
  verdicts.delete(undone);
  go(undone);
});

const begin = () => attempt(async () => {
  const name = at("name").value.trim();
  const known = await ask(`verdicts?judge=${encodeURIComponent(name)}`);
  judge = name;
  verdicts = new Map(known.verdicts.map(([i, verdict, reason]) => [i, { verdict, reason }]));
  at("welcome").hidden = true;
  at("change").hidden = false;
  at("change").textContent = `Judge: ${judge}`;
  go(following(-1));
});

const keys = {
  k: () => decide("keep"), r: () => decide("reject"), u: undo, Backspace: undo, n: () => go(following(place)),
  ArrowLeft: () => step(-1), ArrowRight: () => step(1), i: () => { at("said").hidden = !at("said").hidden; },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
  if (!at("welcome").hidden) { if (event.key === "Enter") begin(); return; }
  const reason = reasons[Number(event.key) - 1];
  const action = reason ? () => decide("reject", reason) : keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (action && !event.repeat) { event.preventDefault(); action(); }
});

const clicks = { begin, undo, keep: keys.k, reject: keys.r, back: keys.ArrowLeft, next: keys.ArrowRight, skip: keys.n, inspect: keys.i };
for (const [id, action] of Object.entries(clicks)) at(id).addEventListener("click", () => { action(); document.activeElement.blur(); });
at("filter").addEventListener("change", () => { at("filter").blur(); go(following(-1) >= 0 ? following(-1) : shown()[0] ?? -1); });
at("change").addEventListener("click", () => { at("judging").hidden = at("done").hidden = true; at("welcome").hidden = false; at("name").focus(); });

attempt(async () => {
  const list = await ask("cues");
  cues = list.cues;
  reasons = list.reasons;
  at("title").textContent = `${list.title}, ${cues.length} cues`;
  reasons.forEach((reason, i) => {
    const button = document.createElement("button"), key = document.createElement("kbd");
    key.textContent = i + 1;
    button.type = "button";
    button.append(`${reason} `, key);
    button.addEventListener("click", () => { decide("reject", reason); button.blur(); });
    at("reasons").append(button);
  });
  at("welcome").hidden = false;
  at("name").value = list.judge;
  at("name").focus();
  if (list.judge) setTimeout(begin);
});
