//! Taxonomies, good and bad.

use super::*;

const GOOD: &str = "\
id: reviews
version: 1.2
protocol_version: 0.1
roles:
  - name: reviewer
    extends: worker
    add:
      - action: read
        target: assigned_workspace
      - send: report
    remove:
      - create: artifact
    override:
      checkpoint_types: [review]
  - name: senior_worker
    extends: worker
    add:
      - create: decision
      - create: audit
  - name: auditor
    extends: observer
envelope_types:
  - name: report
    permissions:
      - {sender_role: reviewer, receiver_role: coordinator}
checkpoint_types:
  - name: review
    permitted_roles: [reviewer]
    required_fields: [verdict]
  - name: decision
    permitted_roles: [senior_worker, worker]
  - name: audit
    permitted_roles: [auditor]
";

fn permits(taxonomy: &Taxonomy, role: &str, kind: &str) -> Result<(), Reason> {
    let payload = Payload {
        more: [("verdict".to_owned(), serde_json::json!("good"))].into(),
        ..Payload::default()
    };
    let role = role.parse().unwrap();
    taxonomy
        .permits(&role, kind, &payload)
        .map_err(|rejection| rejection.reason)
}

#[test]
fn pr_02_base_roles_create_their_own_type_and_nothing_else() {
    let empty = Taxonomy::empty();
    for role in ["coordinator", "worker", "observer", "stranger"] {
        for kind in ["artifact", "observation"] {
            let expected = matches!(
                (role, kind),
                ("worker", "artifact") | ("observer", "observation")
            );
            let found = permits(&empty, role, kind);
            assert_eq!(found.is_ok(), expected, "{role} {kind}");
            assert!(expected || found == Err(Reason::PermissionDenied));
        }
    }
}

#[test]
fn pr_02_derived_roles_come_from_the_taxonomy_alone() {
    let taxonomy = Taxonomy::read(GOOD).unwrap();
    let allowed = [
        ("worker", "artifact"),
        ("worker", "decision"),
        ("observer", "observation"),
        ("reviewer", "review"),
        ("senior_worker", "artifact"),
        ("senior_worker", "decision"),
        ("auditor", "observation"),
        ("auditor", "audit"),
    ];
    for role in [
        "coordinator",
        "worker",
        "observer",
        "reviewer",
        "senior_worker",
        "auditor",
    ] {
        for kind in ["artifact", "observation", "review", "decision", "audit"] {
            let expected = allowed.contains(&(role, kind));
            assert_eq!(
                permits(&taxonomy, role, kind).is_ok(),
                expected,
                "{role} {kind}"
            );
        }
    }
}

#[test]
fn pr_12_type_comes_before_permission_and_fields_are_structure() {
    let taxonomy = Taxonomy::read(GOOD).unwrap();
    assert_eq!(
        permits(&taxonomy, "coordinator", "essay"),
        Err(Reason::InvalidType)
    );
    assert_eq!(
        permits(&Taxonomy::empty(), "worker", "review"),
        Err(Reason::InvalidType)
    );
    let bare = Payload::default();
    let refused = taxonomy.permits(&"worker".parse().unwrap(), "review", &bare);
    let refused = refused.unwrap_err();
    assert_eq!(refused.reason, Reason::InvalidStructure);
    assert!(refused.detail.contains("payload.verdict"), "{refused}");
}

#[test]
fn pr_03_json_reads_as_yaml_does() {
    let document = Taxonomy::read(GOOD).unwrap().document().clone();
    let text = serde_json::to_string_pretty(&document).unwrap();
    let again = Taxonomy::read(&text).unwrap();
    assert_eq!(
        serde_json::to_string_pretty(again.document()).unwrap(),
        text
    );
    assert_eq!(
        (
            document.version.as_str(),
            document.protocol_version.as_str()
        ),
        ("1.2", "0.1")
    );
}

#[test]
fn pr_03_every_mistake_is_told_with_its_place() {
    // What is written instead, what is said, and in which line.
    let cases = [
        ("name: auditor", "name: worker", "base name", 20),
        ("name: auditor", "name: reviewer", "twice", 20),
        (
            "extends: observer",
            "extends: reviewer",
            "itself derived",
            21,
        ),
        (
            "extends: observer",
            "extends: coordinator",
            "no role extends the coordinator",
            21,
        ),
        ("extends: observer", "extends: pilot", "no role `pilot`", 21),
        (
            "create: artifact",
            "create: essay",
            "no checkpoint type `essay`",
            12,
        ),
        (
            "checkpoint_types: [review]",
            "checkpoint_types: [essay]",
            "no checkpoint type",
            14,
        ),
        ("[reviewer]", "[]", "no role may create", 28),
        ("[auditor]", "[pilot]", "no role `pilot`", 33),
        ("[auditor]", "[coordinator]", "creates no checkpoints", 33),
        ("name: audit\n", "name: artifact\n", "base name", 32),
        ("name: audit\n", "name: review\n", "twice", 32),
        (
            "sender_role: reviewer",
            "sender_role: pilot",
            "no role `pilot`",
            25,
        ),
        (
            "protocol_version: 0.1",
            "protocol_version: 9",
            "only `0.1` is known",
            3,
        ),
        ("roles:\n", "signal_types: []\nroles:\n", "closed set", 4),
        (
            "create: artifact",
            "create_workspace: all",
            "is no action",
            12,
        ),
        ("required_fields:", "needed_fields:", "needed_fields", 29),
        ("name: auditor", "name: Auditor", "is not a name", 20),
    ];
    for (good, bad, message, line) in cases {
        assert!(GOOD.contains(good), "{good}");
        let problems = Taxonomy::read(&GOOD.replacen(good, bad, 1)).unwrap_err();
        let told = problems.iter().any(|problem| {
            problem.message.contains(message)
                && problem.line == Some(line)
                && problem.column.is_some()
        });
        assert!(told, "{bad}: {problems:?}");
    }
}

#[test]
fn pr_03_all_mistakes_are_listed_and_nothing_is_loaded() {
    let text = GOOD
        .replace("extends: observer", "extends: pilot")
        .replace("[auditor]", "[]");
    assert_eq!(Taxonomy::read(&text).unwrap_err().len(), 2);
    for text in ["", "[]", "id: x", "id: x\nid: y"] {
        assert!(Taxonomy::read(text).is_err(), "{text:?}");
    }
}

#[test]
fn pr_03_every_mistake_is_listed_also_where_the_shape_is_wrong() {
    let text = "id: x\nversion: 1\nprotocol_version: \"9\"\nextra: 1\nroles:\n  - name: Bad Name\n    extends: worker\n  - name: good\n    extends: nobody\n    colour: red\n    shade: dark\n  - [list, worker]\ncheckpoint_types:\n  - name: review\n    permitted_roles: [good, missing]\n";
    let problems = Taxonomy::read(text).unwrap_err();
    let told: Vec<(Option<usize>, &str)> = problems
        .iter()
        .map(|problem| (problem.line, problem.message.as_str()))
        .collect();
    let lines: Vec<usize> = told.iter().filter_map(|(line, _)| *line).collect();
    assert_eq!(lines, [3, 4, 6, 9, 10, 11, 12, 15], "{told:#?}");
    assert!(
        told.iter()
            .any(|(_, message)| message.contains("`Bad Name`"))
    );
    assert!(
        told.iter()
            .any(|(_, message)| message.contains("no role `missing`"))
    );
    assert!(
        told.iter()
            .any(|(_, message)| message.contains("an object with named fields"))
    );
}
