// Turn the description of a timeline (timeline.json of a design) into a timeline of jsPsych.
//
// A node is an object with jsPsych's `type` and parameters. {"for": "blocks" | "trials", "timeline": […]} repeats its
// nodes, {"when": {"kind": …}} keeps a node to some trials, {"answer": true} marks the node whose response is stored.
// Texts hold placeholders: $image, $options, $words.next, …

const OWN = ["frames", "answer"];

const escaped = text => String(text).replace(/[&<>"']/g, sign => `&#${sign.charCodeAt(0)};`);
const pascal = name => name.split("-").map(part => part[0].toUpperCase() + part.slice(1)).join("");

// The plug-ins of jsPsych that a description needs.
export function pluginsOf(node) {
  const here = node.type && !OWN.includes(node.type) ? [node.type] : [];
  return [...new Set([...here, ...(node.timeline ?? []).flatMap(pluginsOf)])];
}

// Load a script of jsPsych; the name of its object is jsPsych's custom.
function loadScript(address) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    Object.assign(script, { src: address, onload: resolve, onerror: () => reject(new Error(address)) });
    document.head.append(script);
  });
}

export async function loadPlugins(description) {
  await loadScript("web/vendor/jspsych.js");
  const names = pluginsOf(description);
  await Promise.all(names.map(name => loadScript(`web/vendor/${name}.js`)));
  return Object.fromEntries(names.map(name => [name, globalThis[`jsPsych${pascal(name)}`]]));
}

// What the placeholders stand for at one place of the timeline. `own`: for our plug-ins, which know images by their id.
function valuesOf(context, scope, own) {
  const { study, masks } = context;
  const trial = scope.trial ?? {};
  const url = id => context.images.get(id)?.src ?? "";
  const block = study.blocks[scope.block] ?? {};
  const stimuli = trial.stimuli ?? [];
  return {
    image: own ? stimuli[0] : url(stimuli[0]),
    images: own ? stimuli : stimuli.map(url),
    mask: masks.length ? (own ? masks : masks.map(url))[((trial.position ?? 0) * 7919) % masks.length] : null,
    options: trial.options ?? [],
    labels: (trial.options ?? []).map(option => context.labels[option] ?? option),
    planned_ms: trial.planned_ms ?? null,
    question: study.questions[`${scope.block}_${trial.task}`] ?? study.questions[trial.task] ?? "",
    task: trial.task, kind: trial.kind, several: trial.several ?? false, free: trial.free ?? false, asked: trial.asked ?? "",
    block: { title: block.title ?? "", text: block.text ?? "", name: scope.block ?? "" },
    times: study.times, words: study.words, instructions: study.instructions,
  };
}

const PLACEHOLDER = /\$([a-z_]+)(?:\.([a-z_]+))?/g;
const HTML = ["instructions"];        // already HTML, made by the server
const PICTURES = ["image", "images", "mask"];

function resolve(value, values) {
  if (Array.isArray(value)) return value.map(part => resolve(part, values));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, resolve(part, values)]));
  if (typeof value !== "string") return value;
  const look = (name, part) => (part ? values[name]?.[part] : values[name]) ?? null;
  const whole = new RegExp(`^${PLACEHOLDER.source}$`).exec(value);
  if (whole && !HTML.includes(whole[1])) return look(whole[1], whole[2]);
  // Inside a text: images become elements, everything else is text and cannot become markup.
  return value.replace(PLACEHOLDER, (_, name, part) => {
    const found = look(name, part);
    if (HTML.includes(name)) return found ?? "";
    if (PICTURES.includes(name)) return [found].flat().filter(Boolean).map(url => `<img src="${escaped(url)}" alt="">`).join("");
    return escaped([found ?? ""].flat().join(", "));
  });
}

const fits = (when, trial) => Object.entries(when ?? {}).every(([key, allowed]) => [allowed].flat().includes(trial?.[key]));

// The response of a plug-in of jsPsych as options of the trial and a text: buttons answer with a number, keys with a
// text, forms with an object.
export function responseOf(data, trial, node, labels) {
  const given = data.response;
  if (Array.isArray(given) && node.type === "answer") return { response: given, text: data.text };
  const names = trial.options.map(option => labels[option] ?? option);
  if (typeof given === "number" && node.type.includes("button")) return { response: trial.options[given] === undefined ? [] : [trial.options[given]] };
  if (typeof given === "string") {
    const at = Array.isArray(node.choices) ? node.choices.map(key => String(key).toLowerCase()).indexOf(given.toLowerCase()) : -1;
    return { response: at >= 0 && trial.options[at] !== undefined ? [trial.options[at]] : [] };
  }
  const said = given && typeof given === "object" ? Object.values(given).flat() : given === null || given === undefined ? [] : [given];
  const found = said.map(part => names.indexOf(String(part)));
  return {
    response: found.filter(at => at >= 0).map(at => trial.options[at]),
    text: said.filter((_, i) => found[i] < 0).map(String).join("; ").slice(0, 500),
  };
}

export function buildTimeline(description, context, plugins) {
  const leaf = (node, scope) => {
    const { answer, when, ...rest } = node;
    const own = OWN.includes(node.type);
    const values = valuesOf(context, scope, own);
    const made = { ...resolve(rest, values), type: plugins[node.type] };
    if (node.type === "answer") made.asked = values.asked;
    if (!own) made.on_load = context.loaded;
    if (answer) made.on_finish = data => context.answered(data, responseOf(data, scope.trial, { ...made, type: node.type }, context.labels));
    return made;
  };
  const ofTrial = (node, scope) => trial => ({
    timeline: [...expand(node.timeline, { ...scope, trial, block: trial.block }), { type: plugins.store }],
    on_timeline_start: () => context.begin(trial),
  });
  const expand = (nodes, scope) => nodes.flatMap(node => {
    if (node.for === "blocks") {
      const names = [...new Set(scope.trials.map(trial => trial.block))];
      return names.flatMap(block => expand(node.timeline, { ...scope, block, trials: scope.trials.filter(trial => trial.block === block) }));
    }
    if (node.for === "trials") return scope.trials.map(ofTrial(node, scope));
    if (!fits(node.when, scope.trial)) return [];
    if (node.timeline) return expand(node.timeline, scope);
    return [leaf(node, scope)];
  });
  return expand(description.timeline, { trials: context.remaining });
}
