//! Runs of agents and evidence over HTTP, from the first request to the last.

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
use std::path::Path;

use http::{Server, token};
use passage::{add, bare, held};
use serde_json::{Value, json};

const TAXONOMY: &str = "id: example.reviews
version: '2'
protocol_version: '0.1'
roles:
  - name: reviewer
    extends: worker
    override: {checkpoint_types: [review]}
checkpoint_types:
  - name: review
    permitted_roles: [reviewer]
    required_fields: [verdict]
";

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value:#}"))
}

#[test]
fn pr_03_a_taxonomy_over_http_is_text_and_never_a_file() {
    let env = bare();
    env.write("project/taxonomy.yaml", TAXONOMY);
    add(&env, "ann");
    let ann = token(&env, "ann", &["--role", "operator"]);
    let server = Server::start(&env, &[]);
    let create = |taxonomy: &str| {
        let body = json!({"role": "coordinator", "directive": "lead", "taxonomy": taxonomy});
        server.post("/v1/workspaces", &ann, &body)
    };
    for file in ["taxonomy.yaml", "@taxonomy.yaml", "-", ""] {
        let refused = create(file).problem(422);
        assert!(
            !refused["document"]["problems"]
                .as_array()
                .unwrap()
                .is_empty()
        );
    }
    let wrong = create(&TAXONOMY.replace("extends: worker", "extends: coordinator")).problem(422);
    assert_eq!(wrong["document"]["problems"][0]["line"], 6, "{wrong:#}");
    let as_json = json!({"id": "example.json", "version": "1", "protocol_version": "0.1",
        "roles": [{"name": "reviewer", "extends": "worker"}]});
    for good in [TAXONOMY.to_owned(), as_json.to_string()] {
        let lead = create(&good).done()["workspace_id"].clone();
        let below = |role: &str| {
            let body = json!({"parent": lead, "role": role, "directive": "look"});
            server.post("/v1/workspaces", &ann, &body)
        };
        below("reviewer").done();
        below("stranger").problem(404);
    }
    // Nothing was made by what was refused.
    let listed = server.get("/v1/workspaces", &ann).done();
    assert_eq!(listed["workspaces"].as_array().unwrap().len(), 4);
}

#[test]
fn pr_07_work_apart_is_made_recorded_and_taken_over_over_http() {
    let env = bare();
    env.write("project/notes.txt", "one\ntwo\n");
    add(&env, "ann");
    let ann = token(&env, "ann", &["--role", "operator"]);
    let agent = token(&env, "agent", &["--role", "agent"]);
    let server = Server::start(&env, &[]);
    let create = |body: Value| server.post("/v1/workspaces", &ann, &body).done();
    let lead = create(json!({"role": "coordinator", "directive": "lead"}));
    let made = create(json!({"role": "worker", "parent": lead["workspace_id"],
        "directive": "work", "isolated": true}));
    let directory = Path::new(text(&made["path"]));
    fs::write(directory.join("notes.txt"), "ONE\ntwo\n").unwrap();
    let at = |what: &str| format!("/v1/workspaces/{}{what}", text(&made["workspace_id"]));
    let body = json!({"type": "artifact", "intent": "deliver", "parent": null, "status": "final",
        "confidence": "high", "payload": {"content": "done", "artifacts": []}});
    let given = json!({"token": made["token"], "body": body});
    let record = server.post(&at("/checkpoint"), &agent, &given).done();
    assert_eq!(
        record["checkpoint"]["payload"]["files_changed"],
        json!(["notes.txt"])
    );
    let said = json!({"token": made["token"], "type": "complete"});
    server.post(&at("/signal"), &agent, &said).done();
    // Whoever works does not take over.
    server
        .post(&at("/integrate"), &agent, &json!({}))
        .problem(403);
    let notes = || fs::read_to_string(env.project().join("notes.txt")).unwrap();
    assert_eq!(notes(), "one\ntwo\n");
    let done = server.post(&at("/integrate"), &ann, &json!({})).done();
    assert_eq!(done["integration"]["result"], "success", "{done:#}");
    assert_eq!(notes(), "ONE\ntwo\n");
    let undone = json!({"action_id": done["action_id"]});
    server.post("/v1/undo", &ann, &undone).done();
    assert_eq!(notes(), "one\ntwo\n");
}

#[test]
fn tr_07_a_bundle_comes_over_http_and_holds_elsewhere() {
    let env = held();
    passage::runs(&env, &["cat", "a"]);
    let session = env.json(&["session", "list"])["sessions"][0]["session_id"].clone();
    let session = text(&session).to_owned();
    let key = text(&env.json(&["trail", "head"])["key"]).to_owned();
    let reads = token(&env, "reads", &["--role", "auditor"]);
    let agent = token(&env, "agent", &["--role", "agent"]);
    let server = Server::start(&env, &[]);
    let path = format!("/v1/trail/bundles/{session}");
    server.get(&path, &agent).problem(403);
    server
        .get("/v1/trail/bundles/ses_none", &reads)
        .problem(404);
    let reply = server.get(&path, &reads);
    let bundle = reply.done();
    assert_eq!(bundle["session"], session.as_str());
    // Somebody who has nothing but the key.
    let stranger = bare();
    let check = ["trail", "check-bundle", "-", "--key", &key, "--json"];
    let checked = stranger.run_with(&check, reply.body.as_bytes());
    assert_eq!(checked.code, 0, "{checked:?}");
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(checked["session"], session.as_str());
    assert!(checked["entries"].as_u64() > Some(3), "{checked:#}");
    let forged = reply.body.replacen("cat", "cut", 1);
    let refused = stranger.run_with(&check, forged.as_bytes());
    assert_eq!(refused.code, 1, "{refused:?}");
}
