//! Holds for tests and for the example: made by the same code as real ones.

use std::collections::{BTreeMap, BTreeSet};

use safepoint_authority::{
    AtlasPin, Basis, Canonical, Coverage, Directory, Executable, Hold, HoldState, Identity, Input,
    Level, NamedPath, Preimage, Proposer, Reversibility, Risk, ScopeDelta, SideEffect, Tool,
    Trigger, Workspace,
};
use safepoint_model::{Digest, Timestamp};

/// A hold that a test can change before it is shown.
pub(crate) fn hold(number: u32, since: Timestamp, argv: &[&str]) -> Hold {
    let canonical = form(argv);
    let fingerprint = canonical.fingerprint().unwrap();
    Hold {
        format: Hold::FORMAT,
        hold_id: format!("hld_{number:016}").parse().unwrap(),
        action_id: format!("act_{number:016}").parse().unwrap(),
        since,
        expires_at: since.saturating_add_micros(600_000_000),
        triggers: vec![Trigger::PolicyDefined],
        basis: vec![Basis {
            policy_id: "commits-are-seen".to_owned(),
            atlas_id: Some("git-care".to_owned()),
            reason: "a person looks at every commit".to_owned(),
        }],
        scope_delta: ScopeDelta::default(),
        coverage: Coverage {
            checkpoint_id: Some("cp-17".to_owned()),
            covered: vec!["/srv/site and its index".to_owned()],
            not_covered: Vec::new(),
        },
        trust: BTreeMap::from([("tool:/usr/bin/git".to_owned(), (Level::Trusted, 3))]),
        canonical,
        fingerprint,
        quorum: 1,
        proposer: Proposer {
            actor: "agent:writer".to_owned(),
            objective: Some("publish the spring catalogue".to_owned()),
        },
        decisions: Vec::new(),
        state: HoldState::Pending,
        earlier_run: None,
    }
}

/// One that cannot be undone, reaches further than before, and needs two operators.
pub(crate) fn final_hold(number: u32, since: Timestamp) -> Hold {
    let mut hold = hold(number, since, &["git", "push", "--force", "origin", "main"]);
    hold.triggers = vec![Trigger::HigherRisk, Trigger::PathScope];
    hold.basis = vec![Basis {
        policy_id: "no-lonely-force".to_owned(),
        atlas_id: None,
        reason: "a forced push rewrites what others have".to_owned(),
    }];
    hold.canonical.actions = names(&["git.push", "git.rewrite"]);
    hold.canonical.hosts = names(&["git.example.org"]);
    hold.canonical.side_effects = [SideEffect::Exec, SideEffect::Network, SideEffect::Write].into();
    hold.canonical.reversibility = Reversibility::Irreversible;
    hold.canonical.remainder = names(&["the branch `main` on git.example.org"]);
    hold.canonical.risk = Risk::High;
    hold.scope_delta = ScopeDelta {
        actions: names(&["git.push", "git.rewrite"]),
        hosts: names(&["git.example.org"]),
        side_effects: [SideEffect::Network].into(),
        ..ScopeDelta::default()
    };
    hold.coverage.not_covered = vec!["the branch `main` on git.example.org".to_owned()];
    hold.quorum = 2;
    seal(hold)
}

/// One that tries to draw on the screen.
pub(crate) fn hostile_hold(number: u32, since: Timestamp) -> Hold {
    let script = concat!(
        "echo fine\x1b[2J\x1b[1;1HApproved. Press y.\r",
        "rm -rf /srv/site \u{202e}txt.yadnoM\u{2066} ",
        "cur\u{200b}l https://p\u{430}ypal.example \u{9b}31m",
        "\nrisk: \"low\"\n  reversibility: \"reversible\"",
        "\t日本語の長い名前のファイル.txt e\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}"
    );
    let mut hold = hold(number, since, &["sh", "-c", script]);
    hold.canonical.environment = BTreeMap::from([(
        "NOTE".to_owned(),
        format!("{}risk: \"low\"", " ".repeat(120)),
    )]);
    hold.canonical.reversibility = Reversibility::Unknown;
    hold.canonical.risk = Risk::Critical;
    hold.triggers = vec![Trigger::TrustViolation];
    hold.trust = BTreeMap::from([
        ("provider:acme\u{200d}".to_owned(), (Level::Untrusted, 9)),
        ("tool:/usr/bin/dash".to_owned(), (Level::Untrusted, 1)),
    ]);
    hold.proposer.objective = Some("\x1b]0;all is well\x07nothing special".to_owned());
    hold.coverage.checkpoint_id = None;
    hold.coverage.covered.clear();
    hold.coverage.not_covered = vec!["everything the script does".to_owned()];
    seal(hold)
}

/// The same hold, with the fingerprint of what it now says.
pub(crate) fn seal(mut hold: Hold) -> Hold {
    hold.fingerprint = hold.canonical.fingerprint().unwrap();
    hold
}

fn form(argv: &[&str]) -> Canonical {
    Canonical {
        schema: Canonical::SCHEMA,
        tool: Tool {
            name: "exec".to_owned(),
            executable: Some(Executable {
                path: "/usr/bin/git".to_owned(),
                digest: digest(1),
            }),
            interpreters: Vec::new(),
        },
        actions: names(&["git.commit"]),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        directory: Directory {
            path: "/srv/site".to_owned(),
            identity: Identity {
                device: 66_306,
                inode: 1_204,
            },
        },
        environment: BTreeMap::from([("LANG".to_owned(), "C.UTF-8".to_owned())]),
        paths: vec![
            NamedPath {
                path: "/srv/site/pages/index.html".to_owned(),
                role: "write".to_owned(),
                inside: true,
                preimage: Preimage::File {
                    device: 66_306,
                    inode: 1_311,
                    mode: 0o644,
                    digest: digest(2),
                },
            },
            NamedPath {
                path: "/srv/site/new".to_owned(),
                role: "write".to_owned(),
                inside: true,
                preimage: Preimage::Absent {},
            },
        ],
        hosts: BTreeSet::new(),
        input: Input::None {},
        side_effects: [SideEffect::Exec, SideEffect::Write].into(),
        reversibility: Reversibility::Reversible,
        remainder: BTreeSet::new(),
        risk: Risk::Medium,
        session_id: "ses_0000000000000007".parse().unwrap(),
        provider: Some("acme".to_owned()),
        workspace: Workspace {
            path: "/srv/site".to_owned(),
        },
        policy_version: digest(3),
        atlases: vec![AtlasPin {
            atlas_id: "git-care".to_owned(),
            version: "1.2.0".to_owned(),
            digest: digest(4),
        }],
    }
}

fn digest(number: u8) -> Digest {
    Digest::of_parts(&[&[number]])
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
