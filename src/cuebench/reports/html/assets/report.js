// The page's own behaviour: theme, tables (sort, filter, copy), all numbers, gallery. No markup is ever made from
// text: names of models, classes and files go into the page with textContent only.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const make = (tag, text = "", style = "") => {
    const node = document.createElement(tag);
    if (text !== "") node.textContent = text;
    if (style) node.className = style;
    return node;
  };
  const toast = one(".toast");
  let hide;
  const say = (text) => {
    toast.textContent = text;
    toast.classList.add("on");
    clearTimeout(hide);
    hide = setTimeout(() => toast.classList.remove("on"), 2200);
  };

  // ---------------------------------------------------------------------------------------------- theme
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const themeButton = one("#theme");
  const showTheme = () => {
    themeButton.textContent = isDark() ? "Light" : "Dark";
    themeButton.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
  };
  const remember = (value) => { try { localStorage.setItem("cuebench-theme", value); } catch { /* a file without storage */ } };
  try {
    const chosen = localStorage.getItem("cuebench-theme");
    if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  } catch { /* as above */ }
  themeButton.hidden = false;
  showTheme();
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    showTheme();
  });
  system.addEventListener("change", showTheme);
  // Paper is white: for printing, charts that were drawn for the dark give way to the drawings of the file.
  const stills = new Map(all("figure.cuebench-chart > div").map((div) => [div, [...div.childNodes]]));
  let theme;
  addEventListener("beforeprint", () => {
    all("details.notes").forEach((details) => { details.open = true; });
    if (!isDark()) return;
    theme = root.dataset.theme || "";
    root.dataset.theme = "light";
    stills.forEach((drawing, div) => div.replaceChildren(...drawing));
  });
  addEventListener("afterprint", () => {
    if (theme === undefined) return;
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    theme = undefined;
  });

  // ---------------------------------------------------------------------------------------------- where we are
  const links = new Map(all(".toc a").map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      links.forEach((a) => a.removeAttribute("aria-current"));
      const link = links.get(entry.target.id);
      if (link) link.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  all("main section[id]").forEach((section) => seen.observe(section));

  // ---------------------------------------------------------------------------------------------- tables
  const LIMIT = 200; // rows that are in the page at once: more make it slow
  class Table {
    constructor(box, columns, rows) {
      this.box = box; this.columns = columns; this.rows = rows; this.sorted = null; this.wanted = ""; this.limit = LIMIT;
      this.body = one("tbody", box); this.heads = all("thead th", box);
      this.more = make("button", "Show all rows", "more"); this.more.type = "button"; this.more.hidden = true;
      this.more.addEventListener("click", () => { this.limit = Infinity; this.show(); });
      box.append(this.more);
      this.heads.forEach((head, i) => one("button", head).addEventListener("click", () => this.sort(i)));
      const filter = one("input[type=search]", box);
      filter.addEventListener("input", () => { this.wanted = filter.value.trim().toLowerCase(); this.show(); });
      all("[data-copy]", box).forEach((b) => b.addEventListener("click", () => copy(this, b.dataset.copy)));
    }
    sort(i) {
      const down = this.heads[i].getAttribute("aria-sort") === "ascending";
      this.heads.forEach((head, j) => head.setAttribute("aria-sort", j !== i ? "none" : down ? "descending" : "ascending"));
      const sign = down ? -1 : 1;
      const empty = (c) => c.value === null || c.value === "";
      this.rows.sort((a, b) => {
        const [x, y] = [a.cells[i], b.cells[i]];
        if (empty(x) || empty(y)) return Number(empty(x)) - Number(empty(y));
        if (typeof x.value === "number" && typeof y.value === "number") return sign * (x.value - y.value);
        return sign * String(x.value).localeCompare(String(y.value), undefined, { numeric: true });
      });
      this.show();
    }
    found() {
      const words = this.wanted.split(/\s+/).filter(Boolean);
      return this.rows.filter((row) => words.every((word) => row.text.includes(word)));
    }
    show() {
      const found = this.found();
      this.body.replaceChildren(...found.slice(0, this.limit).map((row) => row.node()));
      this.more.hidden = found.length <= this.limit;
      this.more.textContent = `Show all ${found.length.toLocaleString("en")} rows`;
    }
  }
  const line = (cells, node) => ({ cells, node, text: cells.map((c) => c.text).join(" ").toLowerCase() });
  const asNumber = (text) => (text === undefined || text === "" ? null : Number(text));
  const readTable = (box) => {
    const columns = all("thead th", box).map((head) => head.dataset.name);
    const rows = all("tbody tr", box).map((tr) => {
      const cells = [...tr.cells].map((td) => ({
        text: td.dataset.text,
        value: "number" in td.dataset ? asNumber(td.dataset.number) : td.dataset.text === "–" ? null : td.dataset.text,
        low: asNumber(td.dataset.low), high: asNumber(td.dataset.high),
      }));
      return line(cells, () => tr);
    });
    return new Table(box, columns, rows);
  };
  all(".table:not([data-numbers])").forEach(readTable);

  // The table of all numbers is made when it is opened: it may have thousands of rows.
  const digits = (x, n) => x.toFixed(n);
  const allNumbers = (details) => {
    const box = one(".table", details);
    if (box.dataset.ready) return;
    box.dataset.ready = "true";
    const found = data.numbers[box.dataset.numbers];
    const columns = ["observer", "condition", "metric", "value", "resampled", "n", "excluded", "notes"];
    const rows = found.rows.map(([o, c, m, k, note, value, low, high, n, excluded]) => {
      const interval = low === null || high === null ? "" : ` [${digits(low, 2)}, ${digits(high, 2)}]`;
      const texts = [found.observer[o], found.condition[c], found.metric[m]].map((text) => ({ text, value: text }));
      const cells = [
        ...texts, { text: value === null ? "–" : digits(value, 3) + interval, value, low, high },
        { text: found.ci_kind[k].replaceAll("_", " "), value: found.ci_kind[k] },
        { text: n.toLocaleString("en"), value: n }, { text: excluded.toLocaleString("en"), value: excluded },
        { text: found.note[note], value: found.note[note] },
      ];
      let node;
      return line(cells, () => {
        if (node) return node;
        node = make("tr");
        cells.forEach((cell, i) => {
          const td = make(i === 0 ? "th" : "td", cell.text, i === 7 ? "short" : typeof cell.value === "number" ? "number" : "");
          if (i === 0) td.scope = "row";
          if (i === 7) td.title = cell.text;
          node.append(td);
        });
        return node;
      });
    });
    new Table(box, columns, rows).show();
  };
  all("details[data-numbers]").forEach((d) => d.addEventListener("toggle", () => d.open && allNumbers(d)));

  // ---------------------------------------------------------------------------------------------- copying
  const LATEX = { "&": "\\&", "%": "\\%", "$": "\\$", "#": "\\#", "_": "\\_", "{": "\\{", "}": "\\}",
    "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--", "−": "$-$",
    "·": "$\\cdot$", "κ": "$\\kappa$", "<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}",
    '"': "\\textquotedbl{}" };
  const flat = (text) => String(text).replace(/\s+/g, " ").trim();
  const formats = {
    csv(table, rows) {
      const quote = (v) => {
        const text = v === null || v === undefined ? "" : String(v);
        return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
      };
      const wide = table.columns.map((_, i) => rows.some((r) => r.cells[i].low !== null && r.cells[i].low !== undefined));
      const head = table.columns.flatMap((c, i) => (wide[i] ? [c, `${c} (low)`, `${c} (high)`] : [c]));
      const body = rows.map((r) => r.cells.flatMap((c, i) => (wide[i] ? [c.value, c.low, c.high] : [c.value])));
      return [head, ...body].map((r) => r.map(quote).join(",")).join("\n") + "\n";
    },
    markdown(table, rows) {
      const cell = (t) => flat(t).replaceAll("\\", "\\\\").replaceAll("|", "\\|").replaceAll("<", "&lt;");
      const right = table.columns.map((_, i) => rows.some((r) => typeof r.cells[i].value === "number"));
      return [
        `| ${table.columns.map(cell).join(" | ")} |`, `|${right.map((r) => (r ? "---:" : "---")).join("|")}|`,
        ...rows.map((r) => `| ${r.cells.map((c) => cell(c.text)).join(" | ")} |`),
      ].join("\n") + "\n";
    },
    latex(table, rows) {
      const cell = (t) => [...flat(t)].map((c) => LATEX[c] || c).join("");
      const right = table.columns.map((_, i) => rows.some((r) => typeof r.cells[i].value === "number"));
      return [
        "% needs \\usepackage{booktabs}", `\\begin{tabular}{${right.map((r) => (r ? "r" : "l")).join("")}}`, "  \\toprule",
        `  ${table.columns.map(cell).join(" & ")} \\\\`, "  \\midrule",
        ...rows.map((r) => `  ${r.cells.map((c) => cell(c.text)).join(" & ")} \\\\`), "  \\bottomrule", "\\end{tabular}",
      ].join("\n") + "\n";
    },
  };
  const toClipboard = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // a page that the browser does not call secure
      const area = make("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  const copy = async (table, format) => {
    const rows = table.found();
    await toClipboard(formats[format](table, rows));
    say(`Copied ${rows.length.toLocaleString("en")} ${rows.length === 1 ? "row" : "rows"} as ${{ csv: "CSV", markdown: "Markdown", latex: "LaTeX" }[format]}`);
  };
  all("[data-copy-text]").forEach((button) => button.addEventListener("click", async () => {
    await toClipboard(one(button.dataset.copyText).textContent);
    say("Copied");
  }));

  // ---------------------------------------------------------------------------------------------- gallery
  const dialog = one("dialog");
  const cards = all(".gallery li");
  const filters = one(".filters");
  let current = 0;
  const visible = () => cards.map((card, i) => (card.hidden ? -1 : i)).filter((i) => i >= 0);
  const fact = (list, name, value) => list.append(make("dt", name), make("dd", value));
  const answerOf = ([observer, decision, outcome, top, rank, people]) => {
    const box = make("div", "", "answer");
    box.append(make("div", data.observers[observer], "who"));
    const said = make("div", "", "said");
    said.append(make("span", people ? `most of ${people} people: ${decision || "no answer"}` : decision || "no answer"));
    said.append(make("span", data.outcomes[outcome], `outcome ${outcome}`));
    if (rank) said.append(make("span", `rank of the right class: ${rank.toLocaleString("en")}`, "quiet"));
    box.append(said);
    if (top.length) {
      const list = make("ol");
      for (const [name, share] of top) {
        const item = make("li"), track = make("span", "", "share"), part = make("i");
        part.style.width = `${100 * share}%`;
        track.append(part);
        item.append(make("span", name), track, make("span", `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`));
        list.append(item);
      }
      box.append(list);
    }
    return box;
  };
  const openPicture = (i) => {
    const picture = data.gallery[i], image = one("img", cards[i]), inside = one(".inside", dialog);
    current = i;
    one("h3", dialog).textContent = picture.id;
    const left = make("div"), right = make("div"), list = make("dl", "", "facts");
    if (image) { const shown = make("img"); shown.src = image.src; shown.alt = image.alt; left.append(shown); }
    else left.append(make("p", "The file of this picture was not here when the report was made.", "quiet"));
    fact(list, "protocol", picture.p);
    picture.f.forEach(([name, value]) => fact(list, name, value));
    left.append(list);
    picture.a.forEach((answer) => right.append(answerOf(answer)));
    if (!picture.a.length) right.append(make("p", "No observer answered this picture.", "quiet"));
    inside.replaceChildren(left, right);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  };
  const step = (by) => {
    const shown = visible(), at = shown.indexOf(current);
    if (shown.length) openPicture(shown[(at + by + shown.length) % shown.length]);
  };
  if (dialog) {
    cards.forEach((card, i) => one(".card", card).addEventListener("click", () => openPicture(i)));
    one("[data-close]", dialog).addEventListener("click", () => dialog.close());
    one("[data-next]", dialog).addEventListener("click", () => step(1));
    one("[data-previous]", dialog).addEventListener("click", () => step(-1));
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    dialog.addEventListener("keydown", (event) => {
      if (event.key === "ArrowRight") step(1);
      if (event.key === "ArrowLeft") step(-1);
    });
    dialog.addEventListener("close", () => one(".card", cards[current]).focus());
    const [protocol, observer, outcome] = ["protocol", "observer", "outcome"].map((n) => one(`[name=${n}]`, filters));
    const apply = () => {
      let shown = 0;
      cards.forEach((card, i) => {
        const picture = data.gallery[i];
        const who = observer.value === "" ? null : Number(observer.value);
        const answers = picture.a.filter((a) => who === null || a[0] === who);
        const fits = (!protocol.value || picture.p === protocol.value)
          && (who === null || answers.length) && (!outcome.value || answers.some((a) => a[2] === outcome.value));
        card.hidden = !fits;
        shown += Boolean(fits);
      });
      one("output", filters).textContent = `${shown} of ${cards.length} pictures`;
    };
    filters.hidden = false;
    filters.addEventListener("change", apply);
    apply();
  }

  root.dataset.ready = "true";
})();
