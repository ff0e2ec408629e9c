// Deciding. What is signed is one line of JSON that names the hold, the fingerprint and what
// was decided: the same bytes that the command line signs.
const deciding = byId("deciding");
if (deciding) {
  const operators = JSON.parse(deciding.dataset.operators);
  const refused = byId("refused");
  let kept = null;
  let isSent = false;
  addEventListener("pageshow", () => { isSent = false; });

  const refuse = (text, field) => {
    refused.textContent = text;
    refused.hidden = !text;
    field?.focus();
  };

  const showKey = (text) => {
    byId("key").dataset.state = kept ? "ready" : "missing";
    byId("key-state").textContent = text;
    byId("key-file").hidden = Boolean(kept);
    byId("key-label").hidden = Boolean(kept);
    byId("key-forget").hidden = !kept;
  };

  const look = async () => {
    if (!globalThis.crypto?.subtle) return showKey("Signing needs HTTPS, or this machine's own address.");
    try {
      const found = await keptKey();
      if (!found) return showKey("Your browser has no key yet. It is the file that “safepoint operator add” made.");
      await fits(found, operators);
      kept = found;
      showKey(`Signing as ${visible(kept.name)}, with the key in this browser.`);
    } catch (error) {
      showKey(`The key in this browser cannot be used: ${error.message}.`);
    }
  };

  byId("key-file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    try {
      if (file.size > 10_000) throw new Error("this file is too large for a key");
      const found = await importKey(await file.text());
      await fits(found, operators);
      await keepKey(found);
      kept = found;
      refuse("");
      showKey(`Signing as ${visible(kept.name)}, with the key in this browser.`);
    } catch (error) {
      showKey(`That did not work: ${error.message}.`);
    }
    event.target.value = "";
  });

  byId("key-forget").addEventListener("click", async () => {
    await forgetKey();
    kept = null;
    showKey("The key is forgotten.");
    byId("key-file").focus();
  });

  const decision = (choice) => {
    const text = (id) => byId(id)?.value.trim() || null;
    const envelope = choice === "approve" && text("envelope") ? JSON.parse(text("envelope")) : null;
    const goes = envelope ? "modify" : byId("per-step").checked ? "per_step" : "continue";
    const scope = choice === "approve" && goes === "continue" ? text("lasts") : null;
    const { hold, action, fingerprint } = deciding.dataset;
    return {
      statement: "safepoint/decision/v1",
      hold_id: hold,
      action_id: action,
      fingerprint,
      choice: choice === "approve" ? goes : choice,
      envelope,
      ...(scope ? { scope } : {}),
      confirm: choice === "approve" ? text("confirm") : null,
      reason: text("reason"),
      operator: kept.name,
      time: serverNow().toISOString().replace("Z", "000Z"),
    };
  };

  const signed = async (statement) => {
    const text = `${canonical(statement)}\n`;
    const signature = new Uint8Array(await crypto.subtle.sign("Ed25519", kept.key, utf8(text)));
    return `${text}\n— ${kept.name} ${toBase64(joined(fromHex(kept.id), signature))}\n`;
  };

  deciding.addEventListener("submit", async (event) => {
    event.preventDefault();
    const choice = event.submitter?.value;
    // Enter in a field decides nothing: only a button does.
    if (!choice || isSent) return;
    refuse("");
    if (!kept) return refuse("Choose your key first.", byId("key-file"));
    const word = deciding.dataset.confirm;
    if (choice === "approve" && word && byId("confirm").value.trim() !== word) {
      return refuse(`It cannot be taken back. Type ${word} to approve it.`, byId("confirm"));
    }
    try {
      deciding.elements.note.value = await signed(decision(choice));
    } catch (error) {
      return refuse(error instanceof SyntaxError ? `The scope is not JSON: ${error.message}` : `It could not be signed: ${error.message}`);
    }
    deciding.elements.choice.value = choice;
    isSent = true; // pressed twice, it is sent once
    deciding.submit();
  });
  for (const input of all("input[type=text]", deciding)) {
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  }
  look();
}

