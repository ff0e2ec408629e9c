//! The events of the specification as types. The trail has them as entries of these kinds.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happened to a gate.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub enum EventType {
    /// It was raised.
    CheckpointTriggered,
    /// It was answered.
    CheckpointResponse,
    /// It was passed.
    CheckpointPassed,
    /// It was not passed, and something did not happen because of it.
    CheckpointBlocked,
}

/// An event of a gate, as the specification writes it.
///
/// ```
/// use safepoint_gates::{EventType, TRACEEvent};
/// use serde_json::json;
///
/// let event = TRACEEvent {
///     event_type: EventType::CheckpointTriggered,
///     payload: json!({
///         "checkpoint_id": "delete-confirm",
///         "checkpoint_type": "action_pre",
///         "mode": "blocking",
///         "trigger_data": { "action_id": "ticket.delete" }
///     }),
/// };
///
/// // An entry of the trail has the name of the type as its kind and the payload as its body.
/// assert_eq!(event.kind(), "CheckpointTriggered");
/// let read = TRACEEvent::from_entry(event.kind(), event.payload.clone());
/// assert_eq!(read, Some(event));
/// assert_eq!(TRACEEvent::from_entry("checkpoint_created", json!({})), None);
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TRACEEvent {
    /// What happened.
    pub event_type: EventType,
    /// To which gate, and how.
    pub payload: Value,
}

/// A kind of entry that is no event of a gate.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is no event of a gate")]
pub struct UnknownEventType(pub String);

impl EventType {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::CheckpointTriggered,
        Self::CheckpointResponse,
        Self::CheckpointPassed,
        Self::CheckpointBlocked,
    ];

    /// The kind of its entries in the trail.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CheckpointTriggered => "CheckpointTriggered",
            Self::CheckpointResponse => "CheckpointResponse",
            Self::CheckpointPassed => "CheckpointPassed",
            Self::CheckpointBlocked => "CheckpointBlocked",
        }
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EventType {
    type Err = UnknownEventType;

    fn from_str(kind: &str) -> Result<Self, UnknownEventType> {
        let mut all = Self::ALL.into_iter();
        all.find(|it| it.as_str() == kind)
            .ok_or_else(|| UnknownEventType(kind.to_owned()))
    }
}

impl TRACEEvent {
    /// The event that an entry of the trail tells of; `None` when it tells of something else.
    pub fn from_entry(kind: &str, payload: Value) -> Option<Self> {
        let event_type = kind.parse().ok()?;
        Some(Self {
            event_type,
            payload,
        })
    }

    /// The kind of its entry in the trail.
    pub const fn kind(&self) -> &'static str {
        self.event_type.as_str()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ga_45_events_of_the_specification_are_the_kinds_of_the_trail() {
        for event_type in EventType::ALL {
            assert_eq!(event_type.as_str().parse(), Ok(event_type));
            let event = TRACEEvent {
                event_type,
                payload: json!({"checkpoint_id": "g"}),
            };
            let text = serde_json::to_string(&event).unwrap();
            assert!(text.contains(event_type.as_str()), "{text}");
            assert_eq!(serde_json::from_str::<TRACEEvent>(&text).unwrap(), event);
        }
        assert!("checkpoint_created".parse::<EventType>().is_err());
    }
}
