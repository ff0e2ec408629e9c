//! Reading a trigger: all the fields that any kind has, and then only those of its kind.
//!
//! What serde derives for such a type keeps a copy of everything until it knows
//! the kind, and takes lists for mappings. This does neither. Numbers are not
//! taken for texts here, nor texts for numbers.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{CheckpointTrigger, MatchMode, RiskTier};

/// The kinds, as they are written.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    SessionStart,
    Interactive,
    CapabilityAccess,
    CapabilityGate,
    RiskThreshold,
    ActionPre,
    Keyword,
    KeywordMatch,
    TimeInterval,
    CountInterval,
    ExplicitRequest,
    ActionPost,
    ErrorOccurred,
    SessionEnd,
    Custom,
}

/// Every field of every kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    r#type: Kind,
    #[serde(default, deserialize_with = "texts")]
    capability_ids: Option<Vec<String>>,
    #[serde(default, deserialize_with = "given")]
    min_tier: Option<RiskTier>,
    #[serde(default, deserialize_with = "texts")]
    patterns: Option<Vec<String>>,
    #[serde(default, deserialize_with = "exact")]
    case_sensitive: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    match_mode: Option<MatchMode>,
    #[serde(default, deserialize_with = "exact")]
    seconds: Option<u64>,
    #[serde(default, deserialize_with = "exact")]
    actions: Option<u64>,
    #[serde(default, deserialize_with = "exact")]
    trigger_id: Option<String>,
    #[serde(default, deserialize_with = "given")]
    params: Option<Value>,
}

impl<'de> Deserialize<'de> for CheckpointTrigger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Fields::deserialize(deserializer)?;
        let trigger = fields.take()?;
        match fields.left() {
            None => Ok(trigger),
            Some(field) => Err(D::Error::unknown_field(field, &[])),
        }
    }
}

impl Fields {
    /// The trigger, without the fields it is made of.
    fn take<E: Error>(&mut self) -> Result<CheckpointTrigger, E> {
        Ok(match self.r#type {
            Kind::SessionStart => CheckpointTrigger::SessionStart {},
            Kind::Interactive => CheckpointTrigger::Interactive {},
            Kind::CapabilityAccess => CheckpointTrigger::CapabilityAccess {
                capability_ids: needed(&mut self.capability_ids, "capability_ids")?,
            },
            Kind::CapabilityGate => CheckpointTrigger::CapabilityGate {
                capability_ids: needed(&mut self.capability_ids, "capability_ids")?,
            },
            Kind::RiskThreshold => CheckpointTrigger::RiskThreshold {
                min_tier: needed(&mut self.min_tier, "min_tier")?,
            },
            Kind::ActionPre => CheckpointTrigger::ActionPre {
                patterns: needed(&mut self.patterns, "patterns")?,
            },
            Kind::Keyword => CheckpointTrigger::Keyword {
                patterns: needed(&mut self.patterns, "patterns")?,
                case_sensitive: self.case_sensitive.take().unwrap_or_default(),
                match_mode: self.match_mode.take().unwrap_or_default(),
            },
            Kind::KeywordMatch => CheckpointTrigger::KeywordMatch {
                patterns: needed(&mut self.patterns, "patterns")?,
                case_sensitive: self.case_sensitive.take().unwrap_or_default(),
                match_mode: self.match_mode.take().unwrap_or_default(),
            },
            Kind::TimeInterval => CheckpointTrigger::TimeInterval {
                seconds: needed(&mut self.seconds, "seconds")?,
            },
            Kind::CountInterval => CheckpointTrigger::CountInterval {
                actions: needed(&mut self.actions, "actions")?,
            },
            Kind::ExplicitRequest => CheckpointTrigger::ExplicitRequest {},
            Kind::ActionPost => CheckpointTrigger::ActionPost {
                patterns: needed(&mut self.patterns, "patterns")?,
            },
            Kind::ErrorOccurred => CheckpointTrigger::ErrorOccurred {},
            Kind::SessionEnd => CheckpointTrigger::SessionEnd {},
            Kind::Custom => CheckpointTrigger::Custom {
                trigger_id: needed(&mut self.trigger_id, "trigger_id")?,
                params: self.params.take().unwrap_or_default(),
            },
        })
    }

    /// A field that the kind does not have.
    fn left(&self) -> Option<&'static str> {
        let fields = [
            (self.capability_ids.is_some(), "capability_ids"),
            (self.min_tier.is_some(), "min_tier"),
            (self.patterns.is_some(), "patterns"),
            (self.case_sensitive.is_some(), "case_sensitive"),
            (self.match_mode.is_some(), "match_mode"),
            (self.seconds.is_some(), "seconds"),
            (self.actions.is_some(), "actions"),
            (self.trigger_id.is_some(), "trigger_id"),
            (self.params.is_some(), "params"),
        ];
        let left = fields.into_iter().find(|(given, _)| *given);
        left.map(|(_, name)| name)
    }
}

fn needed<T, E: Error>(field: &mut Option<T>, name: &'static str) -> Result<T, E> {
    field.take().ok_or_else(|| E::missing_field(name))
}

/// A value that must be there when its field is: `null` is none.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Something that is taken as it was written, whatever is wanted.
trait Exact: Sized {
    const EXPECTED: &'static str;

    fn from_text(_: &str) -> Option<Self> {
        None
    }

    fn from_number(_: u64) -> Option<Self> {
        None
    }

    fn from_bool(_: bool) -> Option<Self> {
        None
    }
}

impl Exact for String {
    const EXPECTED: &'static str = "a string";

    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl Exact for u64 {
    const EXPECTED: &'static str = "u64";

    fn from_number(number: u64) -> Option<Self> {
        Some(number)
    }
}

impl Exact for bool {
    const EXPECTED: &'static str = "a boolean";

    fn from_bool(value: bool) -> Option<Self> {
        Some(value)
    }
}

fn exact<'de, D: Deserializer<'de>, T: Exact>(deserializer: D) -> Result<Option<T>, D::Error> {
    Exactly::<T>::deserialize(deserializer).map(|found| Some(found.0))
}

struct Exactly<T>(T);

impl<'de, T: Exact> Deserialize<'de> for Exactly<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AsWritten(PhantomData))
    }
}

struct AsWritten<T>(PhantomData<T>);

impl<'de, T: Exact> Visitor<'de> for AsWritten<T> {
    type Value = Exactly<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Exactly<T>, E> {
        let found = T::from_text(text).map(Exactly);
        found.ok_or_else(|| E::invalid_type(Unexpected::Str(text), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Exactly<T>, E> {
        let found = T::from_number(number).map(Exactly);
        found.ok_or_else(|| E::invalid_type(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Exactly<T>, E> {
        let found = u64::try_from(number).ok().and_then(T::from_number);
        found
            .map(Exactly)
            .ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Exactly<T>, E> {
        let found = T::from_bool(value).map(Exactly);
        found.ok_or_else(|| E::invalid_type(Unexpected::Bool(value), &self))
    }
}

/// A list of texts that are written as such.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    struct Texts;

    impl<'de> Visitor<'de> for Texts {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of texts")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<String>, A::Error> {
            let mut texts = Vec::new();
            while let Some(Exactly(text)) = items.next_element::<Exactly<String>>()? {
                texts.push(text);
            }
            Ok(texts)
        }
    }

    deserializer.deserialize_any(Texts).map(Some)
}
