// The page's own script. Everything can be read without it; with it, pages stay up to date,
// keys work, decisions are signed here, and proofs are checked here.
"use strict";
(() => {
const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const byId = (id) => document.getElementById(id);

// The server's clock, as far as it is known here.
const loaded = { at: performance.now(), now: Date.parse(document.documentElement.dataset.now) };
const serverNow = () => new Date(loaded.now + performance.now() - loaded.at);

for (const element of all("[data-needs-script]")) element.hidden = false;

// On a phone the menu is longer than the screen.
one(".menu [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

const notice = (text) => {
  const place = byId("notice");
  place.textContent = text;
  place.hidden = !text;
};

// Commands to copy.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const line = one("code", button.parentElement).textContent;
  try {
    await navigator.clipboard.writeText(line);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(one("code", button.parentElement));
    button.textContent = "Selected";
  }
});

// What is loaded when it is opened.
document.addEventListener("toggle", async (event) => {
  const details = event.target;
  if (!details.open || !details.dataset?.load || details.dataset.loaded) return;
  details.dataset.loaded = "yes";
  try {
    const fresh = await fetched(details.dataset.load);
    const found = fresh.getElementById("loaded");
    if (!found) throw new Error("nothing there");
    found.removeAttribute("id");
    details.replaceChildren(one("summary", details), document.importNode(found, true));
  } catch (error) {
    delete details.dataset.loaded;
    const sorry = document.createElement("p");
    sorry.className = "error";
    sorry.textContent = `It could not be loaded: ${error.message}.`;
    details.append(sorry);
  }
}, true);

const fetched = async (address, more = {}) => {
  const answer = await fetch(address, { headers: { Accept: "text/html", ...more }, redirect: "error" });
  if (!answer.ok) throw new Error(`the server said ${answer.status}`);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
};

// Keys.
const isTyping = (element) => element?.closest("input, textarea, select, [contenteditable]");
const dialog = byId("keys");
let going = 0;

const step = (by) => {
  const items = all("[data-item]").filter((item) => item.offsetParent !== null);
  if (!items.length) return;
  const here = items.indexOf(document.activeElement?.closest("[data-item]"));
  const there = here < 0 ? (by > 0 ? 0 : items.length - 1) : Math.min(Math.max(here + by, 0), items.length - 1);
  const target = one("a[href], summary", items[there]) ?? items[there];
  if (target === items[there]) target.tabIndex = -1;
  target.focus();
  items[there].scrollIntoView({ block: "nearest" });
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (dialog?.open) return;
  if (going && Date.now() - going < 1500) {
    going = 0;
    const link = one(`[data-go="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  const does = {
    j: () => step(1),
    k: () => step(-1),
    g: () => { going = Date.now(); },
    d: () => { byId("decide")?.focus(); byId("decide")?.scrollIntoView({ block: "nearest" }); },
    "/": () => {
      const filter = one("form.filter");
      const closed = filter && one("details", filter);
      if (closed) closed.open = true;
      filter && one("input:not([type=hidden]), select", filter)?.focus();
    },
    "?": () => dialog?.showModal(),
  }[event.key];
  if (does) { event.preventDefault(); does(); }
});
one("[data-keys]")?.addEventListener("click", () => dialog.showModal());

// Times go on.
const told = (then, now) => {
  const micros = then - now;
  const seconds = Math.floor(Math.abs(micros) / 1000);
  if (seconds < 5) return "now";
  const [number, unit] = seconds < 60 ? [seconds, "s"]
    : seconds < 3600 ? [Math.floor(seconds / 60), "min"]
    : seconds < 172800 ? [Math.floor(seconds / 3600), "h"]
    : [Math.floor(seconds / 86400), "days"];
  return micros < 0 ? `${number} ${unit} ago` : `in ${number} ${unit}`;
};
setInterval(() => {
  const now = serverNow();
  for (const time of all("time[datetime]")) {
    const then = Date.parse(time.dateTime);
    if (!Number.isNaN(then)) time.textContent = told(then, now);
  }
}, 5000);

