//! What a piece of work took, as its agent says.

use std::fmt;

use safepoint_model::{Span, json::MAX_INTEGER};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What it took since the record before: a difference, not a total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Input and output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_consumed: Option<u64>,
    /// Time at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_time: Option<WallTime>,
    /// Money, in whatever unit the deployment counts in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// What is wrong with the numbers, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self
            .cost
            .is_some_and(|cost| cost < 0.0 || !cost.is_finite())
        {
            return Some("`resource_usage.cost` is not a number from 0 on");
        }
        if self
            .tokens_consumed
            .is_some_and(|tokens| tokens > MAX_INTEGER)
        {
            return Some("`resource_usage.tokens_consumed` is too large");
        }
        None
    }
}

/// A length of time: a number of seconds, or a text such as `90s` or `1h30m`.
///
/// It is written as seconds: one unit everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallTime(u64);

/// The longest time: ten thousand years in microseconds would not fit a double exactly.
const LONGEST: u64 = MAX_INTEGER;

impl WallTime {
    /// So many microseconds.
    pub fn from_micros(micros: u64) -> Self {
        Self(micros.min(LONGEST))
    }

    /// Its microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Its seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Serialize for WallTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(1_000_000) {
            return serializer.serialize_u64(self.0 / 1_000_000);
        }
        serializer.serialize_f64(self.as_seconds())
    }
}

impl<'de> Deserialize<'de> for WallTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Length;

        impl Visitor<'_> for Length {
            type Value = WallTime;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("seconds from 0 on, or a length of time such as `90s`")
            }

            fn visit_u64<E: Error>(self, seconds: u64) -> Result<WallTime, E> {
                let micros = seconds
                    .checked_mul(1_000_000)
                    .filter(|micros| *micros <= LONGEST);
                micros
                    .map(WallTime)
                    .ok_or_else(|| E::custom("so long does nothing take"))
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<WallTime, E> {
                match u64::try_from(seconds) {
                    Ok(seconds) => self.visit_u64(seconds),
                    Err(_) => Err(E::custom("a length of time is not negative")),
                }
            }

            fn visit_f64<E: Error>(self, seconds: f64) -> Result<WallTime, E> {
                let micros = (seconds * 1e6).round();
                if !(0.0..=LONGEST as f64).contains(&micros) {
                    return Err(E::custom("not a length of time"));
                }
                Ok(WallTime(micros as u64))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<WallTime, E> {
                let span: Span = text.parse().map_err(E::custom)?;
                Ok(WallTime::from_micros(span.as_micros()))
            }
        }

        deserializer.deserialize_any(Length)
    }
}
