//! `safepoint try`: a sample agent under control, in a project that is thrown away.
//!
//! Everything happens for real, in a temporary directory: nothing of the
//! user's is read or written.

use std::path::Path;
use std::sync::Arc;

use safepoint_model::{ActionId, Entropy, Exit};
use safepoint_store::durable::{self, Access};
use safepoint_store::{Blobs, Durability, Location, Options, Store};
use safepoint_trail::proof::{self, Proven};
use safepoint_trail::{Draft, LostStore, Query, Surroundings, Trail, TrailError};
use serde_json::json;

use crate::console::{BAD, FAINT, GOOD, HINT, STRONG};
use crate::context::Context;
use crate::error::CliError;
use crate::world::{SystemClock, SystemEntropy};

mod way_back;

pub(crate) fn run(context: &mut Context) -> Result<Exit, CliError> {
    let room = tempfile::tempdir()?;
    let mut show = Show { context, step: 0 };
    let undone = way_back::show(&mut show, room.path())?;

    let trail = open(room.path())?;
    show.step("Every step of every action is recorded, the denials too")?;
    let deletion = record_session(&trail)?;
    show.entries(&trail)?;
    show.note("the token the agent used is not in the trail: a keyed digest stands in its place")?;

    show.step("Every entry is chained, hashed into one tree, and signed for")?;
    let verified = trail.verify(|_| {})?;
    show.good(&format!("{} entries verify", verified.checked))?;
    show.quote(trail.head()?.note())?;

    show.step("One entry is proved to a stranger, who needs only the proof and the public key")?;
    let mut proofs = Vec::new();
    let query = Query {
        action: Some(deletion.to_string()),
        ..Query::default()
    };
    trail.entries(&query, |entry| -> Result<_, TrailError> {
        proofs.push(trail.prove(&entry)?);
        Ok(safepoint_store::Flow::More)
    })?;
    for text in &proofs {
        let proven = proof::check(text, trail.key())?;
        if let Proven::Inclusion { entry, head } = proven {
            show.good(&format!(
                "entry {} `{}` is in the trail of {}",
                entry.seq,
                entry.kind,
                head.size()
            ))?;
        }
    }

    show.step("Somebody edits the database behind our back: the denial becomes a permission")?;
    drop(trail); // so that all of it is in the one file
    let edits = tamper(&room.path().join("store.db"))?;
    let found = open(room.path())?.verify(|_| {})?;
    let caught = match &found.first_bad {
        Some(bad) if edits > 0 => {
            show.bad(&format!("entry {}: {}", bad.seq, bad.reason))?;
            true
        }
        _ => false,
    };

    show.hint("in a project of your own: safepoint checkpoint, safepoint log, safepoint undo")?;
    Ok(if undone && verified.first_bad.is_none() && caught {
        Exit::Done
    } else {
        Exit::Failed
    })
}

fn open(room: &Path) -> Result<Trail, CliError> {
    let location = Location::Sqlite(room.join("store.db"));
    let store = Arc::new(Store::open(&location, Options::default())?);
    let around = Surroundings {
        keys: room.join("keys"),
        witnesses: room.join("witness"),
        blobs: Blobs::new(room.join("blobs")),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        lost_store: LostStore::Refuse,
    };
    Ok(Trail::open(store, &around)?)
}

/// What a small session of an agent leaves in the trail. Returns the action that was denied.
fn record_session(trail: &Trail) -> Result<ActionId, CliError> {
    let entropy: &dyn Entropy = &SystemEntropy;
    let action = || ActionId::generate(entropy).map_err(TrailError::from);
    let (write, deletion) = (action()?, action()?);
    let steps = [
        (
            &write,
            "agent:sample",
            "proposed",
            json!({"action": "file.write", "path": "src/main.rs",
                   "command": "curl -H 'Authorization: Bearer 9f86d081884c7d659a2feaa0c55ad015'"}),
        ),
        (&write, "safepoint", "judged", json!({"decision": "allow"})),
        (
            &write,
            "safepoint",
            "done",
            json!({"outcome": "ok", "changed": ["src/main.rs"]}),
        ),
        (
            &deletion,
            "agent:sample",
            "proposed",
            json!({"action": "file.delete", "path": "src"}),
        ),
        (
            &deletion,
            "safepoint",
            "judged",
            json!({"decision": "deny", "reason": "deletions are approved by a person"}),
        ),
    ];
    for (action_id, actor, kind, body) in steps {
        let name = |error: safepoint_trail::NameError| CliError::Usage(error.to_string());
        let draft = Draft {
            stream: "ses_sample".parse().map_err(name)?,
            actor: actor.parse().map_err(name)?,
            kind: kind.parse().map_err(name)?,
            action_id: Some(action_id.clone()),
            body,
        };
        trail.append(draft, Durability::Sync)?;
    }
    Ok(deletion)
}

/// Changes the file as anybody with an editor could, and tells in how many places.
fn tamper(path: &Path) -> Result<usize, CliError> {
    let file = |error| CliError::File {
        action: "read",
        path: path.to_owned(),
        error,
    };
    let mut bytes = std::fs::read(path).map_err(file)?;
    let (before, after) = (br#""decision":"deny""#, br#""decision":"okay""#);
    let places: Vec<usize> = bytes
        .windows(before.len())
        .enumerate()
        .filter(|(_, window)| window == before)
        .map(|(place, _)| place)
        .collect();
    for place in &places {
        if let Some(target) = bytes.get_mut(*place..place + after.len()) {
            target.copy_from_slice(after);
        }
    }
    durable::write(path, &bytes, Access::Private)?;
    Ok(places.len())
}

/// Prints the story, step by step.
struct Show<'a> {
    context: &'a mut Context,
    step: usize,
}

impl Show<'_> {
    fn line(&mut self, text: &str) -> Result<(), CliError> {
        self.context.console.print(&format!("{text}\n"))
    }

    fn step(&mut self, title: &str) -> Result<(), CliError> {
        self.step += 1;
        let number = self.step;
        self.line(&format!("\n{STRONG}{number}. {title}{STRONG:#}"))
    }

    fn entries(&mut self, trail: &Trail) -> Result<(), CliError> {
        let width = self.context.console.width().min(120);
        trail.entries(&Query::default(), |entry| -> Result<_, CliError> {
            let line = super::trail::line(&entry, width);
            self.context.console.print(&line)?;
            Ok(safepoint_store::Flow::More)
        })
    }

    fn note(&mut self, text: &str) -> Result<(), CliError> {
        self.line(&format!("   {FAINT}{text}{FAINT:#}"))
    }

    fn quote(&mut self, text: &str) -> Result<(), CliError> {
        for line in text.lines() {
            self.note(line)?;
        }
        Ok(())
    }

    fn good(&mut self, text: &str) -> Result<(), CliError> {
        self.line(&format!("   {GOOD}good{GOOD:#}  {text}"))
    }

    fn bad(&mut self, text: &str) -> Result<(), CliError> {
        self.line(&format!("   {BAD}caught{BAD:#}  {text}"))
    }

    fn hint(&mut self, text: &str) -> Result<(), CliError> {
        self.line(&format!("\n{HINT}next{HINT:#}  {text}"))
    }
}
