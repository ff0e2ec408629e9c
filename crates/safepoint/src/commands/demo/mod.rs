//! `safepoint try`: a sample agent under control, in a project that is thrown away.
//!
//! Everything happens for real, in a temporary directory: nothing of the
//! user's is read or written.

mod passage;

use std::path::Path;
use std::sync::Arc;

use safepoint_model::Exit;
use safepoint_store::durable::{self, Access};
use safepoint_store::{Blobs, Location, Options, Store};
use safepoint_trail::proof::{self, Proven};
use safepoint_trail::{LostStore, Query, Surroundings, Trail, TrailError};

use crate::console::{BAD, FAINT, GOOD, HINT, STRONG, WARNING};
use crate::context::Context;
use crate::error::CliError;
use crate::world::{SystemClock, SystemEntropy};
use passage::Sample;

pub(crate) fn run(context: &mut Context) -> Result<Exit, CliError> {
    let room = tempfile::tempdir()?;
    let mut show = Show { context, step: 0 };
    let trail = open(room.path())?;
    let Some(told) = Sample::open(room.path(), &trail)?.show(&mut show)? else {
        show.bad("the sample agent was not judged as it should be")?;
        return Ok(Exit::Failed);
    };

    show.step("The approved action has one id, from proposal to outcome")?;
    let query = Query {
        action: Some(told.approved.to_string()),
        ..Query::default()
    };
    let mut entries = Vec::new();
    trail.entries(&query, |entry| -> Result<_, TrailError> {
        entries.push(entry);
        Ok(safepoint_store::Flow::More)
    })?;
    let kinds = ["DocumentState", "PolicyApplied"];
    for entry in entries
        .iter()
        .filter(|it| !kinds.contains(&it.kind.as_str()))
    {
        let (kind, actor) = (entry.kind.as_str(), &entry.actor);
        show.note(&format!("{:>4}  {kind:<20} {actor}", entry.seq))?;
    }

    show.step("Every entry is chained, hashed into one tree, and signed for")?;
    let verified = trail.verify(|_| {})?;
    show.good(&format!("{} entries verify", verified.checked))?;
    show.quote(trail.head()?.note())?;

    show.step("The decision is proved to a stranger, who needs only the proof and the public key")?;
    let decision = entries
        .iter()
        .find(|it| it.kind.as_str() == "approval_decision");
    let mut proven = false;
    if let Some(entry) = decision {
        let text = trail.prove(entry)?;
        if let Proven::Inclusion { entry, head } = proof::check(&text, trail.key())? {
            show.good(&format!(
                "entry {} `{}` is in the trail of {}",
                entry.seq,
                entry.kind,
                head.size()
            ))?;
            proven = true;
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

    show.hint(
        "in a project of your own: safepoint operator add NAME, then safepoint run -- AGENT",
    )?;
    let right = told.right && proven && verified.first_bad.is_none() && caught;
    Ok(match right {
        true => Exit::Done,
        false => Exit::Failed,
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

/// Changes the file as anybody with an editor could, and tells in how many places.
fn tamper(path: &Path) -> Result<usize, CliError> {
    let file = |error| CliError::File {
        action: "read",
        path: path.to_owned(),
        error,
    };
    let mut bytes = std::fs::read(path).map_err(file)?;
    let (before, after) = (
        br#""code":"CONTROL_FORBIDDEN""#,
        br#""code":"CONTROL_PERMITTED""#,
    );
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

    fn stopped(&mut self, text: &str) -> Result<(), CliError> {
        self.line(&format!("   {WARNING}held{WARNING:#}  {text}"))
    }

    fn hint(&mut self, text: &str) -> Result<(), CliError> {
        self.line(&format!("\n{HINT}next{HINT:#}  {text}"))
    }
}
