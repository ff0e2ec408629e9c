// Keeping open pages up to date, without taking anything away from whoever reads or types:
// only marked regions change, and forms are in none of them.
const raw = new Map(all("[data-live][id]").map((region) => [region.id, region.innerHTML]));
const connection = byId("connection");
const connected = (state, text) => {
  if (!connection) return;
  connection.dataset.state = state;
  connection.textContent = text;
};

const identity = (element) => element?.dataset?.key ?? element?.getAttribute?.("href") ?? element?.textContent;

const exchange = (region, next) => {
  const focused = region.contains(document.activeElement) ? document.activeElement : null;
  const known = focused && { tag: focused.tagName, is: identity(focused) };
  const openDetails = new Map(all("details[open]", region).map((it) => [it.dataset.load ?? it.textContent, it]));
  const copy = document.importNode(next, true);
  for (const element of all("[data-needs-script]", copy)) element.hidden = false;
  for (const details of all("details", copy)) {
    const before = openDetails.get(details.dataset.load ?? details.textContent);
    if (before) details.replaceWith(before);
  }
  region.replaceChildren(...copy.childNodes);
  if (known) {
    const again = all(known.tag.toLowerCase(), region).find((it) => identity(it) === known.is);
    (again ?? byId("main")).focus({ preventScroll: true });
  }
};

let refreshing = null;
let wanted = false;
const refresh = () => {
  if (refreshing) { wanted = true; return refreshing; }
  refreshing = (async () => {
    try {
      const fresh = await fetched(location.href, { "X-Safepoint-Refresh": "yes" }); // which does not count as somebody being there
      const before = byId("waiting")?.textContent.trim();
      for (const region of all("[data-live][id]")) {
        const next = fresh.getElementById(region.id);
        if (!next || raw.get(region.id) === next.innerHTML) continue;
        raw.set(region.id, next.innerHTML);
        exchange(region, next);
      }
      loaded.at = performance.now();
      loaded.now = Date.parse(fresh.documentElement.dataset.now);
      document.title = fresh.title;
      const count = (text) => parseInt(text, 10) || 0;
      const after = byId("waiting")?.textContent.trim();
      if (count(after) > count(before)) notice("Something new waits in the inbox.");
      else if (after !== before) notice("");
      decidedMeanwhile(fresh);
      document.dispatchEvent(new Event("refreshed"));
    } catch {
      connected("lost", "Not up to date: the server does not answer");
    }
    refreshing = null;
    if (wanted) { wanted = false; refresh(); }
  })();
  return refreshing;
};

// Somebody else was quicker: what is typed stays, and cannot be sent any more.
const decidedMeanwhile = (fresh) => {
  const here = byId("decision");
  const there = fresh.getElementById("decision");
  if (!here || !there || here.dataset.state === there.dataset.state || !byId("answers")) return;
  byId("meanwhile").hidden = false;
  byId("answers").disabled = true;
};

let source = null;
const listen = () => {
  if (!connection || source || document.hidden) return;
  source = new EventSource("/live");
  source.addEventListener("open", () => connected("live", "Up to date"));
  source.addEventListener("moved", () => refresh());
  source.addEventListener("ended", () => { source.close(); connected("lost", "You are signed out. Reload to sign in."); });
  source.addEventListener("error", () => {
    const over = source.readyState === EventSource.CLOSED;
    connected("lost", over ? "Not up to date. Reload to try again." : "Connecting again…");
  });
};
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) return listen();
  source?.close();
  source = null;
});
addEventListener("pagehide", () => { source?.close(); source = null; });
addEventListener("pageshow", listen);
listen();

