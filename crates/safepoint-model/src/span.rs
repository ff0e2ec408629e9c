//! Lengths of time and the ends they lead to, as people write them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Timestamp, text};

/// Units from large to small, in microseconds.
const UNITS: [(&str, u64); 7] = [
    ("w", 604_800_000_000),
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// A length of time, in microseconds; never negative.
///
/// Written as whole numbers with units, large before small: `30s`, `24h`,
/// `1h30m`, or as ISO 8601 writes them: `PT1M`, `P1DT12H`, `P2W`, `PT0.5S`. A day has
/// 24 hours: these are lengths, not calendar dates, so years and months are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// A text that is not a length of time.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{}` is not a length of time: {reason}; write it like `30m`, `24h`, `7d` or `1h30m`", shown(.input))]
pub struct SpanError {
    input: String,
    reason: Reason,
}

#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
enum Reason {
    #[error("a whole number is expected before each unit")]
    NoNumber,
    #[error("a unit (`w`, `d`, `h`, `m`, `s`, `ms` or `us`) is expected after each number")]
    NoUnit,
    #[error("units go from large to small, each at most once")]
    Order,
    #[error("it is too long")]
    TooLong,
    #[error("as ISO 8601 has it, it is like `PT30S`, `PT1H30M`, `P7D` or `P2W`")]
    NotIso,
    #[error("years and months have no fixed length")]
    Calendar,
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// The span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The span of `seconds` seconds, as far as the type reaches.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// Its length in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whether it is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The moment this long after `start`; `None` when the calendar of [`Timestamp`] ends before.
    pub fn after(self, start: Timestamp) -> Option<Timestamp> {
        let micros = start.as_micros().checked_add_unsigned(self.0)?;
        jiff::Timestamp::from_microsecond(micros).ok()?;
        Some(Timestamp::from_micros(micros))
    }

    /// Spelled with the units of which `chosen` has the bit set; `None` when they leave a rest.
    fn spell(self, chosen: u8) -> Option<String> {
        let mut rest = self.0;
        let mut text = String::new();
        for (place, (unit, micros)) in UNITS.iter().rev().enumerate().rev() {
            if chosen >> place & 1 == 1 && rest >= *micros {
                text.push_str(&format!("{}{unit}", rest / micros));
                rest %= micros;
            }
        }
        (rest == 0).then_some(text)
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(input: &str) -> Result<Self, SpanError> {
        parse(input).map_err(|reason| SpanError {
            input: input.to_owned(),
            reason,
        })
    }
}

fn parse(input: &str) -> Result<Span, Reason> {
    if let Some(iso) = input.strip_prefix('P') {
        return parse_iso(iso);
    }
    let mut units = UNITS.iter();
    let mut total = 0_u64;
    let mut rest = input;
    if rest.is_empty() {
        return Err(Reason::NoNumber);
    }
    while !rest.is_empty() {
        let (number, after) = split_where(rest, |c| !c.is_ascii_digit());
        let (name, after) = split_where(after, |c| !c.is_ascii_alphabetic());
        if number.is_empty() {
            return Err(Reason::NoNumber);
        }
        if !UNITS.iter().any(|(unit, _)| *unit == name) {
            return Err(Reason::NoUnit);
        }
        let Some((_, micros)) = units.find(|(unit, _)| *unit == name) else {
            return Err(Reason::Order);
        };
        // Digits alone, so the only thing that can be wrong is their number.
        let number = number.parse::<u64>().map_err(|_| Reason::TooLong)?;
        total = number
            .checked_mul(*micros)
            .and_then(|part| total.checked_add(part))
            .ok_or(Reason::TooLong)?;
        rest = after;
    }
    Ok(Span(total))
}

/// What follows the `P` of a duration as ISO 8601 writes it.
fn parse_iso(input: &str) -> Result<Span, Reason> {
    let (days, time) = match input.split_once('T') {
        Some((_, "")) => return Err(Reason::NotIso),
        Some((days, time)) => (days, time),
        None => (input, ""),
    };
    if days.contains(['Y', 'M']) {
        return Err(Reason::Calendar);
    }
    let mut total = 0_u64;
    let parts = [
        (days, &[('W', 604_800_000_000), ('D', 86_400_000_000)][..]),
        (
            time,
            &[('H', 3_600_000_000), ('M', 60_000_000), ('S', 1_000_000)][..],
        ),
    ];
    for (mut rest, units) in parts {
        let mut units = units.iter();
        while !rest.is_empty() {
            let (number, after) = split_where(rest, |c| !c.is_ascii_digit());
            let (fraction, after) = match after.strip_prefix(['.', ',']) {
                Some(after) => split_where(after, |c| !c.is_ascii_digit()),
                None => ("", after),
            };
            let has_point = after.len() + number.len() < rest.len();
            let mut letters = after.chars();
            let unit = letters.next().ok_or(Reason::NotIso)?;
            let (name, micros) = units
                .find(|(name, _)| *name == unit)
                .ok_or(Reason::NotIso)?;
            // Only seconds have a fraction, down to what a span can hold.
            let is_plain = fraction.is_empty() && !has_point;
            let is_fine = *name == 'S' && (1..=6).contains(&fraction.len());
            if number.is_empty() || !(is_plain || is_fine) {
                return Err(Reason::NotIso);
            }
            let whole = number.parse::<u64>().map_err(|_| Reason::TooLong)?;
            let part = format!("{fraction:0<6}").parse::<u64>();
            total = whole
                .checked_mul(*micros)
                .and_then(|it| it.checked_add(part.unwrap_or_default()))
                .and_then(|it| total.checked_add(it))
                .ok_or(Reason::TooLong)?;
            rest = letters.as_str();
        }
    }
    match input.is_empty() {
        true => Err(Reason::NotIso),
        false => Ok(Span(total)),
    }
}

fn split_where(text: &str, end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(end).unwrap_or(text.len()))
}

impl fmt::Display for Span {
    /// The shortest text that reads back as this span, with the smaller units
    /// where two are as short: `90m`, `1d`, `7d`, `2w`, `30d`, `1d1s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0s");
        }
        let shortest = (0..1 << UNITS.len())
            .filter_map(|chosen| self.spell(chosen))
            .min_by_key(String::len);
        f.write_str(&shortest.unwrap_or_default())
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// When something ceases to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expiry {
    /// It holds until someone ends it.
    Never,
    /// It holds before this moment, and no longer from it on.
    At(Timestamp),
}

/// A text that is not an end in the future.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ExpiryError {
    /// Neither a span, nor a time, nor `never`.
    #[error("`{}` is neither a length of time such as `30m` or `7d`, nor an RFC 3339 time such as `2026-11-15T07:30:00Z`, nor `never`", shown(.input))]
    Unreadable {
        /// The text given.
        input: String,
    },
    /// A span of no length.
    #[error("`{}` would have expired at once; give a length above zero, a time to come or `never`", shown(.input))]
    Zero {
        /// The text given.
        input: String,
    },
    /// A time that has passed.
    #[error("`{}` is already past: it is {now}; give a time to come, a length of time or `never`", shown(.input))]
    Past {
        /// The text given.
        input: String,
        /// The present moment.
        now: Timestamp,
    },
    /// A span that leads beyond the calendar.
    #[error("`{}` from now is beyond the year 9999; give a shorter one or `never`", shown(.input))]
    TooFar {
        /// The text given.
        input: String,
    },
}

impl Expiry {
    /// Reads a span, counted from `now`, an RFC 3339 time, or `never`.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, ExpiryError> {
        let input = text.to_owned();
        if text == "never" {
            Ok(Self::Never)
        } else if let Ok(span) = text.parse::<Span>() {
            if span.is_zero() {
                return Err(ExpiryError::Zero { input });
            }
            let end = span.after(now).ok_or(ExpiryError::TooFar { input })?;
            Ok(Self::At(end))
        } else if let Ok(end) = Timestamp::parse(text) {
            let expiry = Self::At(end);
            if expiry.is_past(now) {
                return Err(ExpiryError::Past { input, now });
            }
            Ok(expiry)
        } else {
            Err(ExpiryError::Unreadable { input })
        }
    }

    /// Whether it no longer holds at `now`.
    pub fn is_past(self, now: Timestamp) -> bool {
        match self {
            Self::Never => false,
            Self::At(end) => end <= now,
        }
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::At(end) => end.fmt(f),
        }
    }
}

impl Serialize for Expiry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Expiry {
    /// `never` or a time; a span has no meaning once it is stored.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "never" {
            return Ok(Self::Never);
        }
        Timestamp::parse(&text)
            .map(Self::At)
            .map_err(serde::de::Error::custom)
    }
}

fn shown(input: &str) -> String {
    text::shorten(&text::line(input).text, 60)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_794_726_000_000_000);

    #[test]
    fn reads_and_prints_the_shortest_form() {
        let cases = [
            ("30s", "30s", 30_000_000),
            ("30m", "30m", 1_800_000_000),
            ("24h", "1d", 86_400_000_000),
            ("7d", "7d", 604_800_000_000),
            ("14d", "2w", 1_209_600_000_000),
            ("30d", "30d", 2_592_000_000_000),
            ("1h30m", "90m", 5_400_000_000),
            ("1d1s", "1d1s", 86_401_000_000),
            ("500ms", "500ms", 500_000),
            ("0s", "0s", 0),
            ("1s1us", "1s1us", 1_000_001),
        ];
        for (input, printed, micros) in cases {
            let span: Span = input.parse().unwrap();
            assert_eq!(span, Span::from_micros(micros), "{input}");
            assert_eq!(span.to_string(), printed, "{input}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_span() {
        use Reason::{NoNumber, NoUnit, Order, TooLong};
        let cases = [
            ("", NoNumber),
            ("h", NoNumber),
            ("-1h", NoNumber),
            ("+1h", NoNumber),
            (" 1h", NoNumber),
            ("1h ", NoNumber),
            ("30", NoUnit),
            ("1.5h", NoUnit),
            ("1H", NoUnit),
            ("1y", NoUnit),
            ("1 h", NoUnit),
            ("١h", NoNumber),
            ("30m1h", Order),
            ("1h1h", Order),
            ("99999999999999999999s", TooLong),
            ("18446744073709551615s", TooLong),
            ("30500568w18446744073709551615us", TooLong),
        ];
        for (input, reason) in cases {
            assert_eq!(input.parse::<Span>().unwrap_err().reason, reason, "{input}");
        }
        assert_eq!(
            "30".parse::<Span>().unwrap_err().to_string(),
            "`30` is not a length of time: a unit (`w`, `d`, `h`, `m`, `s`, `ms` or `us`) is expected after each number; write it like `30m`, `24h`, `7d` or `1h30m`"
        );
    }

    #[test]
    fn pr_20_durations_are_read_as_iso_8601_writes_them() {
        let cases = [
            ("PT1M", 60_000_000),
            ("PT90S", 90_000_000),
            ("PT1H30M", 5_400_000_000),
            ("P1DT12H", 129_600_000_000),
            ("P7D", 604_800_000_000),
            ("P2W", 1_209_600_000_000),
            ("PT0.5S", 500_000),
            ("PT1,000001S", 1_000_001),
            ("PT0S", 0),
        ];
        for (input, micros) in cases {
            let span: Span = input.parse().unwrap();
            assert_eq!(span, Span::from_micros(micros), "{input}");
        }
        use Reason::{Calendar, NotIso, TooLong};
        let refused = [
            ("P", NotIso),
            ("PT", NotIso),
            ("P1", NotIso),
            ("P1H", NotIso),
            ("PT1D", NotIso),
            ("PT1M1H", NotIso),
            ("PT1M1M", NotIso),
            ("PT.5S", NotIso),
            ("PT1.S", NotIso),
            ("PT1.5M", NotIso),
            ("PT1.0000001S", NotIso),
            ("PT1S ", NotIso),
            ("PT-1S", NotIso),
            ("P1M", Calendar),
            ("P1Y", Calendar),
            ("PT99999999999999999999S", TooLong),
            ("PT18446744073709551615H", TooLong),
        ];
        for (input, reason) in refused {
            assert_eq!(input.parse::<Span>().unwrap_err().reason, reason, "{input}");
        }
    }

    #[test]
    fn an_expiry_is_a_span_a_time_or_never() {
        let parse = |text| Expiry::parse(text, NOW);
        let at = |text| Ok(Expiry::At(Timestamp::parse(text).unwrap()));
        assert_eq!(parse("never"), Ok(Expiry::Never));
        assert_eq!(parse("90m"), at("2026-11-15T08:30:00Z"));
        assert_eq!(
            parse("2026-11-15T09:00:00+01:00"),
            at("2026-11-15T08:00:00Z")
        );
        let messages = [
            (
                "soon",
                "`soon` is neither a length of time such as `30m` or `7d`, nor an RFC 3339 time such as `2026-11-15T07:30:00Z`, nor `never`",
            ),
            (
                "0s",
                "`0s` would have expired at once; give a length above zero, a time to come or `never`",
            ),
            (
                "2026-11-15T07:00:00Z",
                "`2026-11-15T07:00:00Z` is already past: it is 2026-11-15T07:00:00.000000Z; give a time to come, a length of time or `never`",
            ),
            (
                "500000w",
                "`500000w` from now is beyond the year 9999; give a shorter one or `never`",
            ),
        ];
        for (input, message) in messages {
            assert_eq!(parse(input).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn an_expiry_is_past_from_its_moment_on() {
        let expiry = Expiry::At(NOW);
        assert!(!expiry.is_past(Timestamp::from_micros(NOW.as_micros() - 1)));
        assert!(expiry.is_past(NOW));
        assert!(!Expiry::Never.is_past(Timestamp::from_micros(i64::MAX)));
    }

    #[test]
    fn an_expiry_is_stored_as_text() {
        for (expiry, text) in [
            (Expiry::Never, "\"never\""),
            (Expiry::At(NOW), "\"2026-11-15T07:00:00.000000Z\""),
        ] {
            assert_eq!(serde_json::to_string(&expiry).unwrap(), text);
            assert_eq!(serde_json::from_str::<Expiry>(text).unwrap(), expiry);
        }
        assert!(serde_json::from_str::<Expiry>("\"30m\"").is_err());
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(micros: u64) {
            let span = Span::from_micros(micros);
            prop_assert_eq!(span.to_string().parse(), Ok(span));
            let json = serde_json::to_string(&span).unwrap();
            prop_assert_eq!(serde_json::from_str::<Span>(&json).unwrap(), span);
        }

        #[test]
        fn no_text_breaks_the_parser(text in "P?[0-9wdhmsuTWDHMS., ]{0,24}") {
            let _ = text.parse::<Span>();
        }
    }
}
