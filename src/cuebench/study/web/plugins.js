// Three plug-ins for jsPsych: images for a number of frames, a question with options, and storing the answer.
// What belongs to one trial is collected in `context.trial`: onset and duration of the image, dropped frames.

import { framesUntil, nextFrame } from "./frames.js";

const KEYS = "1234567890", LETTERS = "abcdefghijklmnopqrstuvwxyz";
const TOO_SLOW_MS = 700;

export function element(name, classes = "", text = "") {
  const made = document.createElement(name);
  if (classes) made.className = classes;
  if (text) made.textContent = text;
  return made;
}

// The image of an id: a copy of the decoded element, which the browser draws without decoding it again.
function picture(context, id, alt = "") {
  const copy = context.images.get(id).cloneNode();
  copy.alt = alt;
  return copy;
}

// Resolves when all images of an element can be drawn at once.
const decoded = parent => Promise.all(Array.from(parent.querySelectorAll("img"), image => image.decode().catch(() => {})));

// Question above, square for the image below: the same for noise, image and answers, so that nothing moves.
function skeleton(display, prompt = "") {
  const trial = element("div", "trial");
  const head = element("p", "prompt", prompt);
  const square = element("div", "picture");
  trial.append(head, square);
  display.replaceChildren(trial);
  return { trial, head, square };
}

const watcher = (context, state) => step => { if (step > 1.5 * context.frame) state.dropped += Math.round(step / context.frame) - 1; };

export function makePlugins(context) {
  const { ParameterType } = jsPsychModule;
  const any = value => ({ type: ParameterType.COMPLEX, default: value });

  // {"type": "frames", "sequence": [{"image" | "stimulus": …, "ms": …, "shown": true}]}: one after the other without a
  // gap. `shown` marks the image whose onset and duration are those of the trial.
  class Frames {
    static info = { name: "cuebench-frames", version: "1", parameters: { sequence: any([]) }, data: {} };
    constructor(jsPsych) { this.jsPsych = jsPsych; }

    async trial(display, { sequence }) {
      const { square } = skeleton(display);
      const state = context.trial, watch = watcher(context, state);
      const steps = sequence.filter(step => step.ms);
      const layers = steps.map(step => {
        const layer = element("div", "off");
        if (step.image) layer.append(picture(context, step.image));
        else layer.innerHTML = step.stimulus ?? "";
        square.append(layer);
        return layer;
      });
      await decoded(square);
      let now = await nextFrame();
      for (const [i, step] of steps.entries()) {
        if (i) layers[i - 1].classList.add("off");
        layers[i].classList.remove("off");
        const onset = now;
        now = await framesUntil(onset, step.ms, context.frame, watch);
        if (step.shown) Object.assign(state, { onset, shown: now - onset });
      }
      this.jsPsych.finishTrial({});
    }
  }

  // {"type": "answer", "image": id, "ms": how long (null: until the answer), "options": […], "layout": "buttons" | "icons" |
  // "images", "several": false, "free": false, "limit_ms": null}
  class Answer {
    static info = {
      name: "cuebench-answer", version: "1", data: {},
      parameters: { image: any(null), ms: any(null), prompt: any(""), options: any([]), layout: any("buttons"), several: any(false), free: any(false), limit_ms: any(null), asked: any("") },
    };
    constructor(jsPsych) { this.jsPsych = jsPsych; }

    async trial(display, trial) {
      const { words, labels, icons } = context;
      const state = context.trial;
      const parts = skeleton(display, trial.asked ? "" : trial.prompt);
      if (trial.layout === "images") parts.trial.classList.add("with-images");
      const image = this.fill(parts.square, trial);
      const chosen = new Set();
      let resolve, answered = 0;
      const ended = new Promise(done => { resolve = done; });
      // The first sign of a click is the press, which comes some 100 ms before the release.
      let pressed = 0;
      const finish = (time, ...options) => {
        if (answered) return;
        answered = time;
        for (const option of options) chosen.add(option);
        resolve();
      };
      const group = element("div", `options ${trial.layout}${trial.options.length <= 4 ? " few" : ""}`);
      group.style.setProperty("--columns", trial.options.length % 5 === 0 ? 5 : trial.options.length % 3 === 0 ? 3 : 4);
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", trial.prompt);
      const keys = trial.options.length <= KEYS.length ? KEYS : LETTERS;
      const send = trial.several ? element("button", "primary send", words.send) : null;
      const toggle = (button, option) => {
        const on = !chosen.delete(option) && chosen.add(option);
        button.setAttribute("aria-pressed", String(Boolean(on)));
        send.disabled = chosen.size === 0;
      };
      const buttons = trial.options.map((option, i) => {
        const button = element("button", "option");
        button.type = "button";
        button.dataset.option = option;
        button.append(Object.assign(element("span", "key", keys[i].toUpperCase()), { ariaHidden: "true" }));
        if (context.images.has(option)) button.append(picture(context, option, words[i ? "right" : "left"]));
        else {
          if (trial.layout === "icons" && icons[option]) button.append(Object.assign(new Image(), { src: icons[option], alt: "" }));
          button.append(element("span", "name", labels[option] ?? option));
        }
        if (trial.several) button.setAttribute("aria-pressed", "false");
        button.addEventListener("pointerdown", event => { pressed = event.timeStamp; });
        button.addEventListener("click", event => {
          if (trial.several) return toggle(button, option);
          finish(pressed && event.detail ? Math.min(pressed, event.timeStamp) : event.timeStamp, option);
        });
        group.append(button);
        return button;
      });
      const keyboard = event => {
        if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "TEXTAREA") return;
        if (trial.several && event.key === "Enter") {
          event.preventDefault();
          if (chosen.size) finish(event.timeStamp);
          return;
        }
        const at = keys.indexOf(event.key.toLowerCase());
        if (event.key.length !== 1 || at < 0 || at >= buttons.length) return;
        if (trial.several) toggle(buttons[at], trial.options[at]);
        else finish(event.timeStamp, trial.options[at]);
      };
      parts.trial.append(group);
      const hint = element("p", "hint", trial.several ? words.several : "");
      let comment = null;
      if (trial.several || trial.limit_ms) parts.trial.append(hint);
      if (trial.free && !trial.asked) {
        const label = element("label", "", words.comment);
        comment = Object.assign(element("textarea"), { maxLength: 500, rows: 1 });
        label.append(comment);
        parts.trial.append(label);
      }
      if (send) {
        send.disabled = true;
        send.type = "button";
        send.addEventListener("click", event => finish(event.timeStamp));
        parts.trial.append(send);
      }

      await decoded(parts.trial);
      addEventListener("keydown", keyboard);
      const watch = watcher(context, state);
      const start = await nextFrame();
      image?.classList.remove("off");
      if (image) state.onset = start;
      else if (trial.asked) state.onset = start;
      const clocks = [];
      if (image && trial.ms) {
        clocks.push(framesUntil(start, trial.ms, context.frame, watch, () => answered).then(now => { image.classList.add("off"); state.shown = now - start; }));
      }
      if (trial.limit_ms) clocks.push(framesUntil(start, trial.limit_ms, context.frame, watch, () => answered).then(now => { if (!answered) { answered = now; resolve(); } }));
      await ended;
      removeEventListener("keydown", keyboard);
      for (const button of buttons) button.disabled = true;
      if (image && !trial.ms) state.shown = (await nextFrame()) - start;
      await Promise.all(clocks);
      const response = trial.options.filter(option => chosen.has(option));
      if (!response.length) {
        Object.assign(hint, { textContent: words.too_slow, className: "hint warn" });
        await framesUntil(await nextFrame(), TOO_SLOW_MS, context.frame, () => {});
      }
      this.jsPsych.finishTrial({ response, answered: response.length ? answered : null, text: comment?.value.trim() ?? "" });
    }

    // Put the image into the square, or what an attention check asks for. Returns the image.
    fill(square, trial) {
      const { words, labels } = context;
      if (trial.asked) {
        const asked = element("div", "asked", words.attention);
        asked.append(element("strong", "", labels[trial.asked] ?? trial.asked));
        square.append(asked);
      } else if (trial.image) {
        const image = picture(context, trial.image, trial.layout === "images" ? words.sample_image : words.shown_image);
        image.classList.add("off");
        square.append(image);
        return image;
      } else square.remove();
      return null;
    }
  }

  // Added by the page behind every trial: the answer is stored before anything else is shown.
  class Store {
    static info = { name: "cuebench-store", version: "1", parameters: {}, data: {} };
    constructor(jsPsych) { this.jsPsych = jsPsych; }

    async trial(display) {
      await context.store();
      this.jsPsych.finishTrial({});
    }
  }

  return { frames: Frames, answer: Answer, store: Store };
}
