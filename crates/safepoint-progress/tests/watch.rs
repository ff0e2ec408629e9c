//! Finding workspaces, and what was delivered since: one story, on both databases.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use safepoint_progress::signal::{Signal, SignalType};
use safepoint_progress::taxonomy::Taxonomy;
use safepoint_progress::{Beginning, Created, Given, Progress, ProgressError};
use safepoint_trail::Actor;
use testkit::{Room, Seeded, on_every_store};

fn open(room: &Room, seed: u64) -> Progress {
    Progress::open(
        room.trail(),
        room.clock.clone(),
        Arc::new(Seeded::new(seed)),
    )
    .unwrap()
}

fn make(progress: &Progress, parent: Option<&Created>) -> Created {
    let ada: Actor = "user:ada".parse().unwrap();
    let taxonomy = Taxonomy::empty();
    let beginning = match parent {
        None => Beginning::Root(&taxonomy),
        Some(parent) => Beginning::Below(&parent.workspace_id, "worker".parse().unwrap()),
    };
    let given = Given {
        directive: Some("work"),
        ..Given::default()
    };
    progress.create(&beginning, &given, &ada).unwrap()
}

fn say(progress: &Progress, who: &Created, kind: SignalType) {
    progress
        .emit(&who.workspace_id, &who.token, kind, Some("why"), None)
        .unwrap();
}

fn words(signals: &[Signal]) -> Vec<&str> {
    signals.iter().map(|signal| signal.kind.as_str()).collect()
}

on_every_store! {
    fn pr_04_whoever_listens_goes_on_where_they_were(room: Room) {
        let progress = open(&room, 1);
        let root = make(&progress, None);
        let (one, other) = (make(&progress, Some(&root)), make(&progress, Some(&root)));
        assert_eq!(progress.delivered_after(None, None).unwrap(), []);
        say(&progress, &one, SignalType::Ready);
        say(&progress, &other, SignalType::Blocked);
        let first = progress.delivered_after(None, Some(&root.workspace_id)).unwrap();
        assert_eq!(words(&first), ["ready", "blocked"]);
        let seen = first.last().unwrap().delivered_at;
        assert_eq!(progress.delivered_after(seen, None).unwrap(), []);
        say(&progress, &other, SignalType::Started);
        let then = progress.delivered_after(seen, None).unwrap();
        assert_eq!(words(&then), ["started"]);
        // To the parent only, and not to whoever said it.
        assert_eq!(progress.delivered_after(None, Some(&other.workspace_id)).unwrap(), []);
    }

    fn pr_42_the_beginning_of_an_id_is_enough(room: Room) {
        let progress = open(&room, 2);
        let root = make(&progress, None);
        let id = &root.workspace_id;
        assert_eq!(&progress.find(id.as_str()).unwrap(), id);
        assert_eq!(&progress.find("wsp_").unwrap(), id);
        make(&progress, Some(&root));
        assert!(matches!(progress.find("wsp_"), Err(ProgressError::Ambiguous { .. })));
        for strange in ["", "ses_", "wsp_zzzzzzzzzzzzzzzz", "w%", "wsp_\u{7f}"] {
            assert!(matches!(progress.find(strange), Err(ProgressError::NotFound { .. })), "{strange}");
        }
    }
}
