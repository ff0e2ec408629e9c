// The operator's key. It is read from a file once, and kept so that it can sign but can never
// be read out again. It never leaves this browser.
const shelf = (mode, work) => new Promise((done, failed) => {
  const opening = indexedDB.open("safepoint", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
  opening.onerror = () => failed(opening.error);
  opening.onsuccess = () => {
    const transaction = opening.result.transaction("keys", mode);
    const asked = work(transaction.objectStore("keys"));
    transaction.oncomplete = () => { opening.result.close(); done(asked?.result); };
    transaction.onerror = () => failed(transaction.error);
  };
});
const keptKey = () => shelf("readonly", (keys) => keys.get("operator"));
const keepKey = (key) => shelf("readwrite", (keys) => keys.put(key, "operator"));
const forgetKey = () => shelf("readwrite", (keys) => keys.delete("operator"));

// What stands before the 32 bytes of an Ed25519 key in PKCS #8.
const BEFORE_SEED = fromHex("302e020100300506032b657004220420");

// Reads PRIVATE+KEY+NAME+HASH+BASE64(1 || seed).
const importKey = async (text) => {
  const [, name, id, encoded] = text.trim().match(/^PRIVATE\+KEY\+([^+]+)\+([0-9a-f]{8})\+(\S+)$/) ?? [];
  if (!name) throw new Error("this is no key of an operator; it begins with PRIVATE+KEY+");
  const bytes = fromBase64(encoded);
  if (bytes.length !== 33 || bytes[0] !== 1) throw new Error("this key is of another kind");
  const key = await crypto.subtle.importKey("pkcs8", joined(BEFORE_SEED, bytes.slice(1)), "Ed25519", false, ["sign"]);
  bytes.fill(0);
  return { name, id, key };
};

// Whether a key is that of an operator who decides here: it must sign what their public key opens.
const fits = async (kept, operators) => {
  const operator = operators.find((it) => it.name === kept.name);
  if (!operator) throw new Error(`“${visible(kept.name)}” is no operator here`);
  const known = await publicKey(operator.key);
  if (known.id !== kept.id) throw new Error(`this is not the key of “${visible(kept.name)}” that is known here`);
  const trial = utf8("safepoint/trial/v1\n");
  const signature = await crypto.subtle.sign("Ed25519", kept.key, trial);
  if (!(await crypto.subtle.verify("Ed25519", known.key, signature, trial))) throw new Error("the key does not fit its public part");
};

