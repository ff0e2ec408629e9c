//! The canonical form: what changes its fingerprint, what does not, and what is not read.

#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use safepoint_authority::{
    Canonical, CanonicalError, DenialCode, Identity, Input, NamedPath, Preimage, Reversibility,
    Risk, SideEffect, changed,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use support::{digest, form, words};

/// The bytes of [`form`], written by hand: RFC 8785 sorts keys and leaves out white space.
fn by_hand() -> String {
    let hex = |of: &str| -> String {
        let bytes = Sha256::digest(of.as_bytes());
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    [
        r#"{"actions":["file.delete"],"argv":["rm","-r","build"],"#.to_owned(),
        format!(r#""atlases":[{{"atlas_id":"tests","digest":"{}","version":"1.0.0"}}],"#, hex("atlas")),
        r#""directory":{"identity":{"device":2049,"inode":77},"path":"/srv/site"},"#.to_owned(),
        r#""environment":{"PATH":"/usr/bin"},"hosts":["example.org"],"input":{"none":{}},"#.to_owned(),
        format!(
            r#""paths":[{{"inside":true,"path":"/srv/site/build","preimage":{{"file":{{"device":2049,"digest":"{}","inode":78,"mode":420}}}},"role":"delete"}}],"#,
            hex("build")
        ),
        format!(r#""policy_version":"{}","provider":"acme","remainder":["nothing much"],"#, hex("policy")),
        r#""reversibility":"reversible","risk":"medium","schema":1,"session_id":"ses_0000000000000001","#.to_owned(),
        format!(
            r#""side_effects":["write"],"tool":{{"executable":{{"digest":"{}","path":"/usr/bin/rm"}},"name":"exec"}},"#,
            hex("rm")
        ),
        r#""workspace":{"path":"/srv/site"}}"#.to_owned(),
    ]
    .concat()
}

/// Length-framed by hand: the tag, the version as eight bytes, the text.
fn frame(text: &str) -> String {
    let mut hasher = Sha256::new();
    for part in [
        b"safepoint/action".as_slice(),
        &1_u64.to_be_bytes(),
        text.as_bytes(),
    ] {
        hasher.update((part.len() as u32).to_be_bytes());
        hasher.update(part);
    }
    let bytes = hasher.finalize();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn au_02_the_fingerprint_a_second_way() {
    let form = form();
    assert_eq!(String::from_utf8(form.bytes().unwrap()).unwrap(), by_hand());
    let fingerprint = form.fingerprint().unwrap().to_string();
    assert_eq!(fingerprint, frame(&by_hand()));
}

/// If this changes, every approval that waits is void: raise the version.
#[test]
fn au_02_the_fingerprint_is_fixed() {
    let fingerprint = form().fingerprint().unwrap().to_string();
    assert_eq!(
        fingerprint,
        "c83a388560e6e04aee30a9c1b3c3584214a3786ddd913ab0ffc8973c0ac004a9"
    );
}

#[test]
fn au_02_order_and_white_space_do_not_change_it() {
    fn turned(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields = fields.iter().rev();
                Value::Object(
                    fields
                        .map(|(key, value)| (key.clone(), turned(value)))
                        .collect(),
                )
            }
            Value::Array(all) => Value::Array(all.iter().map(turned).collect()),
            other => other.clone(),
        }
    }
    let form = form();
    let value = serde_json::to_value(&form).unwrap();
    let other = serde_json::to_string_pretty(&turned(&value)).unwrap();
    assert_ne!(other.as_bytes(), form.bytes().unwrap());
    let read = Canonical::read(other.as_bytes()).unwrap();
    assert_eq!(read.fingerprint().unwrap(), form.fingerprint().unwrap());
    assert_eq!(read, form);
}

/// Every leaf of a value, by its path.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                leaves(value, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(all) if !all.is_empty() => {
            for (place, value) in all.iter().enumerate() {
                leaves(value, &format!("{path}/{place}"), found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

/// Something else of the same kind, which the form can still be read with.
fn another(path: &str, value: &Value) -> Option<Value> {
    Some(match value {
        Value::Bool(it) => json!(!it),
        Value::Number(it) => json!(it.as_u64().unwrap() + 1),
        Value::String(it) => match path {
            "/reversibility" => json!("irreversible"),
            "/risk" => json!("critical"),
            "/side_effects/0" => json!("network"),
            "/session_id" => json!("ses_0000000000000002"),
            _ if it.len() == 64 => json!(digest(it).to_string()),
            _ => json!(format!("{it}x")),
        },
        _ => return None,
    })
}

#[test]
fn au_02_every_field_changes_it() {
    let form = form();
    let value = serde_json::to_value(&form).unwrap();
    let before = form.fingerprint().unwrap();
    let mut paths = Vec::new();
    leaves(&value, "", &mut paths);
    assert!(paths.len() > 28, "{paths:?}");
    let mut seen = vec![before];
    for path in paths.iter().filter(|path| *path != "/schema") {
        let mut other = value.clone();
        let leaf = other.pointer_mut(path).unwrap();
        let Some(new) = another(path, leaf) else {
            assert_eq!(path, "/input/none", "nothing else has no leaf");
            continue;
        };
        *leaf = new;
        let read = Canonical::read(other.to_string().as_bytes()).unwrap();
        let fingerprint = read.fingerprint().unwrap();
        assert!(!seen.contains(&fingerprint), "{path} does not count");
        assert!(changed(&form, &read).is_some(), "{path} is not noticed");
        seen.push(fingerprint);
    }
    // What has no leaf in this form: absent things, and more of what there is.
    let more: [fn(&mut Canonical); 9] = [
        |it| it.tool.executable = None,
        |it| it.provider = None,
        |it| it.argv.push(String::new()),
        |it| it.argv[1..].concat().clone_into(&mut it.argv[1]),
        |it| it.input = Input::Inherited {},
        |it| {
            it.input = Input::Bytes {
                digest: digest(""),
                length: 0,
            }
        },
        |it| it.environment = [("PATH=/usr/bin".to_owned(), String::new())].into(),
        |it| it.paths[0].preimage = Preimage::Absent {},
        |it| it.paths[0].preimage = Preimage::Unknown {},
    ];
    for change in more {
        let mut other = form.clone();
        change(&mut other);
        let fingerprint = other.fingerprint().unwrap();
        assert!(!seen.contains(&fingerprint), "{other:?}");
        seen.push(fingerprint);
    }
}

#[test]
fn au_02_what_two_readers_could_see_differently_is_refused() {
    let good = by_hand();
    assert!(Canonical::read(good.as_bytes()).is_ok());
    let wrong = [
        ("a name twice", good.replacen('{', r#"{"schema":1,"#, 1)),
        (
            "a name twice, within",
            good.replace(r#""inode":77"#, r#""inode":77,"inode":78"#),
        ),
        ("an unknown name", good.replacen('{', r#"{"extra":1,"#, 1)),
        (
            "an unknown name, within",
            good.replace(r#""inode":77"#, r#""inode":77,"x":1"#),
        ),
        (
            "an unknown name, in a variant",
            good.replace(r#"{"none":{}}"#, r#"{"none":{"x":1}}"#),
        ),
        (
            "a number past 2^53",
            good.replace(r#""inode":77"#, r#""inode":9007199254740993"#),
        ),
        (
            "a broken number",
            good.replace(r#""inode":77"#, r#""inode":77.5"#),
        ),
        ("half a pair", good.replace("build\"]", "\\ud800\"]")),
        ("a missing name", good.replace(r#""risk":"medium","#, "")),
        ("another word", good.replace("\"medium\"", "\"some\"")),
        ("something after it", format!("{good} {good}")),
        ("nothing", String::new()),
    ];
    for (what, text) in wrong {
        assert_ne!(text, good, "{what}: the test itself is wrong");
        assert!(Canonical::read(text.as_bytes()).is_err(), "{what}");
    }
    let newer = good.replace(r#""schema":1"#, r#""schema":2"#);
    let refused = Canonical::read(newer.as_bytes());
    assert!(matches!(refused, Err(CanonicalError::Version(2))));
    let mut bytes = good.into_bytes();
    bytes[30] = 0xff;
    assert!(Canonical::read(&bytes).is_err(), "not UTF-8");
}

#[test]
fn au_02_a_number_that_others_would_round_has_no_form() {
    let mut odd = form();
    odd.directory.identity.inode = (1 << 53) + 1;
    assert!(odd.fingerprint().is_err());
    odd.directory.identity.inode = (1 << 53) - 1;
    assert!(odd.fingerprint().is_ok());
}

#[test]
fn au_25_each_difference_has_its_code() {
    use DenialCode::{
        DirectoryChanged, EnvironmentChanged, ExecutableChanged, FingerprintMismatch, InputChanged,
        LineageMismatch, PathIdentityChanged, PolicyChanged, TargetChanged,
    };
    type Change = fn(&mut Canonical);
    let file = |inode: u64, of: &str| Preimage::File {
        device: 2049,
        inode,
        mode: 0o644,
        digest: digest(of),
    };
    assert_eq!(file(78, "build"), form().paths[0].preimage);
    let cases: [(Change, DenialCode); 24] = [
        (|it| it.policy_version = digest("x"), PolicyChanged),
        (|it| it.atlases.clear(), PolicyChanged),
        (
            |it| it.session_id = "ses_0000000000000009".parse().unwrap(),
            LineageMismatch,
        ),
        (
            |it| it.workspace.path = "/srv/other".to_owned(),
            LineageMismatch,
        ),
        (|it| it.tool.executable = None, ExecutableChanged),
        (
            |it| it.tool.executable.as_mut().unwrap().digest = digest("x"),
            ExecutableChanged,
        ),
        (
            |it| {
                it.directory.identity = Identity {
                    device: 1,
                    inode: 1,
                }
            },
            DirectoryChanged,
        ),
        (|it| it.directory.path = "/srv".to_owned(), DirectoryChanged),
        (
            |it| {
                it.environment.insert("X".to_owned(), String::new());
            },
            EnvironmentChanged,
        ),
        (|it| it.input = Input::Inherited {}, InputChanged),
        (
            |it| {
                it.paths[0].preimage = Preimage::File {
                    device: 2049,
                    inode: 78,
                    mode: 0o644,
                    digest: digest("x"),
                }
            },
            TargetChanged,
        ),
        (
            |it| {
                it.paths[0].preimage = Preimage::File {
                    device: 2049,
                    inode: 78,
                    mode: 0o755,
                    digest: digest("build"),
                }
            },
            TargetChanged,
        ),
        (
            |it| {
                it.paths[0].preimage = Preimage::File {
                    device: 2049,
                    inode: 79,
                    mode: 0o644,
                    digest: digest("build"),
                }
            },
            TargetChanged,
        ),
        (
            |it| it.paths[0].preimage = Preimage::Absent {},
            PathIdentityChanged,
        ),
        (
            |it| {
                it.paths[0].preimage = Preimage::Link {
                    target: "x".to_owned(),
                    digest: None,
                }
            },
            PathIdentityChanged,
        ),
        (
            |it| {
                it.paths[0].preimage = Preimage::Directory {
                    device: 1,
                    inode: 1,
                    listing: None,
                }
            },
            PathIdentityChanged,
        ),
        (
            |it| {
                it.paths[0].preimage = Preimage::Special {
                    device: 1,
                    inode: 1,
                }
            },
            PathIdentityChanged,
        ),
        (
            |it| it.paths[0].path = "/srv/elsewhere".to_owned(),
            PathIdentityChanged,
        ),
        (
            |it| it.paths[0].role = "write".to_owned(),
            PathIdentityChanged,
        ),
        (|it| it.paths.clear(), PathIdentityChanged),
        (|it| it.argv.push("more".to_owned()), FingerprintMismatch),
        (
            |it| it.hosts = words(&["evil.example"]),
            FingerprintMismatch,
        ),
        (|it| it.risk = Risk::Critical, FingerprintMismatch),
        (
            |it| it.reversibility = Reversibility::Irreversible,
            FingerprintMismatch,
        ),
    ];
    let approved = form();
    assert_eq!(changed(&approved, &approved), None);
    for (place, (change, code)) in cases.into_iter().enumerate() {
        let mut now = approved.clone();
        change(&mut now);
        assert_eq!(changed(&approved, &now), Some(code), "case {place}");
    }
    let mut now = approved.clone();
    now.side_effects.insert(SideEffect::Secret);
    assert_eq!(changed(&approved, &now), Some(FingerprintMismatch));
}

#[test]
fn au_25_a_link_that_leads_elsewhere_is_another_place() {
    let with = |preimage: Preimage| {
        let mut it = form();
        it.paths = vec![NamedPath {
            preimage,
            ..form().paths[0].clone()
        }];
        it
    };
    let link = |target: &str, of: &str| {
        with(Preimage::Link {
            target: target.to_owned(),
            digest: Some(digest(of)),
        })
    };
    let approved = link("a", "one");
    assert_eq!(
        changed(&approved, &link("b", "one")),
        Some(DenialCode::PathIdentityChanged)
    );
    assert_eq!(
        changed(&approved, &link("a", "two")),
        Some(DenialCode::TargetChanged)
    );
}

#[test]
fn au_24_a_wish_is_the_same_whatever_the_world_looks_like() {
    let wish = form().wish();
    let mut same = form();
    same.paths.clear();
    same.environment.clear();
    same.policy_version = digest("x");
    assert_eq!(same.wish(), wish);
    let other: [fn(&mut Canonical); 5] = [
        |it| it.argv = vec!["rm".to_owned(), "-rbuild".to_owned()],
        |it| it.argv.push(String::new()),
        |it| it.workspace.path.push('x'),
        |it| it.tool.name = "mutate".to_owned(),
        |it| it.directory.path = "/srv".to_owned(),
    ];
    for change in other {
        let mut it = form();
        change(&mut it);
        assert_ne!(it.wish(), wish);
    }
}

/// What somebody pastes runs as what was shown: every word in its place.
#[test]
fn au_12_the_summary_is_one_line_of_words() {
    let mut it = form();
    it.argv = ["printf", "it's", "", "a b", "$(x)"]
        .map(str::to_owned)
        .into();
    assert_eq!(it.summary(), r"printf 'it'\''s' '' 'a b' '$(x)'");
}
