// The page of a study: consent, images, trials, debriefing. A closed tab or a lost connection goes on where it stopped.

import { Api, Refused, memory } from "./api.js";
import { frameDuration } from "./frames.js";
import { Damaged, loadImages } from "./images.js";
import { MARK, askedLink, shownLink, tokenIn } from "./link.js";
import { element, makePlugins } from "./plugins.js";
import { buildTimeline, loadPlugins } from "./timeline.js";

const ENTRY = ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID", "assignmentId", "workerId", "hitId", "id"];
const at = id => document.getElementById(id);
const parameters = new URLSearchParams(location.search);
const entry = Object.fromEntries(ENTRY.filter(name => parameters.get(name)).map(name => [name, parameters.get(name)]));
const identity = JSON.stringify(entry);

function say(text, good = false) {
  at("status").textContent = text;
  at("status").hidden = !text;
  at("status").classList.toggle("good", good);
}

// Show a page of text with buttons; resolves to the number of the button that was pressed.
function page(parts, buttons = []) {
  at("stage").hidden = true;
  at("page").hidden = false;
  at("page").replaceChildren(...parts);
  scrollTo(0, 0);
  return new Promise(resolve => {
    const row = element("div", "buttons-row");
    buttons.forEach((label, i) => {
      const button = element("button", i ? "" : "primary", label);
      button.type = "button";
      button.addEventListener("click", () => {
        for (const other of row.children) other.disabled = true;   // pressed, even if the server takes its time
        resolve(i);
      });
      row.append(button);
    });
    if (buttons.length) at("page").append(row);
    const heading = at("page").querySelector("h1, h2, .text");
    if (heading) {
      heading.tabIndex = -1;
      heading.focus({ preventScroll: true });
    }
  });
}

const text = (html, classes = "text") => Object.assign(element("div", classes), { innerHTML: html });   // the server's HTML
const note = (words, classes = "small") => element("p", classes, words);

class Page {
  constructor() {
    this.api = new Api(say);
    this.losses = 0;
    addEventListener("blur", () => { this.losses++; });
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.losses++; });
  }

  async run() {
    await this.describe(parameters.get("lang") ?? memory.get("language") ?? navigator.language ?? "en");
    if (!globalThis.crypto?.subtle) return page([note(this.words.insecure, "text")]);
    if (!(await this.resume()) && !(await this.consent())) return;
    this.keep();
    this.next = await this.api.storePending(this.session.next);
    if (this.next < this.session.trials.length) {
      if (!this.resumed) await page([shownLink(this.words, this.session.token)], [this.words.next]);
      await this.load();
      await this.prepare();
      await this.experiment();
    }
    await this.end();
  }

  async describe(language) {
    this.study = await this.api.study(language);
    this.words = this.api.words = this.study.words;
    document.documentElement.lang = this.study.language;
    document.title = this.study.title;
    at("progress").setAttribute("aria-label", this.words.progress);
    at("draft").textContent = this.words.draft;
    at("draft").hidden = !this.study.draft;
  }

  // Find the session of a personal link, or that of this browser unless somebody else came by the address of a platform.
  async resume() {
    const linked = tokenIn(location.hash);
    if (linked) {
      if (await this.open(linked)) return true;
      await page([note(this.words.unknown_session, "text")], [this.words.next]);
    }
    const known = memory.get("session");
    if (!known || (identity !== "{}" && identity !== known.identity)) return false;
    if (await this.open(known.token)) return true;
    for (const name of ["session", "pending", "start"]) memory.set(name, null);
    return false;
  }

  // Open the session of a token; false where there is none any more.
  async open(token) {
    this.api.token = token;
    try {
      this.session = await this.api.session();
    } catch (error) {
      if (!(error instanceof Refused) || ![401, 403, 404].includes(error.status)) throw error;
      this.api.token = "";
      return false;
    }
    if (this.session.language && this.session.language !== this.study.language) await this.describe(this.session.language);
    this.resumed = true;
    return true;
  }

  // Start a session. A request that is sent again, since its reply was lost, has the same key; the token of the last
  // session says whose browser this is where a platform sends somebody again with another address.
  async start() {
    const last = memory.get("start");
    const key = last?.identity === identity ? last.key : Array.from(crypto.getRandomValues(new Uint8Array(24)), byte => byte.toString(16).padStart(2, "0")).join("");
    memory.set("start", { identity, key });
    this.api.token = memory.get("session")?.token ?? "";
    try {
      this.session = await this.api.start({ language: this.study.language, entry, consent: true, key });
    } finally {
      this.api.token = "";
    }
    this.resumed = this.session.next > 0;
  }

  // This browser goes on with the session. Where it may store nothing, the address keeps the personal link.
  keep() {
    const { token } = this.session;
    this.api.token = token;
    if (memory.get("session")?.token !== token) memory.set("pending", null);   // of another session
    memory.set("session", { token, identity });
    memory.set("start", null);
    history.replaceState(null, "", location.pathname + location.search + (memory.lasts ? "" : MARK + token));
  }

  async consent() {
    for (;;) {
      const parts = [text(this.study.consent)];
      if (this.study.contact) parts[0].append(note(this.study.contact));
      parts.push(note(this.words.decline));
      const codes = Object.entries(this.study.languages);
      if (codes.length > 1) parts.unshift(this.languages(codes));
      const chosen = await Promise.race([page(parts, [this.words.agree]).then(() => null), this.languageChosen ?? new Promise(() => {})]);
      if (chosen) {
        memory.set("language", chosen);
        await this.describe(chosen);
        continue;
      }
      try {
        await this.start();
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        if (error.code === "begun") return this.begunElsewhere();
        await page([note(error.code === "full" ? this.words.closed : error.message, "text")]);
        return false;
      }
      return true;
    }
  }

  // Somebody has begun with this identifier in another browser: only the personal link goes on.
  async begunElsewhere() {
    const form = askedLink(this.words, this.study.contact);
    page([form.part]);
    while (!(await this.open(await form.next()))) form.wrong();
    return true;
  }

  languages(codes) {
    const row = element("nav", "languages");
    this.languageChosen = new Promise(resolve => {
      for (const [code, name] of codes) {
        const link = Object.assign(element("a", "", name), { href: `?lang=${code}`, lang: code });
        if (code === this.study.language) link.setAttribute("aria-current", "true");
        link.addEventListener("click", event => {
          event.preventDefault();
          if (code !== this.study.language) resolve(code);
        });
        row.append(link);
      }
    });
    return row;
  }

  async load() {
    for (;;) {
      const bar = Object.assign(document.createElement("progress"), { max: 1, value: 0 });
      bar.setAttribute("aria-label", this.words.loading);
      page([note(this.words.loading, "centre"), bar]);
      const needed = new Set(this.session.trials.slice(this.next).flatMap(trial => [...trial.stimuli, ...trial.options]));
      const images = this.session.images.filter(image => needed.has(image.id) || image.role === "mask");
      try {
        [this.images, this.plugins] = await Promise.all([
          loadImages(images, share => { bar.value = share; }),
          loadPlugins(this.study.timeline),
        ]);
        this.masks = images.filter(image => image.role === "mask").map(image => image.id);
        return;
      } catch (error) {
        await page([note(error instanceof Damaged ? this.words.damaged : this.words.loading_failed, "text")], [this.words.try_again]);
      }
    }
  }

  async prepare() {
    this.frame = await frameDuration();
    if (this.resumed) await page([note(this.words.welcome_back, "text centre")], [this.words.resume]);
    if (this.study.fullscreen && document.fullscreenEnabled && !document.fullscreenElement) {
      const answer = await page([note(this.words.fullscreen, "text")], [this.words.fullscreen_yes, this.words.fullscreen_no]);
      if (answer === 0) await document.documentElement.requestFullscreen().catch(() => {});
    }
  }

  // What plug-ins and timeline share; `trial` collects what is measured in the trial that runs.
  context() {
    const svg = source => URL.createObjectURL(new Blob([source], { type: "image/svg+xml" }));
    const { study, words, images, masks, frame } = this;
    return {
      study, words, images, masks, frame,
      labels: new Proxy(study.options, { get: (names, name) => names[name] ?? String(name).replaceAll("_", " ") }),
      icons: Object.fromEntries(Object.entries(study.icons ?? {}).map(([name, source]) => [name, svg(source)])),
      remaining: this.session.trials.slice(this.next),
      trial: { dropped: 0 },
      begin: trial => {
        at("stage").dataset.position = trial.position;
        at("kind").textContent = trial.kind === "practice" ? words.practice : "";
        this.shared.trial = { of: trial, dropped: 0, losses: this.losses };
      },
      // A plug-in of jsPsych has drawn its trial: a single button is pressed by Enter, too.
      loaded: () => {
        const buttons = at("stage").querySelectorAll("button");
        if (buttons.length === 1) buttons[0].focus({ preventScroll: true });
      },
      answered: (data, given) => Object.assign(this.shared.trial, given, { rt: data.answered, own: data.rt }),
      store: () => this.store(),
    };
  }

  async experiment() {
    this.shared = this.context();
    const plugins = { ...this.plugins, ...makePlugins(this.shared) };
    at("page").replaceChildren();
    at("page").hidden = true;
    at("stage").hidden = at("bar").hidden = false;
    this.progress();
    // jsPsych hides errors of asynchronous plug-ins: they end the study here.
    const failed = new Promise((_, reject) => { this.fail = reject; });
    const jsPsych = initJsPsych({ display_element: "stage", use_webaudio: false });
    await Promise.race([jsPsych.run(buildTimeline(this.study.timeline, this.shared, plugins)), failed]);
    if (document.fullscreenElement) await document.exitFullscreen().catch(() => {});
    at("bar").hidden = true;
  }

  progress() {
    at("progress").max = this.session.trials.length;
    at("progress").value = this.next;
  }

  async store() {
    const state = this.shared.trial, { of: trial } = state;
    const rounded = value => (value === undefined || value === null ? null : Math.max(0, Math.round(value * 100) / 100));
    const rt = state.rt ? rounded(state.rt - state.onset) : rounded(state.own);
    const client = {
      dropped_frames: state.dropped, focus_losses: this.losses - state.losses, frame_ms: rounded(this.frame),
      width: innerWidth, height: innerHeight, zoom: rounded(devicePixelRatio), fullscreen: Boolean(document.fullscreenElement),
      touch: matchMedia("(pointer: coarse)").matches,
    };
    const answer = {
      position: trial.position, response: state.response ?? [], rt_ms: state.response?.length ? rt : null,
      planned_ms: trial.planned_ms, shown_ms: rounded(state.shown), text: trial.free ? (state.text ?? "").slice(0, 500) : "", client,
    };
    try {
      await this.api.store(answer);
    } catch (error) {
      this.fail(error);
      await new Promise(() => {});
    }
    this.next = trial.position + 1;
    this.progress();
  }

  async end() {
    page([note(this.words.finishing, "centre")]);
    const { code, url } = await this.api.finish();
    const parts = [text(this.study.debriefing)];
    const thanks = element("h1", "centre", this.words.done);
    if (code) parts.unshift(thanks, note(this.words.code, "centre"), element("output", "code", code));
    else parts.unshift(thanks);
    if (url) {
      const back = Object.assign(element("a", "button primary", this.words.return), { href: url, rel: "noreferrer" });
      const row = element("div", "buttons-row");
      row.append(back);
      parts.splice(code ? 3 : 1, 0, row);
    }
    await page(parts);
  }
}

// A personal link that is pasted into the tab of the study.
addEventListener("hashchange", () => { if (tokenIn(location.hash)) location.reload(); });

const study = new Page();
study.run().catch(error => {
  console.error(error);
  const words = study.words ?? {};
  const known = error instanceof Refused && { 401: words.unknown_session, 409: words.elsewhere }[error.status];
  at("bar").hidden = true;
  page([note(known || words.broken || "Something went wrong. Please reload the page.", "text")], [words.try_again ?? "Reload"]).then(() => location.reload());
});
