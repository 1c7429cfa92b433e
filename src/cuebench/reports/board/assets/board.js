// The first page of a board: one ranking at a time, filters, and an address that keeps what was chosen.
(() => {
  "use strict";
  const { one, all, make, root, line, Table } = cuebenchPage;
  const source = document.getElementById("board-data");
  const form = one(".filters"), box = one(".table.ranking");
  root.dataset.ready = "true";
  if (!source || !form) return;
  root.dataset.ready = "";
  const data = JSON.parse(source.textContent);
  const columns = all("thead th", box).map((head) => head.dataset.name);
  const SVG = "http://www.w3.org/2000/svg";
  const shape = (name, attributes) => {
    const node = document.createElementNS(SVG, name);
    Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
    return node;
  };
  const bar = (value, low, high) => {
    const x = (v) => (100 * Math.min(1, Math.max(0, v))).toFixed(1);
    const svg = shape("svg", { class: "bar", viewBox: "0 0 100 12", "aria-hidden": "true" });
    svg.append(shape("line", { class: "track", x1: 0, x2: 100, y1: 6, y2: 6 }), shape("line", { class: "middle", x1: 50, x2: 50, y1: 2, y2: 10 }));
    if (low !== null && high !== null) svg.append(shape("line", { class: "whisker", x1: x(low), x2: x(high), y1: 6, y2: 6 }));
    svg.append(shape("circle", { cx: x(value), cy: 6, r: 3.6 }));
    return svg;
  };
  const short = (text) => (text.length > 32 ? `${text.slice(0, 31)}…` : text);
  const millions = (n) => (n === null ? "" : n >= 1e9 ? `${(n / 1e9).toFixed(1)} B` : `${(n / 1e6).toFixed(n < 1e7 ? 1 : 0)} M`);

  // One row: what is shown and copied, what it is filtered by, and its element, which is made when it is first shown.
  const rowOf = (r) => {
    const interval = r.low === null || r.high === null ? "" : ` [${r.low.toFixed(2)}, ${r.high.toFixed(2)}]`;
    const rank = !r.best ? "–" : r.best === r.worst ? String(r.best) : `${r.best}–${r.worst}`;
    const badge = data.layers[r.layer];
    const cells = [
      { text: rank, value: r.place }, { text: r.name, value: r.name },
      { text: r.value.toFixed(3) + interval, value: r.value, low: r.low, high: r.high },
      { text: r.ties, value: r.ties }, { text: r.n === null ? "" : r.n.toLocaleString("en"), value: r.n },
      { text: r.family, value: r.family }, { text: r.training, value: r.training },
      { text: millions(r.parameters), value: r.parameters }, { text: r.date, value: r.date },
    ];
    let tr;
    const row = line(cells, () => {
      if (tr) return tr;
      tr = make("tr", "", badge ? (r.layer.includes("people") ? "beside people" : "beside") : "");
      cells.forEach((cell, i) => {
        const style = [0, 2, 4, 7].includes(i) ? "number" : i === 8 ? "day" : "";
        const td = make(i === 1 ? "th" : "td", i === 1 && r.slug ? "" : cell.text, style);
        if (i === 1) {
          td.scope = "row";
          if (r.slug) {
            const link = make("a", r.name);
            link.href = `models/${r.slug}.html`;
            td.append(link);
          }
          if (badge) td.append(" ", make("span", badge, r.layer.includes("people") ? "layer people" : "layer"));
          if (unranked(r)) td.append(" ", make("span", "too few decided trials", "layer"));
          if (r.same) td.append(" ", make("span", r.same, "layer"));
          if (r.source) td.title = r.source;
        }
        if ((i === 5 || i === 6) && short(cell.text) !== cell.text) { td.textContent = short(cell.text); td.title = cell.text; }
        if (i === 2 && r.value >= 0 && r.value <= 1) td.append(bar(r.value, r.low, r.high));
        tr.append(td);
      });
      return tr;
    });
    return Object.assign(row, { layer: r.layer, family: r.family, training: r.training, size: r.size });
  };
  // A model that decided too rarely to be ranked stands below the others.
  const unranked = (r) => Number(r.layer === "model" && !r.best);
  const rowsOf = (id) => {
    const track = data.tracks[id];
    const own = track.rows.map(([m, value, low, high, n, excluded, best, worst, ties, same]) => {
      const [slug, name, layer, family, training, parameters, size, date] = data.models[m];
      return { slug, name, layer, family, training, parameters, size, date, value, low, high, n, excluded, best, worst, ties, same };
    });
    const printed = track.published.map(([layer, name, value, from]) => ({
      slug: "", name, layer, family: "", training: "", parameters: null, size: "", date: "", value, low: null, high: null,
      n: null, best: 0, worst: 0, ties: "", source: from,
    }));
    const rows = [...own, ...printed].sort((a, b) => unranked(a) - unranked(b) || b.value - a.value);
    rows.forEach((r, i) => { r.place = i + 1; });
    return rows.map(rowOf);
  };

  // ---------------------------------------------------------------------------------------------- filters
  const NAMES = ["ranking", "family", "training", "size"], BOXES = ["people", "published", "ideal"];
  const field = (name) => form.elements.namedItem(name);
  const chosen = (name) => field(name)?.value ?? "";
  const LAYER = { model: null, people: "people", "published people": "published", published: "published", ideal: "ideal" };
  const keep = (row) => {
    const layer = LAYER[row.layer];
    if (layer && !field(layer).checked) return false;
    return ["family", "training", "size"].every((name) => !chosen(name) || row[name] === chosen(name));
  };
  const cached = new Map();
  const rowsFor = (id) => {
    if (!cached.has(id)) cached.set(id, rowsOf(id));
    return cached.get(id);
  };
  const output = one(".found output");
  const table = new Table(box, columns, [], {
    keep, shown: (n) => { output.textContent = `${n.toLocaleString("en")} of ${table.rows.length.toLocaleString("en")} rows`; },
  });
  const search = one("input[type=search]", box);
  const choose = () => {
    const id = chosen("ranking");
    table.rows = [...rowsFor(id)];
    one(".caption", box).textContent = data.tracks[id].metric;
    box.dataset.note = data.tracks[id].note;
    for (const name of BOXES) {
      const n = table.rows.filter((row) => LAYER[row.layer] === name).length;
      one(".count", field(name).parentNode).textContent = ` (${n})`;
    }
    all(".track").forEach((p) => { p.hidden = p.dataset.track !== id; });
    table.heads.forEach((head, i) => head.setAttribute("aria-sort", i ? "none" : "ascending"));
  };

  // ---------------------------------------------------------------------------------------------- address
  const usual = Object.fromEntries(BOXES.map((name) => [name, field(name).checked]));
  const write = () => {
    const state = new URLSearchParams();
    NAMES.forEach((name, i) => {
      const first = i === 0 ? field(name).options[0].value : "";
      if (chosen(name) && chosen(name) !== first) state.set(name, chosen(name));
    });
    BOXES.forEach((name) => field(name).checked !== usual[name] && state.set(name, Number(field(name).checked)));
    if (table.wanted) state.set("q", table.wanted);
    history.replaceState(null, "", state.size ? `#${state}` : location.pathname);
  };
  const read = () => {
    const state = new URLSearchParams(location.hash.slice(1));
    NAMES.forEach((name) => {
      const wanted = state.get(name), select = field(name);
      if (select) select.value = [...select.options].some((o) => o.value === wanted) ? wanted : select.options[0].value;
    });
    BOXES.forEach((name) => { field(name).checked = state.has(name) ? state.get(name) === "1" : usual[name]; });
    search.value = state.get("q") ?? "";
    table.wanted = search.value.trim().toLowerCase();
    choose();
    table.show();
  };
  form.addEventListener("change", (event) => {
    if (event.target.name === "ranking") choose();
    table.show();
    write();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  let later;
  search.addEventListener("input", () => { clearTimeout(later); later = setTimeout(write, 300); });
  addEventListener("hashchange", read);
  form.hidden = false;
  read();
  root.dataset.ready = "true";
})();
