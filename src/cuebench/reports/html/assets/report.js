// What the report alone does: where we are, all numbers, gallery.
(() => {
  "use strict";
  const { one, all, make, root, line, Table } = cuebenchPage;
  const data = JSON.parse(document.getElementById("data").textContent);

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

  // ---------------------------------------------------------------------------------------------- all numbers
  // The table of all numbers is made when it is opened: it may have thousands of rows.
  const digits = (x, n) => x.toFixed(n);
  const allNumbers = (details) => {
    const box = one(".table", details);
    if (box.dataset.ready) return;
    box.dataset.ready = "true";
    const found = data.numbers[box.dataset.numbers];
    const columns = ["observer", "condition", "metric", "value", "interval over", "n", "excluded", "notes"];
    const rows = found.rows.map(([o, c, m, k, how, note, value, low, high, n, excluded]) => {
      const interval = low === null || high === null ? "" : ` [${digits(low, 2)}, ${digits(high, 2)}]`;
      const over = found.ci_kind[k].replaceAll("_", " ") + (found.ci_method[how] ? ` (${found.ci_method[how]})` : "");
      const texts = [found.observer[o], found.condition[c], found.metric[m]].map((text) => ({ text, value: text }));
      const cells = [
        ...texts, { text: value === null ? "–" : digits(value, 3) + interval, value, low, high },
        { text: over, value: over },
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
