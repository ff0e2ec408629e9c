//! The API over HTTP, driven by raw requests to a real server: who may do what.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/http.rs"]
mod http;
#[path = "support/passage.rs"]
mod passage;

use std::fs;

use http::{Server, event, follow, token};
use passage::{ASKS, REFUNDS, add, approve, bare, denied, held, hold_of, project, runs};
use serde_json::{Value, json};
use testkit::TestEnv;

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value:#}"))
}

/// What somebody signs by a command, from what it reads on standard input.
#[track_caller]
fn sign(env: &TestEnv, arguments: &[&str], input: &Value) -> Value {
    let run = env.run_with(
        &[arguments, &["--json"]].concat(),
        input.to_string().as_bytes(),
    );
    assert_eq!(run.code, 0, "{run:?}");
    let signed: Value = serde_json::from_str(&run.stdout).unwrap();
    signed["signature"].clone()
}

#[test]
fn su_07_every_endpoint_lets_in_its_roles_and_nobody_else() {
    let env = project(ASKS);
    let tokens = [
        ("agent", token(&env, "a", &["--role", "agent"])),
        (
            "operator",
            token(&env, "o", &["--role", "operator", "--operator", "ann"]),
        ),
        ("steward", token(&env, "s", &["--role", "steward"])),
        ("auditor", token(&env, "r", &["--role", "auditor"])),
    ];
    let server = Server::start(&env, &["--rate", "10000"]);
    let described = server.get("/v1/openapi.json", &tokens[0].1).done();
    let committed = fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json"),
    )
    .unwrap();
    let committed: Value = serde_json::from_str(&committed).unwrap();
    assert!(described == committed, "docs/openapi.json is stale");
    let (mut let_in, mut refused) = (0, 0);
    for (path, methods) in described["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let method = method.to_ascii_uppercase();
            let place = path
                .replace("{session_id}", "ses_x")
                .replace("{hold_id}", "hld_x")
                .replace("{action_id}", "act_x")
                .replace("{permit_id}", "prm_x")
                .replace("{checkpoint_id}", "chk_x")
                .replace("{entry}", "0")
                .replace("{workspace_id}", "wsp_x")
                .replace("{task_id}", "tsk_x")
                .replace("{session}", "ses_x")
                .replace("{name}", "nobody");
            assert!(!place.contains('{'), "{path}");
            let Some(roles) = operation["x-roles"].as_array() else {
                assert!(["/healthz", "/readyz"].contains(&path.as_str()), "{path}");
                assert_eq!(server.ask(&method, &place, "", &[], None).status, 200);
                continue;
            };
            let nobody = server.ask(&method, &place, "", &[], None);
            nobody.problem(401);
            assert_eq!(nobody.header("www-authenticate"), Some("Bearer"));
            for (role, token) in &tokens {
                if path == "/v1/events" && roles.contains(&json!(role)) {
                    continue; // it has no end; another test follows it
                }
                let reply = server.ask(&method, &place, token, &[], None);
                let of_role = reply.body.contains("the token's role does not allow this");
                if roles.contains(&json!(role)) {
                    assert!(!of_role && reply.status != 401, "{role} {path} {reply:?}");
                    assert!(reply.status < 500, "{role} {path} {reply:?}");
                    let_in += 1;
                } else {
                    assert!(of_role, "{role} {method} {path} {reply:?}");
                    reply.problem(403);
                    refused += 1;
                }
            }
        }
    }
    assert!(let_in > 50 && refused > 60, "{let_in} {refused}");
}

#[test]
fn su_07_an_agent_works_in_sessions_of_its_own_alone() {
    let env = project(ASKS);
    let mine = token(&env, "mine", &["--role", "agent"]);
    let other = token(&env, "other", &["--role", "agent"]);
    let auditor = token(&env, "reads", &["--role", "auditor"]);
    let operator = token(&env, "ann", &["--role", "operator"]);
    let server = Server::start(&env, &[]);
    let started = server.post("/v1/sessions", &mine, &json!({"goal": "--json"}));
    let id = text(&started.done()["session_id"]).to_owned();
    let at = |step: &str| format!("/v1/sessions/{id}{step}");
    let wish = json!({"action": "ticket.delete", "parameters": {"id": 1}});
    let asked = server.post(&at("/request"), &mine, &wish);
    let problem = asked.problem(403);
    assert_eq!(problem["code"], "F502", "{problem:#}");
    let question = &problem["document"]["resolution"]["questions"][0];
    assert_eq!(question["question_id"], "agree");
    let answer = json!({"checkpoint_id": "sure", "answers": {"agree": true}});
    server.post(&at("/answer"), &other, &answer).problem(404);
    server.post(&at("/answer"), &mine, &answer).done();
    // What is read may be anything; it is never a file.
    let input = json!({"text": "@/etc/hostname"});
    server.post(&at("/input"), &mine, &input).done();
    let allowed = server.post(&at("/request"), &mine, &wish).done();
    let report = json!({"request_id": allowed["request_id"], "outcome": "ok"});
    server.post(&at("/report"), &other, &report).problem(404);
    server.post(&at("/report"), &mine, &report).done();
    // Others do not even see that it is there.
    for path in [at(""), format!("/v1/sessions/{}", &id[..8])] {
        server.get(&path, &other).problem(404);
        for token in [&mine, &auditor, &operator] {
            assert_eq!(server.get(&path, token).done()["session_id"], id);
        }
    }
    let listed = |token: &str| server.get("/v1/sessions", token).done()["sessions"].clone();
    assert_eq!(listed(&other), json!([]));
    assert_eq!(listed(&mine)[0]["principal"], "token:mine");
    assert_eq!(listed(&auditor).as_array().unwrap().len(), 1);
    // A local agent that calls itself so is not it.
    let mut command = env.command(&["session", "start", "--json"]);
    command.env("SAFEPOINT_AGENT", "mine");
    assert!(command.output().unwrap().status.success());
    assert_eq!(listed(&mine).as_array().unwrap().len(), 1);
    server.post(&at("/end"), &other, &json!({})).problem(404);
    server.post(&at("/end"), &mine, &json!({})).done();
    let trail = env.run(&["trail", "list", "--json", "--session", &id]);
    assert!(trail.stdout.contains("token:mine"), "{}", trail.stdout);
    assert!(!trail.stdout.contains(&mine) && !trail.stdout.contains("spt_"));
}

#[test]
fn su_07_an_operator_decides_with_a_signature_of_their_own_key() {
    let env = held();
    add(&env, "bea");
    let ann = token(&env, "ann", &["--role", "operator"]);
    let bea = token(&env, "bea", &["--role", "operator"]);
    let agent = token(&env, "agent", &["--role", "agent"]);
    let words = ["sh", "-c", "echo x > b"];
    let denial = denied(&env, &words, "APPROVAL_REQUIRED");
    let id = text(&denial["hold_id"]).to_owned();
    // A server that has every key in its data directory, and a name to sign for.
    let mut env = env;
    env.set("SAFEPOINT_OPERATOR", "ann");
    let server = Server::start(&env, &[]);
    let path = format!("/v1/holds/{id}/approve");
    let listed = server.get("/v1/holds", &ann).done();
    assert_eq!(listed["holds"][0]["hold_id"], id);
    let hold = server.get(&format!("/v1/holds/{id}"), &ann).done();
    let fingerprint = text(&hold["fingerprint"]).to_owned();
    let approve = |token: &str, signature: &Value| {
        let body = json!({"fingerprint": fingerprint, "signature": signature});
        server.post(&path, token, &body)
    };
    let unsigned = json!({ "fingerprint": fingerprint });
    server.post(&path, &ann, &unsigned).problem(422);
    approve(&ann, &json!("nothing")).problem(403);
    let signed = |who: &str, more: &[&str], shown: &Value| {
        let words = ["hold", "sign", "-", "--operator", who, "--fingerprint"];
        sign(
            &env,
            &[&words[..], &[fingerprint.as_str()], more].concat(),
            shown,
        )
    };
    // A server that shows one thing and means another gets no signature.
    let mut lie = hold.clone();
    lie["canonical_form"]["argv"] = json!(["true"]);
    let words_of = ["hold", "sign", "-", "--operator", "ann", "--fingerprint"];
    let refused = env.run_with(
        &[&words_of[..], &[&fingerprint, "--json"]].concat(),
        lie.to_string().as_bytes(),
    );
    assert_eq!(refused.code, 7, "{refused:?}");
    let by_ann = signed("ann", &[], &hold);
    let by_bea = signed("bea", &[], &hold);
    // Another's signature, a no for a yes, a changed one, an agent.
    approve(&ann, &by_bea).problem(403);
    approve(&bea, &by_ann).problem(403);
    approve(&ann, &signed("ann", &["--choice", "deny"], &hold)).problem(403);
    let changed = text(&by_ann).replace("\"reason\":null", "\"reason\":\"x\"");
    approve(&ann, &json!(changed)).problem(403);
    approve(&agent, &by_ann).problem(403);
    let decided = approve(&ann, &by_ann).done();
    assert_eq!(decided["operator"], "ann");
    assert_eq!(decided["state"], "approved");
    approve(&ann, &by_ann).problem(409);
    runs(&env, &words);
    // The trail has the note, and says who it was.
    let trail = env.json(&["trail", "list", "--kind", "approval_decision"]);
    assert_eq!(trail["entries"][0]["actor"], "operator:ann");
    assert_eq!(trail["entries"][0]["body"]["decision"], by_ann);
}

#[test]
fn su_07_an_operators_word_counts_once() {
    let env = held();
    let ann = token(&env, "ann", &["--role", "operator"]);
    let server = Server::start(&env, &[]);
    let word = |says: &str| {
        sign(
            &env,
            &["operator", "sign", says, "--operator", "ann"],
            &json!(0),
        )
    };
    let grant = |signature: &Value| {
        let body = json!({"boundary": "path:/srv/site", "signature": signature});
        server.post("/v1/trust/grant", &ann, &body)
    };
    grant(&word("trust path:/srv/other trusted")).problem(403);
    let said = word("trust path:/srv/site trusted");
    assert_eq!(grant(&said).done()["level"], "trusted");
    let revoke =
        json!({"boundary": "path:/srv/site", "signature": word("trust path:/srv/site untrusted")});
    server.post("/v1/trust/revoke", &ann, &revoke).done();
    // Everybody who reads the trail has the old word.
    let again = grant(&said).problem(403);
    assert_eq!(again["code"], "I605", "{again:#}");
    let unsigned = json!({"boundary": "path:/srv/site"});
    server.post("/v1/trust/grant", &ann, &unsigned).problem(422);
    // Somebody else may decide, by a word; their key is made elsewhere.
    let elsewhere = bare();
    let cid = elsewhere.json(&["operator", "add", "cid"]);
    let key = text(&cid["key"]);
    let body =
        json!({"name": "cid", "key": key, "signature": word(&format!("operator add cid {key}"))});
    server.post("/v1/operators", &ann, &body).done();
    let token = token(&env, "cid", &["--role", "operator"]);
    assert_eq!(server.get("/v1/holds", &token).status, 200);
    let body = json!({"signature": word("operator remove cid")});
    server.post("/v1/operators/cid/remove", &ann, &body).done();
    // Who is no operator has no token of one.
    server.get("/v1/holds", &token).problem(401);
}

#[test]
fn su_07_what_an_agent_writes_into_its_project_runs_nothing_and_shows_nothing() {
    let env = project(ASKS);
    let script = env.write("project/site/run.sh", "#!/bin/sh\ntouch ran\necho state\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, mode).unwrap();
    env.write("project/other/secret.txt", "topsecret: true\n");
    let place = script.display();
    let settings = format!("state_providers: {{it: {{capture: '{place}', restore: '{place}'}}}}\n");
    env.write("project/site/safepoint.yaml", &settings);
    let ann = token(&env, "ann", &["--role", "operator"]);
    let scope = ["--role", "agent", "--scope", "workspace:site"];
    let agent = token(&env, "agent", &scope);
    let server = Server::start(&env, &["--root", "."]);
    // Whoever asks: nothing that the project names is run.
    let with_state = json!({"workspace": "site", "state": {"it": "v1"}});
    for asks in [&agent, &ann] {
        let made = server.post("/v1/checkpoints", asks, &with_state).done();
        let id = text(&made["checkpoint_id"]);
        server.get(&format!("/v1/checkpoints/{id}/diff?workspace=site"), &ann);
    }
    assert!(!env.project().join("site/ran").exists());
    // A file elsewhere is not read, by whichever way it is named.
    let begin = || server.post("/v1/sessions", &agent, &json!({"workspace": "site"}));
    let link = env.project().join("site/link.yaml");
    std::os::unix::fs::symlink("../other/secret.txt", &link).unwrap();
    let secret = env.project().join("other/secret.txt").display().to_string();
    for named in ["../other/secret.txt", &secret, "link.yaml"] {
        env.write(
            "project/site/safepoint.yaml",
            &format!("atlases: ['{named}']\n"),
        );
        let refused = begin();
        assert_eq!(refused.status, 422, "{named}: {refused:?}");
        assert!(!format!("{refused:?}").contains("topsecret"), "{refused:?}");
    }
    fs::remove_file(env.project().join("site/safepoint.yaml")).unwrap();
    std::os::unix::fs::symlink(&secret, env.project().join("site/safepoint.yaml")).unwrap();
    let refused = begin();
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(!format!("{refused:?}").contains("topsecret"), "{refused:?}");
    fs::remove_file(env.project().join("site/safepoint.yaml")).unwrap();
    // What is no file is not waited for, and a device is not read.
    env.write("project/site/safepoint.yaml", "atlases: [odd.yaml]\n");
    let odd = env.project().join("site/odd.yaml");
    let pipe = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &odd, pipe, rustix::fs::Mode::RUSR, 0).unwrap();
    assert_ne!(begin().status, 200);
    fs::remove_file(&odd).unwrap();
    let head = env.project().join("site/.git/HEAD");
    fs::create_dir_all(head.parent().unwrap()).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &head, pipe, rustix::fs::Mode::RUSR, 0).unwrap();
    server.post("/v1/checkpoints", &agent, &json!({"workspace": "site"}));
    assert_eq!(server.get("/readyz", "").status, 200);
}

#[test]
fn su_07_no_request_leads_out_of_the_roots() {
    let env = bare();
    env.write("project/one/a.txt", "one\n");
    env.write("outside/b.txt", "two\n");
    std::os::unix::fs::symlink(env.root().join("outside"), env.project().join("link")).unwrap();
    add(&env, "ann");
    let made = env.json(&["checkpoint", "-C", "../outside"]);
    let foreign = text(&made["checkpoint_id"]);
    let ann = token(&env, "ann", &["--role", "operator"]);
    let agent = token(
        &env,
        "agent",
        &["--role", "agent", "--scope", "workspace:one"],
    );
    let stranger = token(&env, "stranger", &["--role", "agent"]);
    let server = Server::start(&env, &["--root", "."]);
    let root = env.root().display().to_string().replace('/', "%2F");
    for bad in [
        "..",
        "..%2Foutside",
        "%2e%2e%2foutside",
        "one%2F..%2F..%2Foutside",
        "link",
        "%2Fetc",
        &format!("{root}%2Foutside"),
        "a%00b",
        "nowhere",
    ] {
        let status = server
            .get(&format!("/v1/checkpoints?workspace={bad}"), &ann)
            .status;
        assert!([404, 422].contains(&status), "{bad}: {status}");
    }
    let body = json!({"workspace": "one", "reason": "here"});
    let made = server.post("/v1/checkpoints", &ann, &body).done();
    let own = text(&made["checkpoint_id"]);
    // The checkpoint of another workspace is not there, whatever is asked of it.
    for (method, path) in [
        ("GET", format!("/v1/checkpoints/{foreign}?workspace=one")),
        (
            "GET",
            format!("/v1/checkpoints/{foreign}/diff?workspace=one"),
        ),
        (
            "GET",
            format!("/v1/checkpoints/{own}/diff?workspace=one&other={foreign}"),
        ),
        (
            "GET",
            format!("/v1/checkpoints/{foreign}/verify?workspace=one"),
        ),
    ] {
        let nothing = server.ask(method, &path, &ann, &[], None);
        nothing.problem(404);
        assert!(!nothing.body.contains("outside"), "{path}: {nothing:?}");
    }
    let roll = json!({"workspace": "one"});
    let path = format!("/v1/checkpoints/{foreign}/rollback");
    server.post(&path, &ann, &roll).problem(404);
    // Nor is anything but paths: no database, no variable, no file of ours.
    for scope in ["sqlite:/etc/x.db", "env:HOME", "postgres://h/d", "state:x"] {
        let body = json!({"workspace": "one", "scope": [scope]});
        server.post("/v1/checkpoints", &ann, &body).problem(422);
    }
    let body = json!({"workspace": "one", "scope": ["../../outside"]});
    let status = server.post("/v1/checkpoints", &ann, &body).status;
    assert!([404, 422].contains(&status), "{status}");
    // An agent has the workspaces that its token names.
    fs::write(env.project().join("one/a.txt"), "changed\n").unwrap();
    let path = format!("/v1/checkpoints/{own}/rollback");
    server.post(&path, &stranger, &roll).problem(404);
    server.get("/v1/checkpoints", &agent).problem(404);
    // What a person changed is not taken back by an agent unasked.
    server.post(&path, &agent, &roll).problem(403);
    server.post(&path, &ann, &roll).done();
    let there = fs::read_to_string(env.project().join("one/a.txt")).unwrap();
    assert_eq!(there, "one\n");
}

#[test]
fn su_07_an_atlas_is_tried_out_as_text() {
    let env = bare();
    let steward = token(&env, "steward", &["--role", "steward"]);
    let server = Server::start(&env, &[]);
    let check = |text: &str| server.post("/v1/atlases/check", &steward, &json!({ "text": text }));
    assert_eq!(check(ASKS).done()["valid"], true);
    let wrong = check("atlas_version: 7\n").problem(422);
    assert_eq!(wrong["document"]["valid"], false, "{wrong:#}");
    check("@/etc/passwd").problem(422);
    let test = |text: &str| server.post("/v1/atlases/test", &steward, &json!({ "text": text }));
    test(ASKS).problem(422);
    let with = |decision: &str| {
        format!(
            "{ASKS}tests:\n  - name: \"asks\"\n    steps:\n      - request: \"ticket.delete\"\n        expect: {{decision: {decision}}}\n"
        )
    };
    assert_eq!(test(&with("hold")).done()["failed"], 0);
    let failed = test(&with("allow")).problem(409);
    assert_eq!(failed["document"]["failed"], 1, "{failed:#}");
}

#[test]
fn pr_04_signals_are_live_over_sse() {
    let env = bare();
    add(&env, "ann");
    let ann = token(&env, "ann", &["--role", "operator"]);
    let agent = token(&env, "agent", &["--role", "agent"]);
    let reads = token(&env, "reads", &["--role", "auditor"]);
    let server = Server::start(&env, &[]);
    let create = |parent: Option<&str>, role: &str| {
        let mut body = json!({"role": role, "directive": "@/etc/hostname"});
        if let Some(parent) = parent {
            body["parent"] = json!(parent);
        }
        let made = server.post("/v1/workspaces", &ann, &body).done();
        (
            text(&made["workspace_id"]).to_owned(),
            text(&made["token"]).to_owned(),
        )
    };
    let (lead, _) = create(None, "coordinator");
    let (worker, secret) = create(Some(&lead), "worker");
    let (other, foreign) = create(None, "coordinator");
    let at = |id: &str, what: &str| format!("/v1/workspaces/{id}{what}");
    let body = json!({"type": "artifact", "intent": "first", "parent": null, "status": "provisional",
        "confidence": "high", "payload": {"files_changed": [], "content": "it", "artifacts": []}});
    let add_record = |token: &str, secret: &str| {
        let given = json!({"token": secret, "body": body});
        server.post(&at(&worker, "/checkpoint"), token, &given)
    };
    let query = format!("?workspace={lead}");
    let mut events = follow(&server, &query, &agent, "");
    let mut all = follow(&server, "", &reads, "");
    // The workspace's own token counts, and an agent's besides.
    add_record(&ann, &secret).problem(403);
    add_record(&agent, &foreign).problem(403);
    add_record(&agent, "").problem(422);
    let unsigned = json!({ "body": body });
    server
        .post(&at(&worker, "/checkpoint"), &agent, &unsigned)
        .problem(422);
    let record = add_record(&agent, &secret).done()["checkpoint"]["id"].clone();
    let said = event(&mut events);
    assert_eq!(
        (text(&said["kind"]), text(&said["stream"])),
        ("signal_emitted", worker.as_str())
    );
    assert_eq!(said["body"]["ref"], record, "{said:#}");
    let told = event(&mut events);
    assert_eq!(
        (text(&told["kind"]), text(&told["stream"])),
        ("signal_delivered", lead.as_str())
    );
    assert_eq!(told["body"]["signal_id"], said["body"]["signal_id"]);
    // Without a workspace, everything.
    assert_ne!(event(&mut all)["kind"], "signal_delivered");
    while event(&mut all)["kind"] != "signal_delivered" {}
    drop(events);
    // What happens while nobody listens is heard by the last event's id, once, and nothing of
    // other runs.
    let stuck = json!({"token": secret, "type": "blocked", "reason": "no network"});
    let state = |id: &str| {
        let body = json!({"state": "suspended", "reason": "for now"});
        server.post(&at(id, "/state"), &ann, &body)
    };
    state(&other).done();
    state(&other);
    server.post(&at(&worker, "/signal"), &agent, &stuck).done();
    let last = format!("Last-Event-ID: {}\r\n", told["seq"]);
    let mut events = follow(&server, &query, &agent, &last);
    let said = event(&mut events);
    assert_eq!(said["body"]["type"], "blocked", "{said:#}");
    assert_eq!(event(&mut events)["kind"], "signal_delivered");
    let listed = server.get(&at(&lead, "/signals"), &agent).done();
    assert_eq!(listed["signals"].as_array().unwrap().len(), 2, "{listed:#}");
    // What coordinates is not for agents.
    server
        .post(&at(&lead, "/state"), &agent, &json!({"state": "failed"}))
        .problem(403);
    server
        .get("/v1/events?workspace=wsp_nowhere", &agent)
        .problem(404);
    server
        .get("/v1/events?workspace=..%2F", &agent)
        .problem(422);
}

#[test]
fn su_08_the_page_is_beside_the_api() {
    let env = bare();
    let server = Server::start(&env, &["--grace", "60s"]);
    let inbox = server.ask("GET", "/", "", &["Accept: text/html"], None);
    assert_eq!(inbox.status, 303, "{inbox:?}");
    assert_eq!(inbox.header("location"), Some("/sign-in?back=%2F"));
    let sign_in = server.get("/sign-in", "");
    assert!(
        sign_in.status == 200 && sign_in.body.contains("<form"),
        "{sign_in:?}"
    );
    let policy = sign_in.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'"), "{policy}");
    // Programs get problems, people get pages.
    for path in ["/v1", "/v1/", "/v1/nothing", "/v1/holds/hld_x/nothing"] {
        server.get(path, "").problem(404);
    }
    // Somebody who is signed in.
    let reads = token(&env, "reads", &["--role", "auditor"]);
    let agent = token(&env, "agent", &["--role", "agent"]);
    let enter = |token: &str| {
        let body = format!("token={token}");
        let head = format!(
            "POST /sign-in HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {1}\r\n\r\n{body}",
            server.address,
            body.len()
        );
        server.raw(head.as_bytes())
    };
    assert!(enter(&agent).header("set-cookie").is_none());
    let entered = enter(&reads);
    let cookie = entered.header("set-cookie").unwrap();
    assert!(
        cookie.contains("SameSite=Strict") && cookie.contains("HttpOnly"),
        "{cookie}"
    );
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let look = |path: &str| server.ask("GET", path, "", &[&cookie], None);
    for path in [
        "/",
        "/sessions",
        "/checkpoints",
        "/workspaces",
        "/trail",
        "/rules",
        "/status",
    ] {
        let page = look(path);
        assert!(
            page.status == 200 && page.body.contains("<main"),
            "{path}: {page:?}"
        );
    }
    let nowhere = look("/nowhere");
    assert!(
        nowhere.status == 404 && nowhere.body.contains("<html"),
        "{nowhere:?}"
    );
    // An open page does not keep the server from ending.
    let mut stream = server.connect();
    let head = format!(
        "GET /live HTTP/1.0\r\nHost: {}\r\n{cookie}\r\n\r\n",
        server.address
    );
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    let mut stream = std::io::BufReader::new(stream);
    assert!(http::line(&mut stream).ends_with(" 200 OK"));
    server.terminate();
    let closed = server.wait_for("closed");
    assert_eq!(closed.last().unwrap()["detail"]["everything_ended"], true);
}

#[test]
fn su_10_a_server_makes_silence_a_denial_while_nobody_asks() {
    let mut env = held();
    env.set("SAFEPOINT_HOLD_TIMEOUT", "1ms");
    let reads = token(&env, "reads", &["--role", "auditor"]);
    let server = Server::start(&env, &[]);
    let mut events = follow(&server, "", &reads, "");
    let hold = hold_of(&env, &["touch", "new"]);
    let silent = std::iter::repeat_with(|| event(&mut events))
        .find(|it| it["kind"] == "action_denied" && it["body"]["code"] == "TIMED_OUT")
        .unwrap();
    assert_eq!(silent["body"]["hold_id"], hold.as_str(), "{silent:#}");
}

#[test]
fn su_10_a_server_says_once_whom_it_cannot_tell() {
    let mut env = held();
    env.set("SAFEPOINT_HOLD_TIMEOUT", "1ms");
    let target = ["--slack", "http://127.0.0.1:9/", "--allow-private"];
    env.json(&[&["notify", "add", "ops"], &target[..]].concat());
    fs::remove_dir_all(env.home().join("data/notify")).unwrap();
    // No command delivers beside the server.
    let lock = fs::File::open(env.write("home/runtime/deliver.lock", "")).unwrap();
    lock.lock().unwrap();
    let reads = token(&env, "reads", &["--role", "auditor"]);
    let server = Server::start(&env, &[]);
    let mut events = follow(&server, "", &reads, "");
    // Whatever is denied for silence is the work of a round; before the last, others have ended.
    for file in ["one", "two", "three"] {
        let hold = hold_of(&env, &["touch", file]);
        std::iter::repeat_with(|| event(&mut events))
            .find(|it| it["kind"] == "action_denied" && it["body"]["code"] == "TIMED_OUT")
            .filter(|it| it["body"]["hold_id"] == hold.as_str())
            .unwrap();
    }
    drop(events);
    server.terminate();
    let (_, log) = server.end();
    let told = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told: Vec<Value> = told.filter(|it| it["event"] == "targets_untold").collect();
    let [untold] = <[Value; 1]>::try_from(told).unwrap();
    let untold = &untold["detail"];
    assert_eq!(untold.as_array().map(Vec::len), Some(1), "{untold}");
    assert_eq!(untold[0]["target"], "ops");
    assert!(text(&untold[0]["reason"]).contains("not on this machine"));
}

#[test]
fn su_07_a_request_that_needs_a_person_makes_a_hold() {
    let env = project(REFUNDS);
    let agent = token(&env, "agent", &["--role", "agent"]);
    let server = Server::start(&env, &[]);
    let session = server.post("/v1/sessions", &agent, &json!({})).done();
    let path = format!("/v1/sessions/{}/request", text(&session["session_id"]));
    let refund = json!({"action": "refund.create", "parameters": {"amount": 7}});
    let problem = server.post(&path, &agent, &refund).problem(403);
    assert_eq!(problem["name"], "APPROVAL_REQUIRED", "{problem:#}");
    let document = &problem["document"];
    let hold = text(&document["resolution"]["hold_id"]).to_owned();
    assert_eq!(document["denial"]["hold_id"], hold.as_str());
    approve(&env, &hold);
    let allowed = server.post(&path, &agent, &refund).done();
    assert_eq!(allowed["resolution"]["decision"], "allow");
    server.post(&path, &agent, &refund).problem(403);
    // Where only a gate's question is open, nobody is said to have to approve anything.
    let delete = json!({"action": "ticket.delete"});
    let problem = server.post(&path, &agent, &delete).problem(403);
    assert_eq!(problem["title"], "a gate's questions wait for answers");
    assert_eq!(problem["document"]["denial"]["code"], "QUESTIONS_PENDING");
}
