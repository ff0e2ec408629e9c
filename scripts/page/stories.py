"""What people do on the page, step by step. Each story stands for a sentence of SU-08."""

from room import check

STORIES = []


def story(function):
    STORIES.append(function)
    return function


def sign_in(room, page):
    page.goto("/")
    page.wait_for_url("**/sign-in?back=*")
    page.fill("#token", room.tokens["operator"])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("nav.menu")


def give_key(room, page):
    page.set_input_files("#key-file", room.key_file())
    page.wait_for_selector("#key[data-state=ready]")


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def focused(page):
    return page.evaluate("document.activeElement.textContent.trim()")


@story
def su_08_approve(room, page):
    """The operator signs in the browser; the agent may then do exactly this, once."""
    hold = room.push()
    sign_in(room, page)
    page.get_by_role("link", name="git push origin HEAD:main").click()
    page.wait_for_selector("#bound[data-state=good]")
    for told in ["publish the release", "What others have seen cannot be taken back", "Nothing brings this back"]:
        check(page.get_by_text(told).count() > 0, f"the page does not say: {told}")
    give_key(room, page)
    page.fill("#reason", "the release was tried out")
    page.fill("#confirm", page.inner_text("#confirm-word"))
    page.get_by_role("button", name="Approve, once").click()
    page.wait_for_selector("text=It is decided")
    check(room.state(hold) == "approved", room.state(hold))
    entries = room.safepoint("trail", "list", "--kind", "approval_decision")["entries"]
    check("the release was tried out" in entries[-1]["body"]["decision"], "the reason is not in the signed decision")
    done = room.agent("git", "push", "origin", "HEAD:main", objective="publish the release")
    check(done.get("outcome") == "ok", f"the permit was not good: {done}")
    # The key is kept, and cannot be read out.
    extractable = page.evaluate("""() => new Promise((done) => {
        const opening = indexedDB.open("safepoint", 1);
        opening.onsuccess = () => {
            const asked = opening.result.transaction("keys").objectStore("keys").get("operator");
            asked.onsuccess = () => done(asked.result.key.extractable);
        };
    })""")
    check(extractable is False, "the key can be read out of the browser")


@story
def su_08_deny_and_halt(room, page):
    """A no and a halt are signed words too, with their reason."""
    first, second = room.push("one"), room.push("two")
    sign_in(room, page)
    page.goto(f"/holds/{first}")
    give_key(room, page)
    page.fill("#reason", "not today")
    page.get_by_role("button", name="Deny").click()
    page.wait_for_selector("text=It is decided")
    check(room.state(first) == "denied", room.state(first))
    page.goto(f"/holds/{second}")
    page.wait_for_selector("#key[data-state=ready]")
    page.get_by_role("button", name="Halt the session").click()
    page.wait_for_selector("#state >> text=halted")
    check(room.state(second) == "halted", room.state(second))


@story
def su_08_second_confirmation(room, page):
    """What cannot be taken back is not approved without the word, and not with another one."""
    hold = room.push()
    sign_in(room, page)
    page.goto(f"/holds/{hold}")
    give_key(room, page)
    for word in ["", "final-000000"]:
        page.fill("#confirm", word)
        page.get_by_role("button", name="Approve, once").click()
        page.wait_for_selector("#refused:visible")
        check(focused(page) == "" and page.evaluate("document.activeElement.id") == "confirm", "the focus is not where it is needed")
        check(room.state(hold) == "pending", "it was approved without the word")
    # Enter in the field decides nothing.
    page.fill("#confirm", page.inner_text("#confirm-word"))
    page.press("#confirm", "Enter")
    check(room.state(hold) == "pending", "the Enter key has decided")
    # Without a key nothing is sent either.
    page.get_by_role("button", name="Forget the key").click()
    page.get_by_role("button", name="Approve, once").click()
    page.wait_for_selector("text=Choose your key first.")
    check(room.state(hold) == "pending", "it was approved without a key")


@story
def su_08_foreign_key(room, page):
    """A key that is nobody's here, and one that only has an operator's name, are refused."""
    hold = room.push()
    sign_in(room, page)
    page.goto(f"/holds/{hold}")
    log = next((room.home / "data/keys").glob("*.key"))
    page.set_input_files("#key-file", str(log))
    page.wait_for_selector("#key-state >> text=is no operator here")
    forged = room.root / "forged.key"
    real = open(room.key_file()).read().strip()
    name, identity, _ = real.removeprefix("PRIVATE+KEY+").split("+", 2)
    other = log.read_text().strip().split("+", 4)[4]  # base64 may have a + in it
    forged.write_text(f"PRIVATE+KEY+{name}+{identity}+{other}\n")
    page.set_input_files("#key-file", str(forged))
    page.wait_for_selector("#key-state >> text=does not fit")
    check(page.locator("#key[data-state=ready]").count() == 0, "a forged key was taken")


@story
def su_08_what_it_would_write(room, page):
    """A tool's content is shown as a difference, the path as what is new, hostile text as what it is."""
    hold = room.client_writes(room.root / "else\nwhere.txt", "first line\n<script>alert(1)</script>\u202e\n")
    sign_in(room, page)
    page.goto(f"/holds/{hold}")
    added = page.locator(".line.added").all_inner_texts()
    check(any("+first line" in line for line in added), added)
    check(any("<script>alert(1)</script>\\u{202e}" in line for line in added), added)
    news = page.locator("section[aria-labelledby=why] .facts").inner_text()
    check("else\\nwhere.txt" in news, news)
    check(page.locator(".badge", has_text="outside the workspace").count() == 1, "it is not said that it lies outside")


@story
def su_08_live_update(room, page):
    """What happens elsewhere appears by itself, and takes neither typed text nor the focus away."""
    hold = room.push("one", objective="the first")
    sign_in(room, page)
    page.wait_for_selector("#connection[data-state=live]")
    press(page, "j")
    check("HEAD:one" in focused(page), focused(page))
    room.push("two", objective="the second")
    page.wait_for_selector("text=HEAD:two")
    check("HEAD:one" in focused(page), f"the focus was lost: {focused(page)}")
    check(page.inner_text("#waiting .count") == "2", page.inner_text("#waiting"))
    check(page.title().startswith("(2) "), page.title())
    # While somebody types, somebody else decides.
    page.goto(f"/holds/{hold}")
    page.wait_for_selector("#connection[data-state=live]")
    page.fill("#reason", "half a sen")
    room.push("three")
    page.wait_for_selector("#notice:visible")
    check(page.input_value("#reason") == "half a sen", "typed text was lost")
    check(page.evaluate("document.activeElement.id") == "reason", "the focus was lost")
    room.safepoint("hold", "deny", hold)
    page.wait_for_selector("#meanwhile:visible")
    check(page.input_value("#reason") == "half a sen", "typed text was lost")
    check(page.locator("#answers[disabled]").count() == 1, "it can still be sent")
    check("denied" in page.inner_text("#state"), page.inner_text("#state"))


@story
def su_08_resume(room, page):
    """After the connection was gone, the page shows what was missed."""
    sign_in(room, page)
    page.wait_for_selector("#connection[data-state=live]")
    page.context.set_offline(True)
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    room.push("missed")
    page.context.set_offline(False)
    page.evaluate("dispatchEvent(new Event('pageshow'))")
    page.wait_for_selector("text=HEAD:missed")


@story
def su_08_roll_back(room, page):
    """The plan is shown, then exactly that is done; a workspace that has changed shows a new plan."""
    notes = room.project / "notes.txt"
    sign_in(room, page)
    page.get_by_role("link", name="Checkpoints").click()
    page.get_by_role("link", name="before the release").click()
    page.get_by_role("link", name="Roll back…").click()
    page.wait_for_selector(".line.removed >> text=TWO")
    check(notes.read_text() == "one\nTWO\nthree\n", "looking has changed something")
    (room.project / "late.txt").write_text("late\n")
    page.get_by_role("button", name="Roll back 2 files").click()
    page.wait_for_selector("text=The workspace has changed since you looked")
    check(notes.read_text() == "one\nTWO\nthree\n", "another plan was carried out than the one that was seen")
    page.get_by_role("button", name="Roll back 3 files").click()
    page.wait_for_selector("h1:text('Done')")
    check(notes.read_text() == "one\ntwo\nthree\n", notes.read_text())
    check(not (room.project / "late.txt").exists(), "late.txt is still there")
    # And back again.
    page.get_by_role("link", name="Take it back…").click()
    page.get_by_role("button", name="Undo 3 files").click()
    page.wait_for_selector("h1:text('Done')")
    check(notes.read_text() == "one\nTWO\nthree\n", notes.read_text())


@story
def su_08_session_timeline(room, page):
    """A session shows each action with its decision, outcome, changes and difference; one is undone."""
    room.push()
    sign_in(room, page)
    page.get_by_role("link", name="Sessions").click()
    page.get_by_role("link", name="tidy up the notes").click()
    step = page.locator(".step", has_text="sed -i")
    check("allowed" in step.inner_text() and "notes.txt" in step.inner_text(), step.inner_text())
    step.locator("summary").click()
    step.locator(".line.added >> text=TWO").wait_for()
    check("waits" in page.locator(".step", has_text="git push").inner_text(), "the hold is not in the timeline")
    page.locator(".step", has_text="echo fresh").get_by_role("link", name="undo…").click()
    page.get_by_role("button", name="Undo 1 file").click()
    page.wait_for_selector("h1:text('Done')")
    check(not (room.project / "extra.txt").exists(), "it was not undone")
    check((room.project / "notes.txt").read_text() == "one\nTWO\nthree\n", "more was undone than asked")


@story
def su_08_trail_checked_here(room, page):
    """The browser hashes entries and checks proofs itself, and finds what was tampered with."""
    sign_in(room, page)
    page.get_by_role("link", name="Trail").click()
    page.wait_for_selector("#checked[data-state=good]")
    shown = page.locator(".entries li").count()
    check(page.locator("[data-seal=good]").count() == shown > 10, "not every entry was checked")
    page.goto("/trail/entry/8")
    page.wait_for_selector("#proving[data-state=good] >> text=that root is signed by")
    page.goto("/trail/verify")
    page.wait_for_selector("#consistency[data-state=good] >> text=remembers it")
    room.push()
    page.goto("/trail/verify")
    page.wait_for_selector("#consistency[data-state=good] >> text=still begins with")
    # A server that lies: another body under the same hash, another proof, another history.
    page.route("**/trail.json*", lambda route: lie(route, '"tidy up the notes"', '"tidy up the keys!"'))
    page.goto("/trail?kind=SessionStarted")
    page.wait_for_selector("#checked[data-state=bad] >> text=is not what its hash says")
    page.route("**/proof", lambda route: lie(route, "index 8", "index 9"))
    page.goto("/trail/entry/8")
    page.wait_for_selector("#proving[data-state=bad]")
    page.evaluate("""() => {
        const head = JSON.parse(localStorage.getItem("safepoint-head"));
        localStorage.setItem("safepoint-head", JSON.stringify({ ...head, root: btoa("x".repeat(32)), size: head.size - 3 }));
    }""")
    page.goto("/trail/verify")
    page.wait_for_selector("#consistency[data-state=bad] >> text=no longer the beginning")


def lie(route, before, after):
    answer = route.fetch()
    text = answer.text()
    check(before in text, f"there is no {before} to lie about")
    route.fulfill(response=answer, body=text.replace(before, after))


@story
def su_08_workspaces_as_a_graph(room, page):
    """A run is a tree with the chain of each workspace, with status, confidence and what was integrated."""
    sign_in(room, page)
    page.get_by_role("link", name="Workspaces").click()
    page.wait_for_selector("text=No workspaces yet")
    _, parser = room.run_of_workspaces()
    page.reload()
    page.get_by_role("link", name="Ship the release").click()
    check(page.locator("svg .place").count() == 5, "not every workspace is drawn")
    check(page.locator("svg .record").count() == 8, "not every piece of work is drawn")
    check(page.locator("svg .place.integrated").count() == 1, "what was integrated does not show")
    check(page.locator("svg .place.conflicted").count() == 1, "what does not fit does not show")
    check(page.locator(f"#{parser} >> text=high confidence").count() > 0, "the confidence does not show")


@story
def su_08_keyboard_only(room, page):
    """Everything is reached and done without a mouse."""
    room.push("one")
    hold = room.push("two")
    page.goto("/")
    page.keyboard.type(room.tokens["operator"])
    press(page, "Enter")
    page.wait_for_selector("nav.menu")
    press(page, "Tab")
    check(focused(page) == "Skip to the content", focused(page))
    press(page, "Enter")
    check(page.evaluate("document.activeElement.id") == "main", "the skip link leads nowhere")
    press(page, "j", "j")
    check("HEAD:two" in focused(page), focused(page))
    press(page, "k", "j")
    outline = page.evaluate("getComputedStyle(document.activeElement, '::after').outlineStyle")
    check(outline == "solid", f"the focus does not show: {outline}")
    press(page, "Enter")
    page.wait_for_url(f"**/holds/{hold}")
    give_key(room, page)  # The file dialog is the system's own.
    press(page, "d")
    check(page.evaluate("document.activeElement.id") == "decide", "d does not lead to the decision")
    for _ in range(20):
        press(page, "Tab")
        if focused(page) == "Deny":
            break
    check(focused(page) == "Deny", "the buttons are not reached with Tab")
    press(page, "Enter")
    page.wait_for_selector("text=It is decided")
    check(room.state(hold) == "denied", room.state(hold))
    press(page, "?")
    page.wait_for_selector("dialog[open]")
    press(page, "Escape")
    check(page.locator("dialog[open]").count() == 0, "the list of keys does not close")
    press(page, "g", "t")
    page.wait_for_url("**/trail")
    press(page, "/")
    check(page.evaluate("document.activeElement.id") == "f-session", "/ does not lead to the filter")


@story
def su_08_phone_width(room, page):
    """No page is wider than a phone, and nothing is too small to touch."""
    page.set_viewport_size({"width": 360, "height": 740})
    hold = room.push()
    room.agent("rm", "/tmp/" + "a-very-long-name-" * 12)
    sign_in(room, page)
    checkpoint = room.safepoint("list")["checkpoints"][0]["id"]
    session = room.safepoint("session", "list")["sessions"][0]["session_id"]
    for address in ["/", f"/holds/{hold}", "/sessions", f"/sessions/{session}", "/checkpoints?all=1",
                    f"/checkpoints/{checkpoint}", f"/checkpoints/{checkpoint}/rollback", "/workspaces", "/trail",
                    "/trail/entry/3", "/trail/verify", "/rules", "/status", "/nowhere"]:
        page.goto(address)
        wide = page.evaluate("document.documentElement.scrollWidth")
        check(wide <= 360, f"{address} is {wide} wide")
        small = page.evaluate("""() => [...document.querySelectorAll("button, .button, .menu a")]
            .filter((it) => it.offsetParent && it.getBoundingClientRect().height < 24).map((it) => it.textContent)""")
        check(not small, f"{address} has what is too small to touch: {small}")


@story
def su_08_contrast(room, page):
    """Every text has a contrast of 4.5 to 1 or more, in light and in dark."""
    hold = room.push()
    sign_in(room, page)
    for scheme in ["light", "dark"]:
        page.emulate_media(color_scheme=scheme)
        for address in ["/", f"/holds/{hold}", "/sessions", "/checkpoints?all=1", "/trail", "/rules", "/status"]:
            page.goto(address)
            faint = page.evaluate(CONTRAST)
            check(not faint, f"{scheme} {address}: {faint}")


CONTRAST = """() => {
    const parse = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const part = (value) => { const v = value / 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; };
        return .2126 * part(r) + .7152 * part(g) + .0722 * part(b);
    };
    const ground = (element) => {
        for (let it = element; it; it = it.parentElement) {
            const [r, g, b, a = 1] = parse(getComputedStyle(it).backgroundColor);
            if (a > .99) return [r, g, b];
        }
        return [255, 255, 255];
    };
    const found = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement;
        if (!texts.currentNode.textContent.trim() || !element.offsetParent || element.closest(".unseen, .skip, :disabled, svg")) continue;
        const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
        const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (contrast < 4.5) found.push([element.className || element.tagName, texts.currentNode.textContent.trim().slice(0, 30), contrast.toFixed(2)]);
    }
    return found;
}"""


@story
def su_08_without_script(room, page):
    """Reading needs no script; deciding is told to be done on the command line."""
    hold = room.push()
    context = page.context.browser.new_context(base_url=room.address, java_script_enabled=False)
    plain = context.new_page()
    plain.goto("/")
    plain.fill("#token", room.tokens["operator"])
    plain.get_by_role("button", name="Sign in").click()
    plain.get_by_role("link", name="git push origin HEAD:main").click()
    check(plain.get_by_text("What could be taken back").count() == 1, "the hold does not show")
    check(not plain.get_by_role("button", name="Approve, once").is_visible(), "a button is shown that does nothing")
    plain.get_by_text("Decide on the command line").click()
    command = plain.locator(".by-hand code").first.inner_text()
    check(command.startswith(f"safepoint hold approve {hold} --fingerprint "), command)
    room.safepoint(*command.split()[1:])
    check(room.state(hold) == "approved", "the command that is shown does not work")
    context.close()


@story
def su_08_who_may(room, page):
    """Nobody in without a token, an agent's opens nothing, an auditor decides nothing, a revoked one ends the visit."""
    hold = room.push()
    page.goto("/sessions")
    page.wait_for_url("**/sign-in?back=*")
    for token in ["wrong", room.tokens["agent"]]:
        page.fill("#token", token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("#why")
    page.fill("#token", room.tokens["auditor"])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/sessions")
    page.goto(f"/holds/{hold}")
    page.wait_for_selector("text=Only operators decide")
    cookie = page.context.cookies()[0]
    check(cookie["httpOnly"] and cookie["sameSite"] == "Strict", f"{cookie}")
    page.wait_for_selector("#connection[data-state=live]")
    room.revoke("reads")
    room.push("other")
    page.wait_for_selector("#connection >> text=You are signed out")
    page.goto("/")
    page.wait_for_url("**/sign-in?back=*")


@story
def su_08_a_link_elsewhere(room, page):
    """A link in a chat room that is itself a page, of another site, leads whoever is signed in to the hold."""
    hold = room.push()
    sign_in(room, page)
    chat = f'<a href="{room.address}/holds/{hold}">look</a>'
    page.route("http://chat.test/**", lambda route: route.fulfill(body=chat, content_type="text/html"))
    page.goto("http://chat.test/")
    page.get_by_role("link", name="look").click()
    page.wait_for_selector("#bound[data-state=good]")
    # The way back does not end in between.
    page.go_back()
    check(page.url == "http://chat.test/", page.url)
