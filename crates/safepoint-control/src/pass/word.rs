//! An operator's word for what is not a hold: whom and what to trust, which permit to take back,
//! who else decides. It is signed like a decision, and kept in the trail beside what it did.

use safepoint_authority::{Boundary, DenialCode, Level, Operator, OperatorKey, Permit, Trust};
use safepoint_model::{Timestamp, json as strict};
use safepoint_store::{Durability, Sql};
use safepoint_trail::note::PublicKey;
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::desk::{active, key_error};
use super::{Desk, Signing};
use crate::{ControlError, kept};

/// What kind of statement it is, and in which version.
const PURPOSE: &str = "safepoint/word/v1";

/// What an operator said, with their signature.
#[derive(Clone, Debug)]
pub struct Word {
    operator: String,
    note: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    statement: String,
    operator: String,
    says: String,
    time: Timestamp,
}

impl Desk<'_> {
    /// An operator says something, and signs it.
    pub fn word(
        &self,
        operator: &Operator,
        signing: &dyn Signing,
        says: &str,
    ) -> Result<Word, ControlError> {
        let statement = Statement {
            statement: PURPOSE.to_owned(),
            operator: operator.name.clone(),
            says: says.to_owned(),
            time: self.control.around.clock.now(),
        };
        let bytes = strict::canonical_of(&statement).map_err(|error| ControlError::Proposal {
            reason: format!("it cannot be written down exactly: {error}"),
        })?;
        let text = format!("{}\n", String::from_utf8_lossy(&bytes));
        Ok(Word {
            operator: operator.name.clone(),
            note: signing.sign(operator, &text)?,
        })
    }

    /// Takes a permit back that was not used yet.
    pub fn revoke(&self, prefix: &str, word: &Word) -> Result<Permit, ControlError> {
        let now = self.control.around.clock.now();
        self.control.trail.write(Durability::Sync, |writing| {
            let permit: Permit = kept::find(writing.sql(), prefix)?;
            check(writing.sql(), word, &format!("permit revoke {prefix}"))?;
            let void = permit
                .cancel(DenialCode::PermitRevoked, now)
                .map_err(|reason| ControlError::Permit {
                    id: permit.permit_id.to_string(),
                    reason,
                })?;
            kept::put(writing, &void)?;
            writing.append(Draft {
                stream: Stream::from(&void.session_id),
                actor: word.actor(),
                kind: Kind::fixed("permit_revoked").into(),
                action_id: Some(void.action_id.clone()),
                body: json!({"permit_id": void.permit_id, "word": word.note}),
            })?;
            Ok(void)
        })
    }

    /// What is known of boundaries, the newest first.
    pub fn trust(&self) -> Result<Vec<Trust>, ControlError> {
        let store = self.control.trail.store();
        store.read(|sql| kept::newest(sql, 10_000))
    }

    /// An operator trusts a boundary.
    pub fn grant(
        &self,
        boundary: Boundary,
        level: Level,
        reason: &str,
        word: &Word,
    ) -> Result<Trust, ControlError> {
        let says = format!("trust {boundary} {}", level.as_str());
        self.set_trust(boundary, "granted", word, &says, |trust, now| {
            trust.granted(level, reason.to_owned(), now)
        })
    }

    /// An operator trusts a boundary no more.
    pub fn distrust(
        &self,
        boundary: Boundary,
        reason: &str,
        word: &Word,
    ) -> Result<Trust, ControlError> {
        let says = format!("trust {boundary} untrusted");
        self.set_trust(boundary, "revoked", word, &says, |trust, now| {
            trust.revoked(reason.to_owned(), now)
        })
    }

    fn set_trust(
        &self,
        boundary: Boundary,
        event: &str,
        word: &Word,
        says: &str,
        change: impl FnOnce(Trust, Timestamp) -> Trust,
    ) -> Result<Trust, ControlError> {
        let name = boundary.to_string();
        self.control.trail.write(Durability::Sync, |writing| {
            check(writing.sql(), word, says)?;
            self.control
                .change_trust(writing, boundary, event, change)?;
            writing.append(Draft {
                stream: Stream::store(),
                actor: word.actor(),
                kind: Kind::fixed("operator_said").into(),
                action_id: None,
                body: json!({"word": word.note}),
            })?;
            kept::get(writing.sql(), &name)?.ok_or(ControlError::Meanwhile("it is not kept"))
        })
    }

    /// Those who may decide.
    pub fn operators(&self) -> Result<Vec<Operator>, ControlError> {
        self.control.trail.store().read(|sql| kept::open(sql))
    }

    /// Somebody may decide from now on. The first one needs nobody's word.
    pub fn add_operator(
        &self,
        name: &str,
        key: &PublicKey,
        held: OperatorKey,
        word: Option<&Word>,
    ) -> Result<Operator, ControlError> {
        let operator = Operator {
            format: 1,
            name: name.to_owned(),
            key: key.to_string(),
            held,
            since: self.control.around.clock.now(),
            removed: None,
        };
        self.control.trail.write(Durability::Sync, |writing| {
            let known: Option<Operator> = kept::get(writing.sql(), name)?;
            if known.is_some_and(|known| known.removed.is_none()) {
                return Err(ControlError::Operator {
                    reason: format!("there is an operator `{name}` already"),
                });
            }
            let others: Vec<Operator> = kept::open(writing.sql())?;
            match word {
                Some(word) => check(writing.sql(), word, &format!("operator add {name} {key}"))?,
                None if others.is_empty() => {}
                None => {
                    return Err(ControlError::Operator {
                        reason: "another operator lets somebody decide, and signs for it"
                            .to_owned(),
                    });
                }
            }
            kept::put(writing, &operator)?;
            self.tell_of(writing, "operator_added", &operator, word)?;
            Ok(operator.clone())
        })
    }

    /// Somebody may no longer decide.
    pub fn remove_operator(&self, name: &str, word: &Word) -> Result<Operator, ControlError> {
        let now = self.control.around.clock.now();
        self.control.trail.write(Durability::Sync, |writing| {
            let operator = Operator {
                removed: Some(now),
                ..active(writing.sql(), name)?
            };
            check(writing.sql(), word, &format!("operator remove {name}"))?;
            kept::put(writing, &operator)?;
            self.tell_of(writing, "operator_removed", &operator, Some(word))?;
            Ok(operator)
        })
    }

    fn tell_of(
        &self,
        writing: &mut Writing<'_>,
        kind: &'static str,
        operator: &Operator,
        word: Option<&Word>,
    ) -> Result<(), ControlError> {
        writing.append(Draft {
            stream: Stream::store(),
            actor: word.map_or_else(|| self.control.around.actor.clone(), Word::actor),
            kind: Kind::fixed(kind).into(),
            action_id: None,
            body: json!({
                "operator": operator.name, "key": operator.key,
                "word": word.map(|word| &word.note),
            }),
        })?;
        Ok(())
    }
}

impl Word {
    fn actor(&self) -> Actor {
        format!("operator:{}", self.operator)
            .parse()
            .unwrap_or_else(|_| Actor::safepoint())
    }
}

/// Whether an operator, who is one now, has said exactly this.
fn check(sql: &mut dyn Sql, word: &Word, says: &str) -> Result<(), ControlError> {
    let operator = active(sql, &word.operator)?;
    let key = operator.public().map_err(key_error(&word.operator))?;
    let text = key.open(&word.note).map_err(key_error(&word.operator))?;
    let statement: Option<Statement> =
        strict::read_as(text.trim_end().as_bytes(), strict::Limits::default()).ok();
    let fits = statement.is_some_and(|it| it.statement == PURPOSE && it.says == says);
    match fits {
        true => Ok(()),
        false => Err(ControlError::Operator {
            reason: "what was signed is not what is to be done".to_owned(),
        }),
    }
}
