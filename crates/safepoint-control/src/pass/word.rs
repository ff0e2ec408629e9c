//! An operator's word for what is not a hold: whom and what to trust, which permit to take back,
//! who else decides. It is signed like a decision, and kept in the trail beside what it did.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use safepoint_authority::{
    Boundary, DenialCode, Executable, Level, Operator, OperatorKey, Permit, Trust,
};
use safepoint_model::{Digest, Frame, Timestamp, json as strict};
use safepoint_store::{Durability, Sql};
use safepoint_trail::note::{PublicKey, Signer};
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing, page_of_kinds};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::desk::{active, key_error};
use super::{Desk, Signing};
use crate::kept::Kept;
use crate::world::{Search, interpreters, open_program};
use crate::{ControlError, kept};

/// What kind of statement it is, and in which version.
const PURPOSE: &str = "safepoint/word/v1";

/// What an operator said, with their signature.
#[derive(Clone, Debug)]
pub struct Word {
    operator: String,
    note: String,
    made: Made,
}

/// Where a word was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// Here and now.
    Here,
    /// Elsewhere, and handed in: it may be an old one.
    Elsewhere,
}

/// A word that was handed in once, and counts no second time.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Spent {
    format: u32,
    digest: Digest,
    time: Timestamp,
}

impl Kept for Spent {
    const KIND: &'static str = "word";
    const WHAT: &'static str = "word that was used";

    fn id(&self) -> String {
        self.digest.to_string()
    }
    fn time(&self) -> Timestamp {
        self.time
    }
    fn is_open(&self) -> bool {
        false
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    statement: String,
    operator: String,
    says: String,
    time: Timestamp,
}

/// The text of a word: one line.
fn statement(operator: &str, says: &str, time: Timestamp) -> Result<String, ControlError> {
    let statement = Statement {
        statement: PURPOSE.to_owned(),
        operator: operator.to_owned(),
        says: says.to_owned(),
        time,
    };
    let bytes = strict::canonical_of(&statement).map_err(|error| ControlError::Proposal {
        reason: format!("it cannot be written down exactly: {error}"),
    })?;
    Ok(format!("{}\n", String::from_utf8_lossy(&bytes)))
}

/// What an operator says, signed where their key is, to be handed in elsewhere.
pub fn signed_word(signer: &Signer, says: &str, now: Timestamp) -> Result<String, ControlError> {
    Ok(signer.sign(&statement(signer.public().name(), says, now)?))
}

/// The content of a program as trust in it is for: its own, and that of its interpreters.
pub fn program_content(
    path: &str,
    variables: &[(OsString, OsString)],
) -> Result<Vec<Executable>, ControlError> {
    if !path.starts_with('/') {
        return Err(ControlError::Proposal {
            reason: format!(
                "trust in a program is for its content, and `{path}` is no absolute path here; a program of another machine is trusted by evidence (`trust_after`)"
            ),
        });
    }
    let search = Search::new(variables);
    let root = Path::new("/");
    let program = open_program(&search, path, root)?;
    let interpreters = interpreters(&search, &program.path, root)?;
    let interpreters = interpreters.into_iter().map(|it| it.executable);
    Ok(std::iter::once(program.executable)
        .chain(interpreters)
        .collect())
}

impl Desk<'_> {
    /// An operator says something, and signs it.
    pub fn word(
        &self,
        operator: &Operator,
        signing: &dyn Signing,
        says: &str,
    ) -> Result<Word, ControlError> {
        let text = statement(&operator.name, says, self.control.around.clock.now())?;
        Ok(Word {
            operator: operator.name.clone(),
            note: signing.sign(operator, &text)?,
            made: Made::Here,
        })
    }

    /// What an operator has signed elsewhere. Whether it counts is found out when it is used.
    pub fn word_from(&self, note: &str) -> Result<Word, ControlError> {
        let (text, _) = note
            .split_once("\n\n")
            .ok_or(ControlError::SignedElse { reason: NO_WORD })?;
        let claimed = read(text).ok_or(ControlError::SignedElse { reason: NO_WORD })?;
        Ok(Word {
            operator: claimed.operator,
            note: note.to_owned(),
            made: Made::Elsewhere,
        })
    }

    /// Takes a permit back that was not used yet.
    pub fn revoke(&self, prefix: &str, word: &Word) -> Result<Permit, ControlError> {
        let now = self.control.around.clock.now();
        self.control.trail.write(Durability::Sync, |writing| {
            let permit: Permit = kept::find(writing.sql(), prefix)?;
            self.check(writing, word, &format!("permit revoke {prefix}"))?;
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

    /// An operator trusts a boundary; a program or a workflow for this `content`.
    pub fn grant(
        &self,
        boundary: Boundary,
        level: Level,
        reason: &str,
        content: &[Executable],
        word: &Word,
    ) -> Result<Trust, ControlError> {
        let says = format!("trust {boundary} {}", level.as_str());
        self.set_trust(boundary, "granted", word, &says, |trust, now| {
            let trust = trust.about(content);
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
            self.check(writing, word, says)?;
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
                Some(word) => self.check(writing, word, &format!("operator add {name} {key}"))?,
                None if others.is_empty() => nobody_decides(writing.sql())?,
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
            self.check(writing, word, &format!("operator remove {name}"))?;
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
    /// Who says it.
    pub fn operator(&self) -> &str {
        &self.operator
    }

    /// What was said, with its signature.
    pub(crate) fn note(&self) -> &str {
        &self.note
    }

    pub(crate) fn actor(&self) -> Actor {
        format!("operator:{}", self.operator)
            .parse()
            .unwrap_or_else(|_| Actor::safepoint())
    }
}

/// Refuses to begin anew where the trail tells of somebody who may decide: their rows were taken
/// away.
fn nobody_decides(sql: &mut dyn Sql) -> Result<(), ControlError> {
    #[derive(Deserialize)]
    struct Told {
        operator: String,
    }
    const PAGE: usize = 500;
    let mut deciding = BTreeSet::new();
    let mut from = 0;
    loop {
        let kinds = ["operator_added", "operator_removed"];
        let (page, end) = page_of_kinds(sql, &kinds, from, PAGE)?;
        for entry in &page {
            let told: Told = serde_json::from_str(&entry.body).map_err(|_| gone("?"))?;
            match entry.kind.as_str() {
                "operator_added" => deciding.insert(told.operator),
                _ => deciding.remove(&told.operator),
            };
        }
        if page.len() < PAGE {
            break;
        }
        from = end;
    }
    deciding.first().map_or(Ok(()), |name| Err(gone(name)))
}

fn gone(operator: &str) -> ControlError {
    ControlError::Tampered {
        what: "operator",
        id: operator.to_owned(),
    }
}

/// What is signed is no word at all.
const NO_WORD: &str = "what is signed is not an operator's word";

fn read(text: &str) -> Option<Statement> {
    let bytes = text.trim_end().as_bytes();
    let statement: Statement = strict::read_as(bytes, strict::Limits::default()).ok()?;
    (statement.statement == PURPOSE).then_some(statement)
}

impl Desk<'_> {
    /// Whether an operator, who is one now, has said exactly this.
    pub(crate) fn check(
        &self,
        writing: &mut Writing<'_>,
        word: &Word,
        says: &str,
    ) -> Result<(), ControlError> {
        let operator = active(writing.sql(), &word.operator)?;
        let key = operator.public().map_err(key_error(&word.operator))?;
        let text = key.open(&word.note).map_err(key_error(&word.operator))?;
        let said = read(text).filter(|it| it.says == says && it.operator == word.operator);
        let Some(said) = said else {
            return Err(ControlError::Operator {
                reason: "what was signed is not what is to be done".to_owned(),
            });
        };
        match word.made {
            Made::Here => Ok(()),
            Made::Elsewhere => self.spend(writing, &said, text),
        }
    }

    /// A word from elsewhere is new, and counts once: everybody who reads the trail has the
    /// old ones.
    fn spend(
        &self,
        writing: &mut Writing<'_>,
        said: &Statement,
        text: &str,
    ) -> Result<(), ControlError> {
        let now = self.control.around.clock.now();
        let (first, last) = super::signed::around(now);
        if said.time < first || said.time > last {
            return Err(ControlError::SignedElse {
                reason: "it was not signed just now",
            });
        }
        let spent = Spent {
            format: 1,
            // The text, not the signature: of one text there may be several.
            digest: Frame::new("safepoint/spent-word/v1")
                .field(text.as_bytes())
                .digest(),
            time: now,
        };
        if kept::get::<Spent>(writing.sql(), &spent.id())?.is_some() {
            return Err(ControlError::SignedElse {
                reason: "it was used before",
            });
        }
        kept::put(writing, &spent)
    }
}
