//! Who may use an atlas, and how often sessions may begin under it.

use safepoint_gates::{AccessType, DeliveryMode, Rate, Session};
use safepoint_model::{Digest, Timestamp};
use safepoint_store::Sql;
use safepoint_trail::Actor;

use super::{Start, table};
use crate::ControlError;

const DAY: u64 = 24 * 60 * 60;

/// Who acts in a session: the holder of a key, or the user of this machine.
///
/// Limits are counted for it. A key is never kept: its digest is enough.
pub(super) fn principal(start: &Start, actor: &Actor) -> Result<String, ControlError> {
    for atlas in &start.atlases {
        let Some(steward) = &atlas.manifest.steward else {
            continue;
        };
        let refused = |reason| ControlError::Access {
            atlas_id: atlas.manifest.atlas_id.clone(),
            reason,
        };
        let fits = |key: &String| {
            let mut patterns = steward.access.api_keys.iter();
            patterns.any(|pattern| matches(pattern, key))
        };
        let here = steward.delivery.mode == DeliveryMode::Embedded;
        match (steward.access.access_type, &start.key) {
            (AccessType::Public, _) => {}
            (AccessType::Authenticated | AccessType::Private, Some(key)) if fits(key) => {}
            (_, Some(_)) => return Err(refused("its steward does not know this key")),
            // The atlas is a file of theirs: the user of this machine is known.
            (AccessType::Authenticated, None) if here => {}
            (_, None) => return Err(refused("it wants a key")),
        }
    }
    // A key that no steward knows is nobody's: limits would count anew for each.
    let known = |key: &&String| {
        let stewards = start
            .atlases
            .iter()
            .filter_map(|atlas| atlas.manifest.steward.as_ref());
        stewards
            .flat_map(|steward| &steward.access.api_keys)
            .any(|pattern| matches(pattern, key))
    };
    Ok(match start.key.as_ref().filter(known) {
        None => actor.to_string(),
        Some(key) => {
            let digest = Digest::of_parts(&[b"safepoint/api-key/v1\n", key.as_bytes()]);
            let short: String = digest.to_string().chars().take(16).collect();
            format!("key:{short}")
        }
    })
}

/// Counts a session that begins, and refuses one too many.
pub(super) fn count_session(
    sql: &mut dyn Sql,
    start: &Start,
    session: &Session,
    now: Timestamp,
) -> Result<(), ControlError> {
    for atlas in &start.atlases {
        let manifest = &atlas.manifest;
        let limit = manifest
            .steward
            .as_ref()
            .and_then(|steward| steward.access.rate_limit?.sessions_per_day);
        let Some(most) = limit else { continue };
        let rates = [Rate {
            name: format!("{}/access/sessions", manifest.atlas_id),
            window_seconds: DAY,
            most,
        }];
        let uses = table::uses(sql, &rates, &session.principal, now)?;
        if uses.values().any(|used| *used >= most) {
            return Err(ControlError::TooManySessions {
                atlas_id: manifest.atlas_id.clone(),
                most,
            });
        }
        let names = rates.each_ref().map(|rate| rate.name.clone());
        table::use_up(sql, &rates, &names, &session.principal, now)?;
    }
    Ok(())
}

/// Whether a key fits a pattern, in which `*` stands for any characters.
fn matches(pattern: &str, key: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = key.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let mut last = None;
    for piece in pieces {
        if let Some(middle) = last.replace(piece) {
            match rest.split_once(middle) {
                Some((_, behind)) => rest = behind,
                None => return false,
            }
        }
    }
    match last {
        None => rest.is_empty(),
        Some(end) => rest.ends_with(end),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn ga_43_a_star_in_a_key_stands_for_any_characters() {
        let cases = [
            ("sk-acme-*", "sk-acme-1", true),
            ("sk-acme-*", "sk-acme-", true),
            ("sk-acme-*", "sk-other-1", false),
            ("*-acme", "sk-acme", true),
            ("*-acme", "sk-acme-1", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("exact", "exact", true),
            ("exact", "exactly", false),
            ("", "", true),
            ("", "x", false),
        ];
        for (pattern, key, expected) in cases {
            assert_eq!(matches(pattern, key), expected, "{pattern} {key}");
        }
    }
}
