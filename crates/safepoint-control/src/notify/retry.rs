//! When to try again: each time later, never exactly when others do, and not before the
//! target says.

use std::time::Duration;

use safepoint_model::{Entropy, EntropyError, Timestamp};

/// The wait after the first failure, in microseconds.
const FIRST: i64 = 2_000_000;

/// The longest of our own waits.
const LONGEST: i64 = 600_000_000;

/// The longest that a target may have us wait.
const LONGEST_ASKED: i64 = 24 * 3_600_000_000;

/// How long to wait after so many failures: from half of it to all of it, by chance.
pub(super) fn wait(
    attempts: i64,
    asked: Option<Duration>,
    entropy: &dyn Entropy,
) -> Result<i64, EntropyError> {
    let doubled = u32::try_from(attempts.clamp(1, 20) - 1).unwrap_or(0);
    let most = FIRST.saturating_mul(1_i64 << doubled).min(LONGEST);
    let mut bytes = [0; 8];
    entropy.fill(&mut bytes)?;
    let chance = i64::from_le_bytes(bytes).rem_euclid(most / 2 + 1);
    let asked = asked.map_or(0, |asked| {
        i64::try_from(asked.as_micros()).unwrap_or(i64::MAX)
    });
    Ok((most / 2 + chance).max(asked.min(LONGEST_ASKED)))
}

/// Reads `Retry-After`: seconds, or a date as HTTP writes it.
pub(super) fn read_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit mean very long, not at once.
        return Some(Duration::from_secs(
            text.parse::<u32>().unwrap_or(u32::MAX).into(),
        ));
    }
    let until = date(text)?;
    let micros = until.as_micros().saturating_sub(now.as_micros());
    Some(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (_, rest) = text.split_once(", ")?;
    let mut words = rest.split(' ');
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    (words.next() == Some("GMT")).then_some(())?;
    Timestamp::parse(&format!("{year}-{month:02}-{day}T{time}Z")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Same(u8);
    impl Entropy for Same {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
            bytes.fill(self.0);
            Ok(())
        }
    }

    #[test]
    fn su_10_waits_double_up_to_a_limit_and_differ_by_chance() {
        let all = |attempts| -> Vec<i64> {
            (0..=255)
                .map(|byte| wait(attempts, None, &Same(byte)).unwrap())
                .collect()
        };
        for (attempts, most) in [(1, 2), (2, 4), (3, 8), (9, 512), (10, 600), (40, 600)] {
            let most = most * 1_000_000;
            let waits = all(attempts);
            assert!(waits.iter().all(|it| (most / 2..=most).contains(it)));
            let different: std::collections::BTreeSet<_> = waits.iter().collect();
            assert!(different.len() > 100, "{attempts}");
        }
    }

    #[test]
    fn su_10_a_target_may_ask_for_more_time_and_not_for_ever() {
        let asked = |seconds| wait(1, Some(Duration::from_secs(seconds)), &Same(0)).unwrap();
        assert_eq!(asked(0), 1_000_000);
        assert_eq!(asked(90), 90_000_000);
        assert_eq!(asked(u64::MAX), LONGEST_ASKED);
    }

    #[test]
    fn su_10_both_forms_of_retry_after_are_read() {
        let now = Timestamp::parse("1994-11-06T08:49:07Z").unwrap();
        let read = |text| read_after(text, now);
        assert_eq!(read("120"), Some(Duration::from_secs(120)));
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(read(date), Some(Duration::from_secs(30)));
        let past = "Sun, 06 Nov 1994 08:48:37 GMT";
        assert_eq!(read(past), Some(Duration::ZERO));
        assert_eq!(
            read("99999999999"),
            Some(Duration::from_secs(u32::MAX.into()))
        );
        for text in ["", "soon", "-1", "1.5", "Sun, 06 Nov 1994 08:49:37 CET"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
