// The personal link: it ends with the token of a session, behind a # that browsers send to nobody.

import { element } from "./plugins.js";

export const MARK = "#resume=";
const TOKEN = /^\d{1,9}\.[\w-]{43}$/;

const linkTo = token => location.origin + location.pathname + MARK + token;

// The token in a personal link; empty: there is none.
export function tokenIn(text) {
  const last = text.split(MARK).at(-1).trim();
  return TOKEN.test(last) ? last : "";
}

async function copied(shown) {
  getSelection().selectAllChildren(shown);
  try {
    await navigator.clipboard.writeText(shown.textContent);
    return true;
  } catch {
    return document.execCommand("copy");   // in a frame that may not write to the clipboard
  }
}

function said(role, classes = "said") {
  const line = element("p", classes);
  line.setAttribute("role", role);
  return line;
}

// The part of a page that shows somebody their personal link.
export function shownLink(words, token) {
  const part = element("div", "text"), row = element("div", "link-row"), reply = said("status");
  const link = Object.assign(element("output", "link", linkTo(token)), { id: "link" });
  link.setAttribute("aria-label", words.link_title);
  const button = Object.assign(element("button", "", words.copy), { type: "button" });
  button.addEventListener("click", async () => { reply.textContent = await copied(link) ? words.copied : ""; });
  row.append(button, reply);
  part.append(element("h1", "", words.link_title), element("p", "", words.link_why), link, row);
  return part;
}

// The part of a page that asks for a personal link. `next()`: the token that was given; `wrong()`: it opens nothing.
export function askedLink(words, contact) {
  const part = element("form", "text"), row = element("div", "link-row"), reply = said("alert", "said warn");
  const field = Object.assign(element("input"), { type: "text", id: "link", required: true, autocomplete: "off", spellcheck: false, placeholder: linkTo("…") });
  row.append(field, element("button", "primary", words.resume));
  const label = Object.assign(element("label", "", words.link), { htmlFor: field.id });
  part.append(element("h1", "", words.begun_title), element("p", "", words.begun), label, row, reply, element("p", "", words.link_lost));
  if (contact) part.append(element("p", "", contact));
  const wrong = () => {
    reply.textContent = words.link_wrong;
    field.select();
  };
  const next = () => new Promise(resolve => {
    part.onsubmit = event => {
      event.preventDefault();
      reply.textContent = "";
      const token = tokenIn(field.value);
      token ? resolve(token) : wrong();
    };
  });
  return { part, next, wrong };
}
