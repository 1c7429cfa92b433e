// Talk to the server: the token, answers that survive a lost connection, a closed tab, a restarted server.

const HOME = `cuebench:${location.pathname.replace(/[^/]*$/, "")}`;
const WAITS = [0.5, 1, 2, 4, 8, 15];   // seconds; the last one repeats

export class Refused extends Error {
  constructor(status, body) {
    super(body?.detail ?? `status ${status}`);
    this.status = status;
    this.code = body?.code ?? "";
  }
}

// localStorage is absent where a browser forbids it; the study then works, and the address keeps the personal link.
export const memory = {
  kept: {},
  get lasts() {
    try {
      localStorage.setItem(`${HOME}:lasts`, "1");
      localStorage.removeItem(`${HOME}:lasts`);
      return true;
    } catch { return false; }
  },
  get(name) {
    try { return JSON.parse(localStorage.getItem(`${HOME}:${name}`)) ?? this.kept[name] ?? null; } catch { return this.kept[name] ?? null; }
  },
  set(name, value) {
    this.kept[name] = value;
    try { value === null ? localStorage.removeItem(`${HOME}:${name}`) : localStorage.setItem(`${HOME}:${name}`, JSON.stringify(value)); } catch { /* see above */ }
  },
};

async function request(method, path, body, token) {
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const limit = AbortSignal.timeout ? AbortSignal.timeout(20_000) : undefined;
  const reply = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store", credentials: "omit", signal: limit });
  const content = await reply.json().catch(() => ({}));
  if (!reply.ok) {
    const refused = new Refused(reply.status, content);
    refused.wait = Number(reply.headers.get("Retry-After")) || 0;
    throw refused;
  }
  return content;
}

const canHelp = error => !(error instanceof Refused) || error.status >= 500 || error.status === 429;
const sleep = seconds => new Promise(done => setTimeout(done, seconds * 1000));

export class Api {
  // `say(text, good)` shows a message about the connection; empty: none.
  constructor(say) {
    this.say = say;
    this.words = {};
    this.token = "";
  }

  // Ask again until there is an answer or a refusal that waiting does not change.
  async ask(method, path, body) {
    for (let attempt = 0; ; attempt++) {
      try {
        const content = await request(method, path, body, this.token);
        if (attempt) {
          this.say(this.words.connection_back ?? "", true);
          setTimeout(() => this.say(""), 1500);
        }
        return content;
      } catch (error) {
        if (!canHelp(error)) throw error;
        await this.count(error.wait || WAITS[Math.min(attempt, WAITS.length - 1)]);
      }
    }
  }

  async count(seconds) {
    const again = new Promise(done => addEventListener("online", done, { once: true }));
    const until = performance.now() + seconds * 1000;
    let left = seconds;
    while (left > 0) {
      this.say((this.words.connection_lost ?? "Connection lost; again in {seconds} s.").replace("{seconds}", Math.ceil(left)));
      const woken = await Promise.race([sleep(Math.min(left, 0.5)).then(() => false), again.then(() => true)]);
      if (woken) break;
      left = (until - performance.now()) / 1000;
    }
    this.say(this.words.connection_trying ?? "…");
  }

  study(language) { return this.ask("GET", `api/study?lang=${encodeURIComponent(language)}`); }
  start(body) { return this.ask("POST", "api/participants", body); }
  session() { return this.ask("GET", "api/session"); }
  finish() { return this.ask("POST", "api/finish"); }

  // Keep the answer until the server has stored it; only then the next trial is shown.
  async store(answer) {
    memory.set("pending", answer);
    try {
      await this.ask("POST", "api/answers", answer);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 409) throw error;
      // Stored already, by this page before it was reloaded or by another window.
      if ((await this.session()).next <= answer.position) throw error;
    }
    memory.set("pending", null);
  }

  // An answer that was given before the tab was closed.
  async storePending(next) {
    const pending = memory.get("pending");
    if (pending && pending.position === next) {
      await this.store(pending);
      return next + 1;
    }
    memory.set("pending", null);
    return next;
  }
}
