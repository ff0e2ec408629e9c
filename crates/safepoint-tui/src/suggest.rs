//! A suggestion for an envelope: what one action needs, and no more than its directories.
//!
//! It is only ever offered. The operator sees it in full before it goes anywhere.

use std::collections::BTreeSet;
use std::path::Path;

use safepoint_authority::{Canonical, Envelope, EnvelopeError, NamedPath, Preimage};
use safepoint_model::Timestamp;

/// How often a suggested envelope may be used.
const USES: u32 = 20;

/// How long a suggested envelope lasts: an hour.
const LASTS: i64 = 3_600_000_000;

/// The envelope that an action suggests: its actions, the directories it changes, its
/// effects and machines, for twenty uses and one hour.
pub fn suggest(action: &Canonical, now: Timestamp) -> Result<Envelope, EnvelopeError> {
    // Merely reading needs no leave, and what is not known cannot be bounded.
    let changed = action
        .paths
        .iter()
        .filter(|named| named.role != "read" && named.preimage != Preimage::Unknown {});
    let wanted: BTreeSet<String> = changed.map(place).collect();
    let below = |path: &String| {
        let other = |known: &&String| *known != path && Path::new(path).starts_with(known);
        wanted.iter().any(|known| other(&known))
    };
    let paths = wanted.iter().filter(|path| !below(path)).cloned().collect();
    let envelope = Envelope {
        actions: action.actions.clone(),
        paths,
        side_effects: action.side_effects.clone(),
        hosts: action.hosts.clone(),
        uses: Some(USES),
        expires_at: Some(now.saturating_add_micros(LASTS)),
    };
    envelope.check()?;
    Ok(envelope)
}

/// The directory of a path in the workspace. Outside it nothing but the path itself: next
/// to it lie things that nobody asked about.
fn place(named: &NamedPath) -> String {
    let itself = || named.path.clone();
    if !named.inside || matches!(named.preimage, Preimage::Directory { .. }) {
        return itself();
    }
    match Path::new(&named.path).parent().and_then(Path::to_str) {
        Some(parent) if parent != "/" && !parent.is_empty() => parent.to_owned(),
        _ => itself(),
    }
}
