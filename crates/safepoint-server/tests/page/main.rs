//! The page, asked without a browser: who gets in, what a request must have, what an answer
//! says, and that nothing hostile is ever markup. `scripts/test-page` plays it in a browser.

#![expect(clippy::unwrap_used, reason = "tests")]

mod fake;

use fake::{Browser, Page};
use http::StatusCode;
use safepoint_server::commands::{Asker, Role};
use safepoint_server::page::Transport;
use serde_json::{Value, json};

/// Every page that reads.
const PAGES: [&str; 18] = [
    "/",
    "/?all=1",
    "/holds/hld_1",
    "/holds/hld_1/form.json",
    "/sessions",
    "/sessions/ses_1",
    "/checkpoints",
    "/checkpoints/chk_1",
    "/checkpoints/chk_1/diff",
    "/checkpoints/chk_1/diff/chk_2",
    "/workspaces",
    "/trail",
    "/trail.json",
    "/trail/verify",
    "/trail/entry/ent_1",
    "/trail/entry/ent_1/proof",
    "/rules",
    "/status",
];

/// Runs a test on a runtime of its own.
fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(test);
}

#[test]
fn su_08_no_page_without_a_token() {
    run(async {
        let browser = Browser::new(Transport::Plain);
        for page in PAGES {
            let answer = browser.get(page).await;
            assert_eq!(answer.status, StatusCode::SEE_OTHER, "{page}");
            assert!(
                answer.header("location").starts_with("/sign-in?back="),
                "{page}"
            );
            assert_eq!(answer.text, "", "{page}");
        }
        let asked = browser
            .request("GET", "/trail.json")
            .body(axum::body::Body::empty());
        let answer = browser.send(asked.unwrap()).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        for form in [
            "/holds/hld_1/decide",
            "/checkpoints/chk_1/rollback",
            "/sign-out",
        ] {
            let answer = browser.post(form, "").await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{form}");
        }
        assert!(
            browser.fake.asked(&[]).is_empty(),
            "a command was run for nobody"
        );
    });
}

#[test]
fn su_08_agents_and_strangers_do_not_get_in() {
    run(async {
        for token in ["agent", "wrong", ""] {
            let mut browser = Browser::new(Transport::Plain);
            let answer = browser.sign_in(token).await;
            assert!(
                answer.status.is_client_error(),
                "{token}: {}",
                answer.status
            );
            assert_eq!(answer.header("set-cookie"), "", "{token}");
            assert_eq!(
                browser.get("/").await.status,
                StatusCode::SEE_OTHER,
                "{token}"
            );
        }
        let mut browser = Browser::new(Transport::Plain);
        let answer = browser.sign_in("broken").await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    });
}

#[test]
fn su_08_every_page_is_shown_with_strict_headers() {
    run(async {
        let browser = Browser::signed_in("operator").await;
        for page in PAGES
            .iter()
            .chain(&["/page.js", "/page.css", "/sign-in", "/nowhere"])
        {
            let answer = browser.get(page).await;
            let expected = match *page {
                "/nowhere" => StatusCode::NOT_FOUND,
                _ => StatusCode::OK,
            };
            assert_eq!(answer.status, expected, "{page}: {}", answer.text);
            let policy = answer.header("content-security-policy");
            assert!(
                policy.starts_with("default-src 'none';"),
                "{page}: {policy}"
            );
            assert!(
                policy.contains("frame-ancestors 'none'"),
                "{page}: {policy}"
            );
            assert!(!policy.contains("unsafe"), "{page}: {policy}");
            assert_eq!(answer.header("x-content-type-options"), "nosniff", "{page}");
            assert_eq!(answer.header("referrer-policy"), "same-origin", "{page}");
            assert!(answer.header("cache-control").starts_with("no-"), "{page}");
            check_markup(page, &answer);
        }
    });
}

/// Nothing that the policy would refuse is in a page: no script or style in it, no address
/// elsewhere.
fn check_markup(page: &str, answer: &Page) {
    if !answer.header("content-type").starts_with("text/html") {
        return;
    }
    for forbidden in [
        " style=",
        "<style",
        "javascript:",
        " onclick=",
        " onload=",
        "src=\"http",
        "href=\"http",
    ] {
        assert!(!answer.text.contains(forbidden), "{page} has {forbidden}");
    }
    assert_eq!(answer.text.matches("<script").count(), 1, "{page}");
    assert!(
        answer
            .text
            .contains(r#"<script src="/page.js" defer></script>"#),
        "{page}"
    );
    for id in ["id=\"main\"", "lang=\"en\"", "class=\"skip\""] {
        assert!(answer.text.contains(id), "{page} has no {id}");
    }
}

#[test]
fn su_08_forms_need_our_origin_and_our_mark() {
    run(async {
        let browser = Browser::signed_in("operator").await;
        let page = browser.get("/holds/hld_1").await;
        let form = format!("mark={}&choice=deny&note=signed", page.mark());
        let address = "/holds/hld_1/decide";
        for origin in [
            "http://evil.test",
            "null",
            "http://page.test.evil.test",
            "http://page.test:81",
        ] {
            let answer = browser.post_from(origin, address, &form).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{origin}");
        }
        let request = browser
            .request("POST", address)
            .body(form.clone().into())
            .unwrap();
        let answer = browser.send(request).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "without an origin");
        let request = browser
            .request("POST", address)
            .header("origin", "http://page.test");
        let request = request
            .header("sec-fetch-site", "cross-site")
            .body(form.clone().into());
        let answer = browser.send(request.unwrap()).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "from another site");
        let other = Browser::signed_in("auditor").await.get("/status").await;
        for mark in ["", "0000", other.mark()] {
            let form = format!("mark={mark}&choice=deny&note=signed");
            let answer = browser.post(address, &form).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{mark}");
        }
        assert!(browser.fake.asked(&["hold", "deny"]).is_empty());
        browser.fake.answer("hold deny", 0, json!({}));
        let answer = browser.post(address, &form).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        assert_eq!(browser.fake.asked(&["hold", "deny"]).len(), 1);
    });
}

#[test]
fn su_08_a_decision_is_handed_on_as_it_was_signed() {
    run(async {
        let browser = Browser::signed_in("operator").await;
        browser.fake.answer("hold approve", 0, json!({}));
        let mark = browser.get("/holds/hld_1").await.mark().to_owned();
        let note = "{\"a\":1}%0D%0A%0D%0A%E2%80%94 ada x%0D%0A";
        let form = format!("mark={mark}&choice=approve&fingerprint=abc&note={note}");
        let answer = browser.post("/holds/hld_1/decide", &form).await;
        assert_eq!(answer.header("location"), "/holds/hld_1");
        let [asked] = &browser.fake.asked(&["hold", "approve"])[..] else {
            panic!("not asked once");
        };
        let expected = [
            "hold",
            "approve",
            "--fingerprint=abc",
            "--signature=-",
            "hld_1",
        ];
        assert_eq!(asked.words, expected);
        assert_eq!(asked.input, "{\"a\":1}\n\n\u{2014} ada x\n".as_bytes());
        // Nothing is decided without a signature, or without saying what.
        for form in [
            "choice=approve&fingerprint=abc&note=",
            "choice=other&note=x",
            "note=x",
        ] {
            let answer = browser
                .post("/holds/hld_1/decide", &format!("mark={mark}&{form}"))
                .await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{form}");
        }
        assert_eq!(browser.fake.asked(&["hold", "approve"]).len(), 1);
    });
}

#[test]
fn su_08_auditors_change_nothing() {
    run(async {
        let browser = Browser::signed_in("auditor").await;
        let page = browser.get("/holds/hld_1").await;
        assert!(page.text.contains("Only operators decide"));
        assert!(!page.text.contains("id=\"deciding\""));
        let mark = page.mark().to_owned();
        browser.fake.answer(
            "rollback",
            0,
            json!({"changes": [], "changes_reverted": [], "action_id": "act_1"}),
        );
        for address in [
            "/holds/hld_1/decide",
            "/checkpoints/chk_1/rollback",
            "/actions/act_1/undo",
        ] {
            let form = format!("mark={mark}&choice=deny&note=x");
            let answer = browser.post(address, &form).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{address}");
        }
        for words in [["hold", "deny"], ["rollback", "chk_1"], ["undo", "act_1"]] {
            assert!(browser.fake.asked(&words).is_empty(), "{words:?}");
        }
    });
}

#[test]
fn su_08_a_visit_ends_with_its_token_by_itself_and_when_told() {
    run(async {
        let browser = Browser::signed_in("operator").await;
        assert_eq!(browser.get("/").await.status, StatusCode::OK);
        browser.fake.revoke("operator");
        assert_eq!(
            browser.get("/").await.status,
            StatusCode::SEE_OTHER,
            "revoked"
        );

        let browser = Browser::signed_in("operator").await;
        browser.fake.becomes("operator", Role::Agent);
        let answer = browser.get("/").await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "an agent's now");

        let browser = Browser::signed_in("operator").await;
        assert_eq!(browser.get("/").await.status, StatusCode::OK);
        browser.fake.end_visits();
        assert_eq!(browser.get("/").await.status, StatusCode::SEE_OTHER, "over");

        // A page that is open and asks by itself is told from somebody who is there.
        let browser = Browser::signed_in("operator").await;
        browser.get("/").await;
        assert_eq!(browser.fake.asker(), Some(Asker::Person));
        let asked = browser.request("GET", "/").header("accept", "text/html");
        let asked = asked.header("x-safepoint-refresh", "yes");
        let asked = asked.body(axum::body::Body::empty()).unwrap();
        assert_eq!(browser.send(asked).await.status, StatusCode::OK);
        assert_eq!(browser.fake.asker(), Some(Asker::Page));

        let browser = Browser::signed_in("operator").await;
        let mark = browser.get("/").await.mark().to_owned();
        let answer = browser.post("/sign-out", &format!("mark={mark}")).await;
        assert!(answer.header("set-cookie").contains("Max-Age=0"));
        assert_eq!(
            browser.get("/").await.status,
            StatusCode::SEE_OTHER,
            "signed out"
        );
    });
}

#[test]
fn su_08_cookies_hold_to_https_where_there_is_one() {
    run(async {
        let mut browser = Browser::new(Transport::Tls);
        let page = browser.sign_in("operator").await;
        let cookie = page.header("set-cookie");
        assert!(cookie.starts_with("__Host-safepoint="), "{cookie}");
        assert!(
            cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"),
            "{cookie}"
        );
        assert_eq!(browser.get("/").await.status, StatusCode::OK);
    });
}

#[test]
fn su_08_hostile_values_are_never_markup() {
    run(async {
        let browser = Browser::signed_in("operator").await;
        const HOSTILE: &str =
            "\"><script>alert(1)</script><img src=x onerror=y>\u{202e}\u{1b}[2J\n";
        for words in [
            "hold show",
            "hold list",
            "session list",
            "session show",
            "trail list",
            "trail show",
            "trail prove",
            "list",
            "show",
            "diff",
            "du",
            "status",
            "operator list",
        ] {
            browser
                .fake
                .change(words, |document| spoil(document, HOSTILE));
        }
        for page in PAGES {
            let answer = browser.get(page).await;
            if !answer.header("content-type").starts_with("text/html") {
                continue;
            }
            assert!(!answer.text.contains("<script>alert"), "{page}");
            assert!(!answer.text.contains("<img src=x"), "{page}");
            let seen = seen(&answer.text);
            assert!(!seen.contains(['\u{202e}', '\u{1b}']), "{page}: {seen}");
            assert_eq!(answer.text.matches("<script").count(), 1, "{page}");
        }
        let page = browser.get("/holds/hld_1").await;
        assert!(
            page.text.contains("&lt;script&gt;"),
            "what is hostile is shown, not hidden"
        );
    });
}

#[test]
fn su_08_the_inbox_counts_all_and_leads_to_the_rest() {
    run(async {
        let browser = Browser::signed_in("operator").await;
        browser.fake.change("hold list", |document| {
            document["total"] = json!(318);
            document["next"] = json!("hld_100");
            document["holds"][0]["waits_for"] = json!("hld_first");
        });
        let page = browser.get("/").await;
        let shown = seen(&page.text);
        assert!(shown.contains("318 actions wait"), "{shown}");
        assert!(shown.contains("317 more"), "{shown}");
        assert!(page.text.contains("href=\"/?after=hld_100\""), "{shown}");
        assert!(shown.contains("not yet"), "{shown}");
        assert!(page.text.contains("href=\"/holds/hld_first\""), "{shown}");
        browser.get("/?after=hld_100").await;
        let asked = browser.fake.asked(&["hold", "list"]);
        let after = |it: &safepoint_server::commands::Command| {
            it.words.contains(&"--after=hld_100".to_owned())
        };
        assert!(asked.iter().any(after), "{asked:?}");
    });
}

#[test]
fn su_08_what_cannot_be_decided_yet_leads_to_what_is_decided_first() {
    run(async {
        let browser = Browser::signed_in("operator").await;
        browser.fake.change("hold show", |document| {
            document["waits_for"] = json!("hld_first");
        });
        let page = browser.get("/holds/hld_1").await;
        assert!(!page.text.contains("id=\"deciding\""), "{}", page.text);
        assert!(
            page.text.contains("href=\"/holds/hld_first\""),
            "{}",
            page.text
        );
    });
}

/// What people see of a page: what is between its tags, and what is shown where one points.
fn seen(page: &str) -> String {
    let mut seen = String::new();
    for piece in page.split('<') {
        let (tag, text) = piece.split_once('>').unwrap_or(("", piece));
        seen.push_str(text);
        if let Some((_, title)) = tag.split_once(" title=\"") {
            seen.push_str(title.split('"').next().unwrap_or_default());
        }
    }
    seen
}

/// Puts a text into every text of a document that is not what the page looks for.
fn spoil(value: &mut Value, hostile: &str) {
    match value {
        Value::String(text) if !matches!(text.as_str(), "pending") => text.push_str(hostile),
        Value::Array(values) => values.iter_mut().for_each(|it| spoil(it, hostile)),
        Value::Object(fields) => {
            for (_, value) in fields.iter_mut() {
                spoil(value, hostile);
            }
        }
        _ => {}
    }
}

#[test]
fn su_08_values_become_no_flags_and_no_files() {
    run(async {
        let browser = Browser::signed_in("operator").await;
        for id in ["--all", "-C", "..%2f..%2fetc", "a%20b", "%00", "%E2%80%AE"] {
            for page in [
                format!("/holds/{id}"),
                format!("/checkpoints/{id}"),
                format!("/trail/entry/{id}"),
            ] {
                let answer = browser.get(&page).await;
                assert_eq!(answer.status, StatusCode::NOT_FOUND, "{page}");
            }
        }
        browser
            .get("/trail?kind=--follow&actor=%40file&since=-1")
            .await;
        let asked = browser.fake.asked(&["trail", "list"]);
        let words = &asked.last().unwrap().words;
        assert_eq!(
            words[2..],
            [
                "--last=50",
                "--kind=--follow",
                "--actor=@file",
                "--since=-1"
            ]
        );
        // Only a directory that the store itself has named is worked in.
        browser.get("/rules?in=%2Fetc").await;
        let known = browser.fake.asked(&["atlas", "show"]);
        assert!(
            known
                .iter()
                .all(|it| it.directory.as_deref() != Some("/etc".as_ref()))
        );
        assert!(!known.is_empty());
    });
}

#[test]
fn su_08_a_roll_back_is_the_plan_that_was_seen() {
    run(async {
        let browser = Browser::signed_in("operator").await;
        let plan = |path: &str| json!({"dry_run": true, "changes": [{"path": path, "change": "modified"}], "kept": [], "diff": ""});
        browser.fake.answer("rollback --dry-run", 0, plan("a.txt"));
        let done = json!({"changes_reverted": [], "action_id": "act_1", "safety_checkpoint_id": null, "warnings": []});
        browser.fake.answer("rollback", 0, done);
        let page = browser.get("/checkpoints/chk_1/rollback").await;
        let (_, rest) = page.text.split_once(r#"name="plan" value=""#).unwrap();
        let form = format!(
            "mark={}&plan={}",
            page.mark(),
            rest.split_once('"').unwrap().0
        );
        browser.fake.answer("rollback --dry-run", 0, plan("b.txt"));
        let answer = browser.post("/checkpoints/chk_1/rollback", &form).await;
        assert_eq!(answer.status, StatusCode::CONFLICT);
        assert!(
            answer.text.contains("has changed since you looked") && answer.text.contains("b.txt")
        );
        assert!(
            browser.fake.asked(&["rollback", "chk_1"]).is_empty(),
            "it was carried out"
        );
        browser.fake.answer("rollback --dry-run", 0, plan("a.txt"));
        let answer = browser.post("/checkpoints/chk_1/rollback", &form).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        assert_eq!(browser.fake.asked(&["rollback", "chk_1"]).len(), 1);
    });
}

#[test]
fn su_08_what_does_not_hold_is_said_and_nothing_breaks() {
    run(async {
        let browser = Browser::signed_in("operator").await;
        browser.fake.answer("trail verify", 1, json!({"valid": false, "first_bad": {"seq": 7, "id": "ent_7", "reason": "the hash is wrong"}}));
        let page = browser.get("/trail/verify").await;
        assert!(
            page.text.contains("The trail does not hold")
                && page.text.contains("the hash is wrong")
        );
        browser.fake.answer(
            "hold list",
            5,
            json!({"error": {"message": "the store is <gone>", "suggestion": "wait"}}),
        );
        let page = browser.get("/").await;
        assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(
            page.text.contains("The store is &lt;gone&gt;"),
            "{}",
            page.text
        );
        browser
            .fake
            .answer("session list", 0, json!({"sessions": "no list"}));
        assert_eq!(
            browser.get("/sessions").await.status,
            StatusCode::SERVICE_UNAVAILABLE
        );
        browser.fake.answer(
            "hold show",
            8,
            json!({"error": {"message": "there is no hold `x`"}}),
        );
        assert_eq!(
            browser.get("/holds/hld_x").await.status,
            StatusCode::NOT_FOUND
        );
    });
}

#[test]
fn su_08_open_pages_are_told_and_go_on_where_they_were() {
    run(async {
        let browser = Browser::signed_in("operator").await;
        let head = |size: u64| json!({"size": size, "root": "", "note": "", "key": ""});
        browser.fake.answer("trail head", 0, head(7));
        let heard = browser.listen(None, "\n\n").await;
        assert!(heard.contains("event: moved\nid: 7\ndata: 7"), "{heard}");
        // One that has seen all of it hears only what is new.
        let news = async {
            while browser.fake.asked(&["trail", "head"]).len() < 2 {
                tokio::task::yield_now().await;
            }
            browser.fake.answer("trail head", 0, head(8));
        };
        let (heard, ()) = tokio::join!(browser.listen(Some("7"), "\n\n"), news);
        assert!(
            heard.contains("id: 8") && !heard.contains("id: 7"),
            "{heard}"
        );
        // One who missed something hears of it at once.
        let heard = browser.listen(Some("5"), "\n\n").await;
        assert!(heard.contains("id: 8"), "{heard}");
        // One whose token is revoked meanwhile hears nothing more.
        let fake = std::sync::Arc::clone(&browser.fake);
        let asked = fake.asked(&["trail", "head"]).len();
        let revoked = async {
            while fake.asked(&["trail", "head"]).len() <= asked {
                tokio::task::yield_now().await;
            }
            fake.revoke("operator");
            fake.answer("trail head", 0, head(9));
        };
        let (heard, ()) = tokio::join!(browser.listen(Some("8"), "\n\n"), revoked);
        assert!(
            heard.contains("event: ended") && !heard.contains("id: 9"),
            "{heard}"
        );
    });
}

#[test]
fn su_08_the_page_goes_beside_an_api() {
    run(async {
        let mut browser = Browser::signed_in("operator").await;
        let health = axum::routing::get(|| async { "well" });
        browser.beside(axum::Router::new().route("/healthz", health));
        assert_eq!(browser.get("/healthz").await.text, "well");
        assert_eq!(browser.get("/sessions").await.status, StatusCode::OK);
        assert_eq!(browser.get("/other").await.text, "nothing");
    });
}

#[test]
fn su_08_workspaces_are_drawn_as_a_graph() {
    run(async {
        let browser = Browser::signed_in("operator").await;
        let page = browser.get("/workspaces").await;
        assert!(
            page.text.contains("No workspaces yet"),
            "a program without them"
        );
        let workspace = |id: &str, parent: Option<&str>, state: &str| {
            json!({
                "workspace_id": id, "run": "wsp_a", "parent": parent, "role": "builder", "directive": "build it",
                "state": state, "former": null, "created": "2026-11-16T03:00:00Z", "length": 1, "head": "rec_1",
                "status": "final", "confidence": "high"
            })
        };
        let record = json!({
            "id": "rec_1", "workspace": "wsp_b", "type": "artifact", "intent": "the parser", "parent": null,
            "payload": {"files_changed": ["a"], "content": "", "artifacts": []}, "status": "final",
            "confidence": "high", "timestamp": "2026-11-16T03:10:00Z"
        });
        let (root, child) = (
            workspace("wsp_a", None, "active"),
            workspace("wsp_b", Some("wsp_a"), "closed"),
        );
        browser
            .fake
            .answer("workspace list", 0, json!({"workspaces": [root, child]}));
        browser.fake.answer("workspace log", 0, json!({
            "workspace_id": "wsp_a", "checkpoints": [],
            "workspaces": [{"workspace": root, "checkpoints": []}, {"workspace": child, "checkpoints": [record]}]
        }));
        let page = browser.get("/workspaces/wsp_a").await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.text);
        for part in [
            "<svg",
            "class=\"branch\"",
            "record final sure-high",
            "integrated",
            "the parser",
            "high confidence",
        ] {
            assert!(page.text.contains(part), "{part}: {}", page.text);
        }
    });
}
