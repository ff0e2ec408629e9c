// Checking the trail here: the hashes of entries, the way from an entry to the signed root, and
// that the trail still begins with what this browser has seen before.
const LARGEST_BODY = 60_000;
const framed = (...fields) => joined(...fields.flatMap((field) => {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, field.length);
  return [length, field];
}));
const leaf = (frame) => sha256(Uint8Array.of(0), frame);
const node = (left, right) => sha256(Uint8Array.of(1), left, right);
const micros = (time) => {
  const [, seconds, fraction] = time.match(/^(.*?)(?:\.(\d{1,6}))?Z$/);
  return BigInt(Date.parse(`${seconds}Z`)) * 1000n + BigInt((fraction ?? "").padEnd(6, "0"));
};
const entryHash = async (entry) => {
  let body = utf8(canonical(entry.body));
  if (body.length > LARGEST_BODY) {
    body = utf8(canonical({ $blob: { sha256: hex(await sha256(body)), size: body.length } }));
  }
  return hex(await leaf(framed(
    utf8("safepoint/entry/v1"), eight(entry.seq), utf8(entry.id), eight(micros(entry.time)),
    utf8(entry.stream), utf8(entry.actor), utf8(entry.kind), utf8(entry.action_id ?? ""),
    body, fromHex(entry.prev_hash ?? ""),
  )));
};

// From a leaf to the root (RFC 9162, 2.1.3.2).
const rootOf = async (hash, index, size, path) => {
  let [place, last, root] = [index, size - 1, hash];
  for (const beside of path) {
    if (last === 0) throw new Error("the path is too long");
    if (place % 2 === 1 || place === last) {
      root = await node(beside, root);
      while (place % 2 === 0 && place !== 0) { place /= 2; last = Math.floor(last / 2); }
    } else root = await node(root, beside);
    place = Math.floor(place / 2);
    last = Math.floor(last / 2);
  }
  if (last !== 0) throw new Error("the path is too short");
  return root;
};

// Both roots from a proof that one tree continues another (RFC 9162, 2.1.4.2).
const continues = async (size, root, newSize, newRoot, path) => {
  if (size === newSize) return path.length === 0 && same(root, newRoot);
  if (size > newSize) return false;
  const steps = Number.isInteger(Math.log2(size)) ? [root, ...path] : [...path];
  if (!steps.length) return false;
  let [place, last] = [size - 1, newSize - 1];
  while (place % 2 === 1) { place = Math.floor(place / 2); last = Math.floor(last / 2); }
  let older = steps[0];
  let newer = steps[0];
  for (const beside of steps.slice(1)) {
    if (last === 0) return false;
    if (place % 2 === 1 || place === last) {
      older = await node(beside, older);
      newer = await node(beside, newer);
      while (place % 2 === 0 && place !== 0) { place /= 2; last = Math.floor(last / 2); }
    } else newer = await node(newer, beside);
    place = Math.floor(place / 2);
    last = Math.floor(last / 2);
  }
  return last === 0 && same(older, root) && same(newer, newRoot);
};

const headOf = async (note, keyText) => {
  const text = await opened(note, await publicKey(keyText));
  const [origin, size, root] = text.split("\n");
  return { origin, size: Number(size), root };
};

const verdict = (place, good, title, facts = []) => {
  place.dataset.state = good ? "good" : "bad";
  const heading = document.createElement("p");
  heading.setAttribute("role", "status");
  heading.textContent = title;
  const list = document.createElement("ul");
  for (const fact of facts) {
    const item = document.createElement("li");
    item.textContent = fact;
    list.append(item);
  }
  place.replaceChildren(heading, ...(facts.length ? [list] : []));
};
const failed = (place, error) => verdict(place, false, `This browser could not confirm it: ${error.message}.`);

const checkList = async (place) => {
  const answer = await fetch(place.dataset.verify, { redirect: "error" });
  if (!answer.ok) throw new Error(`the server said ${answer.status}`);
  const { entries } = await answer.json();
  const rows = new Map(all("[data-seq]").map((row) => [Number(row.dataset.seq), row]));
  const lastOf = new Map();
  // Under a filter the entry before one may be left out, so a gap says nothing.
  const isWhole = place.dataset.verify.endsWith("?");
  let [right, links, wrong] = [0, 0, []];
  for (const entry of entries) {
    const row = rows.get(entry.seq);
    const hash = await entryHash(entry);
    const before = lastOf.get(entry.stream);
    const isRight = hash === entry.hash && (!row || row.dataset.hash === hash)
      && (before === undefined || before === entry.prev_hash || !isWhole);
    if (isRight) { right += 1; links += before === entry.prev_hash ? 1 : 0; } else wrong.push(entry.seq);
    lastOf.set(entry.stream, hash);
    const seal = row && one("[data-seal]", row);
    if (seal) {
      seal.dataset.seal = isRight ? "good" : "bad";
      seal.textContent = isRight ? "✓" : "✕";
    }
  }
  if (wrong.length) return verdict(place, false, `Entry ${wrong.join(", ")} is not what its hash says.`);
  verdict(place, true, `This browser has hashed ${right} entries anew: all are what their hashes say, ${links} links between them hold.`);
};

const checkProof = async (place) => {
  const answer = await fetch(place.dataset.prove, { redirect: "error" });
  if (!answer.ok) throw new Error(`the server said ${answer.status}`);
  const proof = await answer.text();
  const end = proof.indexOf("\n\n");
  const [kind, extra, index, ...path] = proof.slice(0, end).split("\n");
  if (kind !== "c2sp.org/tlog-proof@v1") throw new Error("the proof is of another kind");
  const frame = fromBase64(extra.slice("extra ".length));
  const at = Number(index.slice("index ".length));
  const hash = await leaf(frame);
  if (hex(hash) !== place.dataset.hash || at !== Number(place.dataset.seq)) throw new Error("the proof is about another entry");
  const head = await headOf(proof.slice(end + 2), place.dataset.key);
  const root = await rootOf(hash, at, head.size, path.map(fromBase64));
  if (toBase64(root) !== head.root) throw new Error("the path does not lead to the signed root");
  verdict(place, true, "This browser has checked it itself:", [
    `✓ ${frame.length} bytes of the entry give the hash that is shown`,
    `✓ ${path.length} steps lead from it to the root of ${head.size} entries`,
    `✓ that root is signed by ${visible(head.origin)}`,
  ]);
};

const checkConsistency = async (place) => {
  const remembered = JSON.parse(localStorage.getItem("safepoint-head") ?? "null");
  const answer = await fetch(`/trail/consistency/${remembered?.size ?? 0}`, { redirect: "error" });
  if (!answer.ok) throw new Error(`the trail has no proof for the ${remembered?.size} entries seen before`);
  const { head, proof } = await answer.json();
  const now = await headOf(head.note, remembered?.key ?? head.key);
  if (remembered) {
    if (remembered.origin !== now.origin) throw new Error("this is another trail than before");
    const [, , ...path] = proof.slice(0, proof.indexOf("\n\n")).split("\n");
    const signed = await headOf(proof.slice(proof.indexOf("\n\n") + 2), remembered.key);
    const holds = await continues(remembered.size, fromBase64(remembered.root), signed.size, fromBase64(signed.root), path.map(fromBase64));
    if (!holds) throw new Error("what this browser has seen before is no longer the beginning of the trail");
  }
  localStorage.setItem("safepoint-head", JSON.stringify({ ...now, key: remembered?.key ?? head.key }));
  verdict(place, true, remembered
    ? `The trail of now ${now.size} entries still begins with the ${remembered.size} that this browser has seen before.`
    : `The head of ${now.size} entries is signed. This browser remembers it, and will ask for the proof next time.`);
};

// What a yes is bound to, computed here from the form itself.
const checkFingerprint = async (place) => {
  const answer = await fetch(place.dataset.form, { redirect: "error" });
  if (!answer.ok) throw new Error(`the server said ${answer.status}`);
  const form = await answer.json();
  const made = hex(await sha256(framed(utf8("safepoint/action"), eight(form.schema), utf8(canonical(form)))));
  if (made !== place.dataset.fingerprint) {
    if (byId("answers")) byId("answers").disabled = true;
    throw new Error("the fingerprint is not that of this form, so decide nothing here");
  }
  verdict(place, true, "This browser has computed the fingerprint from the whole form itself.");
};

const checks = [["[data-form]", checkFingerprint], ["[data-verify]", checkList], ["[data-prove]", checkProof], ["#consistency", checkConsistency]];
const check = () => {
  for (const [selector, work] of checks) {
    for (const place of all(selector)) work(place).catch((error) => failed(place, error));
  }
};
document.addEventListener("refreshed", () => { for (const place of all("[data-verify]")) checkList(place).catch((error) => failed(place, error)); });
check();
