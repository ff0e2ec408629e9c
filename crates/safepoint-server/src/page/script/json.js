// Bytes, hashes, and JSON in the one form that is hashed and signed (RFC 8785).
const utf8 = (text) => new TextEncoder().encode(text);
const joined = (...parts) => {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) { bytes.set(part, at); at += part.length; }
  return bytes;
};
const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const toBase64 = (bytes) => btoa(String.fromCharCode(...bytes));
const sha256 = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)));
const same = (one, other) => one.length === other.length && one.every((byte, at) => byte === other[at]);

const canonical = (value) => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value && typeof value === "object") {
    const names = Object.keys(value).sort(); // by UTF-16 units, as the form wants it
    return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
  }
  return JSON.stringify(value);
};

// Text as it is, with every character shown that would hide or turn something.
const visible = (text) => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

// Eight bytes, the largest first.
const eight = (number) => {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigInt64(0, BigInt(number));
  return bytes;
};

// A public key as signed notes have it: NAME+HASH+BASE64(1 || key).
const publicKey = async (text) => {
  const [, name, id, encoded] = text.match(/^([^+]+)\+([0-9a-f]{8})\+(.+)$/) ?? [];
  const bytes = fromBase64(encoded ?? "");
  if (!name || bytes.length !== 33 || bytes[0] !== 1) throw new Error("the key is none");
  const expected = (await sha256(utf8(`${name}\n`), bytes)).slice(0, 4);
  if (hex(expected) !== id) throw new Error("the key does not fit its name");
  const key = await crypto.subtle.importKey("raw", bytes.slice(1), "Ed25519", false, ["verify"]);
  return { name, id, key };
};

// Opens a signed note: its text, if this key has signed it.
const opened = async (note, key) => {
  const end = note.lastIndexOf("\n\n");
  if (end < 0) throw new Error("it is not signed");
  const text = note.slice(0, end + 1);
  for (const line of note.slice(end + 2).split("\n")) {
    const [, name, encoded] = line.match(/^— (\S+) (\S+)$/) ?? [];
    if (name !== key.name) continue;
    const bytes = fromBase64(encoded);
    if (hex(bytes.slice(0, 4)) !== key.id) continue;
    if (await crypto.subtle.verify("Ed25519", key.key, bytes.slice(4), utf8(text))) return text;
  }
  throw new Error("the signature is wrong");
};

