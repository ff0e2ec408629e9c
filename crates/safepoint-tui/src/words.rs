//! The words for what a hold is. They repeat what the control plane says, and add nothing.

use safepoint_authority::{HoldState, Pending, Reversibility, Risk};
use safepoint_model::text::Hazard;
use safepoint_model::{Digest, Timestamp};

const SECOND: i64 = 1_000_000;

/// The risk as a word and a place, so that no colour is needed.
pub(crate) const fn risk(risk: Risk) -> &'static str {
    match risk {
        Risk::Low => "low (1 of 4)",
        Risk::Medium => "medium (2 of 4)",
        Risk::High => "HIGH (3 of 4)",
        Risk::Critical => "CRITICAL (4 of 4)",
    }
}

/// Whether it can be undone, with a sign.
pub(crate) const fn undo(reversibility: Reversibility) -> &'static str {
    match reversibility {
        Reversibility::Reversible => "✓ can be undone",
        Reversibility::Partly => "◐ can be undone in part",
        Reversibility::Irreversible => "✗ CANNOT be undone",
        Reversibility::Unknown => "? UNKNOWN whether it can be undone",
    }
}

/// The same, as short as it goes.
pub(crate) const fn undo_short(reversibility: Reversibility) -> &'static str {
    match reversibility {
        Reversibility::Reversible => "✓ undo",
        Reversibility::Partly => "◐ partly",
        Reversibility::Irreversible => "✗ final",
        Reversibility::Unknown => "? final",
    }
}

/// Whether nobody can decide it any more because of the time.
pub(crate) fn has_expired(pending: &Pending, now: Timestamp) -> bool {
    // A halt lasts until somebody acts.
    match pending.state {
        HoldState::Expired => true,
        HoldState::Pending => pending.expires_at <= now,
        HoldState::Approved | HoldState::Denied | HoldState::Halted | HoldState::Closed => false,
    }
}

/// How long there is, or that it is over.
pub(crate) fn expiry(pending: &Pending, now: Timestamp) -> String {
    match pending.state {
        HoldState::Halted => "HALTED".to_owned(),
        HoldState::Approved => "approved".to_owned(),
        HoldState::Denied => "denied".to_owned(),
        HoldState::Closed => "closed".to_owned(),
        _ if has_expired(pending, now) => "EXPIRED".to_owned(),
        _ => format!("expires in {}", length(now, pending.expires_at)),
    }
}

/// The same, as short as it goes.
pub(crate) fn expiry_short(pending: &Pending, now: Timestamp) -> String {
    let words = expiry(pending, now);
    match words.strip_prefix("expires in ") {
        Some(left) => left.to_owned(),
        None => words,
    }
}

/// The time from one moment to another, as people say it.
pub(crate) fn length(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.as_micros().saturating_sub(from.as_micros()) / SECOND;
    match seconds {
        ..=0 => "0 s".to_owned(),
        1..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// The time of day, in UTC.
pub(crate) fn clock(time: Timestamp) -> String {
    time.to_string().chars().skip(11).take(8).collect()
}

/// The day.
pub(crate) fn day(time: Timestamp) -> String {
    time.to_string().chars().take(10).collect()
}

/// A digest in groups of four, `groups` of them in each line.
pub(crate) fn grouped(digest: &Digest, groups: usize) -> Vec<String> {
    let digits: Vec<char> = digest.to_string().chars().collect();
    let fours: Vec<String> = digits.chunks(4).map(|four| four.iter().collect()).collect();
    fours
        .chunks(groups.max(1))
        .map(|line| line.join(" "))
        .collect()
}

/// What was escaped, for the flag.
pub(crate) fn escaped(hazards: &[Hazard]) -> String {
    let kinds: Vec<String> = hazards.iter().map(ToString::to_string).collect();
    format!("hidden characters shown escaped: {}", kinds.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * SECOND);
        let said = |seconds| length(at(0), at(seconds));
        assert_eq!(said(-5), "0 s");
        assert_eq!(said(119), "119 s");
        assert_eq!(said(299), "4 min");
        assert_eq!(said(7_200), "2 h");
        assert_eq!(said(259_200), "3 days");
    }
}
