// What all pages do: theme, tables (sort, filter, copy). No markup is ever made from text: names of models, classes and
// files go into a page with textContent only.
const cuebenchPage = (() => {
  "use strict";
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

  // ---------------------------------------------------------------------------------------------- tables
  const LIMIT = 200; // rows that are in the page at once: more make it slow
  const inOrder = new Intl.Collator(undefined, { numeric: true });
  class Table {
    constructor(box, columns, rows, { keep = () => true, shown = () => {} } = {}) {
      this.box = box; this.columns = columns; this.rows = rows; this.keep = keep; this.shown = shown; this.sorted = null; this.wanted = ""; this.limit = LIMIT;
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
        return sign * inOrder.compare(String(x.value), String(y.value));
      });
      this.show();
    }
    found() {
      const words = this.wanted.split(/\s+/).filter(Boolean);
      return this.rows.filter((row) => this.keep(row) && words.every((word) => row.text.includes(word)));
    }
    show() {
      const found = this.found();
      this.body.replaceChildren(...found.slice(0, this.limit).map((row) => row.node()));
      this.more.hidden = found.length <= this.limit;
      this.shown(found.length);
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
  // ---------------------------------------------------------------------------------------------- copying
  const LATEX = { "&": "\\&", "%": "\\%", "$": "\\$", "#": "\\#", "_": "\\_", "{": "\\{", "}": "\\}",
    "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--", "−": "$-$",
    "·": "$\\cdot$", "κ": "$\\kappa$", "<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}",
    '"': "\\textquotedbl{}" };
  const flat = (text) => String(text).replace(/\s+/g, " ").trim();
  // What must be read with the numbers goes with them: a column of a CSV, a line below, or the caption.
  const heading = (table) => one(".caption", table.box)?.textContent ?? "";
  const formats = {
    csv(table, rows) {
      const quote = (v) => {
        const text = v === null || v === undefined ? "" : String(v);
        return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
      };
      const wide = table.columns.map((_, i) => rows.some((r) => r.cells[i].low !== null && r.cells[i].low !== undefined));
      const head = table.columns.flatMap((c, i) => (wide[i] ? [c, `${c} (low)`, `${c} (high)`] : [c]));
      const body = rows.map((r) => r.cells.flatMap((c, i) => (wide[i] ? [c.value, c.low, c.high] : [c.value])));
      if (table.box.dataset.note) { head.push("about"); body.forEach((r) => r.push(table.box.dataset.note)); }
      return [head, ...body].map((r) => r.map(quote).join(",")).join("\n") + "\n";
    },
    markdown(table, rows) {
      const cell = (t) => flat(t).replaceAll("\\", "\\\\").replaceAll("|", "\\|").replaceAll("<", "&lt;");
      const right = table.columns.map((_, i) => rows.some((r) => typeof r.cells[i].value === "number"));
      return [
        `**${cell(heading(table))}**`, "", `| ${table.columns.map(cell).join(" | ")} |`, `|${right.map((r) => (r ? "---:" : "---")).join("|")}|`,
        ...rows.map((r) => `| ${r.cells.map((c) => cell(c.text)).join(" | ")} |`),
        ...(table.box.dataset.note ? ["", cell(table.box.dataset.note)] : []),
      ].join("\n") + "\n";
    },
    latex(table, rows) {
      const cell = (t) => [...flat(t)].map((c) => LATEX[c] || c).join("");
      const right = table.columns.map((_, i) => rows.some((r) => typeof r.cells[i].value === "number"));
      return [
        "% needs \\usepackage{booktabs}", "\\begin{table}", "\\centering",
        `\\caption{${[heading(table), table.box.dataset.note].filter(Boolean).map(cell).join(". ")}}`, `\\begin{tabular}{${right.map((r) => (r ? "r" : "l")).join("")}}`, "  \\toprule",
        `  ${table.columns.map(cell).join(" & ")} \\\\`, "  \\midrule",
        ...rows.map((r) => `  ${r.cells.map((c) => cell(c.text)).join(" & ")} \\\\`), "  \\bottomrule", "\\end{tabular}", "\\end{table}",
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

  all(".table[id^=table-]").forEach(readTable);
  return { one, all, make, root, line, Table };
})();
