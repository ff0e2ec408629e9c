//! A hold: an action that waits for a person.
//!
//! It has the canonical form that will run if the answer is yes, and it is what
//! every surface shows: none of them makes up anything of its own.

use std::collections::{BTreeMap, BTreeSet};

use safepoint_model::{ActionId, Digest, Frame, HoldId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Canonical, Choice, Decision, Level, Reversibility, Risk, ScopeDelta, SideEffect,
    SignedDecision, Trigger,
};

/// The version of this form.
const FORMAT: u32 = 1;

/// An action that waits for a person.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// The version of this form.
    pub format: u32,
    /// Its name.
    #[schemars(with = "String")]
    pub hold_id: HoldId,
    /// The action that waits.
    #[schemars(with = "String")]
    pub action_id: ActionId,
    /// When it began to wait.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// Until when somebody can decide.
    #[schemars(with = "String")]
    pub expires_at: Timestamp,
    /// Why it waits.
    pub triggers: Vec<Trigger>,
    /// The rules that say so.
    pub basis: Vec<Basis>,
    /// What is new about it.
    pub scope_delta: ScopeDelta,
    /// What can be taken back, and what cannot.
    pub coverage: Coverage,
    /// How much is trusted of what it relies on, with versions.
    pub trust: BTreeMap<String, (Level, u64)>,
    /// Exactly what would be done.
    pub canonical: Canonical,
    /// What a yes is bound to.
    #[schemars(with = "String")]
    pub fingerprint: Digest,
    /// How many different operators must say yes.
    pub quorum: u32,
    /// Who proposed it.
    pub proposer: Proposer,
    /// What was decided so far.
    pub decisions: Vec<SignedDecision>,
    /// Where it stands.
    pub state: HoldState,
    /// A run of the same that was cut off, and of which nobody knows how far it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_run: Option<EarlierRun>,
}

/// A run of the same action of which nobody saw the end.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierRun {
    /// The action.
    #[schemars(with = "String")]
    pub action_id: ActionId,
    /// The hold that was approved for it.
    #[schemars(with = "String")]
    pub hold_id: HoldId,
    /// When it was found cut off.
    #[schemars(with = "String")]
    pub time: Timestamp,
}

impl EarlierRun {
    /// What whoever asks, and whoever decides, is told.
    pub fn sentence(&self) -> String {
        format!(
            "an earlier run of the same, {}, was cut off: nobody knows how far it came",
            self.action_id
        )
    }
}

/// Who proposed an action.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Proposer {
    /// As the trail names them.
    pub actor: String,
    /// What they want it for.
    pub objective: Option<String>,
}

/// A rule that wants a person to decide.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Basis {
    /// The rule: a policy, or a boundary.
    pub policy_id: String,
    /// The atlas it is in, if it is in one.
    pub atlas_id: Option<String>,
    /// Why, in its own words.
    pub reason: String,
}

/// What can be taken back.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// The checkpoint that was taken.
    pub checkpoint_id: Option<String>,
    /// What it covers.
    pub covered: Vec<String>,
    /// What nothing covers, and why.
    pub not_covered: Vec<String>,
}

/// Where a hold stands.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldState {
    /// It waits.
    Pending,
    /// It may go on: a permit was issued.
    Approved,
    /// It may not.
    Denied,
    /// Everything waits until an operator acts.
    Halted,
    /// Nobody decided in time.
    Expired,
    /// Its session ended before anybody decided.
    Closed,
}

/// Why a decision about a hold does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HoldError {
    /// It is about another hold or another form.
    #[error("the decision is about another fingerprint than the one that waits")]
    Fingerprint,
    /// The hold no longer waits.
    #[error("the hold no longer waits: it is {0}")]
    Settled(&'static str),
    /// It is too late.
    #[error("the hold has expired")]
    Expired,
    /// The second confirmation is missing.
    #[error("it cannot be taken back: a second confirmation is needed, the word `{0}`")]
    Confirm(String),
    /// Operators must agree about what follows, too.
    #[error("`{0}` said yes to something else: another envelope, or none")]
    Disagrees(String),
    /// A longer scope where there is none.
    #[error("only a host, a socket or a file outside the fence is opened for longer than once")]
    Scope,
    /// A longer scope where each time more than one operator must agree.
    #[error("a rule wants {0} operators each time: it is approved once, not for longer")]
    ScopeOfSeveral(u32),
    /// The same operator again.
    #[error("`{0}` has said yes already, and another operator is needed")]
    Again(String),
}

/// What every surface shows of a hold: the `checkpoint_pending` payload.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
pub struct Pending {
    /// Why it waits, in a word.
    pub checkpoint_type: Trigger,
    /// Why it waits, in sentences.
    pub trigger_description: String,
    /// What would be done, in a line.
    pub canonical_request_summary: String,
    /// What is new about it.
    pub scope_delta: ScopeDelta,
    /// How much is at stake.
    pub risk_classification: Risk,
    /// The kinds of effect.
    pub side_effect_class: BTreeSet<SideEffect>,
    /// The rules that say so.
    pub policy_basis: Vec<Basis>,
    /// What a yes would mean.
    pub authorization_statement: String,
    /// How much is trusted of what it relies on.
    pub trust_state: BTreeMap<String, Level>,
    /// Whether it can be taken back.
    pub reversibility_class: Reversibility,
    /// What a yes is bound to.
    #[schemars(with = "String")]
    pub fingerprint: Digest,
    /// Exactly what would be done.
    pub canonical_form: Canonical,
    /// The hold.
    #[schemars(with = "String")]
    pub hold_id: HoldId,
    /// The action.
    #[schemars(with = "String")]
    pub action_id: ActionId,
    /// The session.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// Since when it waits.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// Until when somebody can decide.
    #[schemars(with = "String")]
    pub expires_at: Timestamp,
    /// What can be undone, and what cannot.
    pub coverage: Coverage,
    /// Who proposed it, and what for.
    pub proposer: Proposer,
    /// The word that a second confirmation repeats; none when one yes is enough.
    pub confirm: Option<String>,
    /// How many operators must say yes.
    pub quorum: u32,
    /// Who has decided so far.
    pub decided_by: Vec<String>,
    /// Where it stands.
    pub state: HoldState,
    /// The older hold of the same session that is decided before this one can be approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub waits_for: Option<HoldId>,
    /// A run of the same that was cut off, and of which nobody knows how far it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier_run: Option<EarlierRun>,
}

impl Hold {
    /// The version of this form.
    pub const FORMAT: u32 = FORMAT;

    /// The word that a second confirmation repeats, where one is needed. It comes from the
    /// form, so that no yes to something else has it in it.
    pub fn confirm(&self) -> Option<String> {
        if !self.canonical.reversibility.is_final() {
            return None;
        }
        let digest = Frame::new("safepoint/confirm/v1")
            .field(self.hold_id.as_str().as_bytes())
            .field(self.fingerprint.as_bytes())
            .digest();
        let letters: String = digest.to_string().chars().take(6).collect();
        Some(format!("final-{letters}"))
    }

    /// Takes a decision whose signature was checked.
    pub fn decide(
        &self,
        decision: &Decision,
        signed: SignedDecision,
        now: Timestamp,
    ) -> Result<Self, HoldError> {
        if decision.fingerprint != self.fingerprint || decision.hold_id != self.hold_id {
            return Err(HoldError::Fingerprint);
        }
        match self.state {
            HoldState::Pending | HoldState::Halted => {}
            HoldState::Approved => return Err(HoldError::Settled("approved")),
            HoldState::Denied => return Err(HoldError::Settled("denied")),
            HoldState::Expired => return Err(HoldError::Expired),
            HoldState::Closed => return Err(HoldError::Settled("closed, since its session ended")),
        }
        // A halt lasts until somebody acts, however long that takes.
        if self.state == HoldState::Pending && self.expires_at <= now {
            return Err(HoldError::Expired);
        }
        let mut next = self.clone();
        next.decisions.push(signed);
        next.state = match decision.choice {
            Choice::Deny => HoldState::Denied,
            Choice::Halt => HoldState::Halted,
            Choice::Continue | Choice::Modify | Choice::PerStep => {
                if let Some(word) = self
                    .confirm()
                    .filter(|word| decision.confirm.as_ref() != Some(word))
                {
                    return Err(HoldError::Confirm(word));
                }
                if decision.scope.is_some() {
                    if !self.takes_scope(decision.choice) {
                        return Err(HoldError::Scope);
                    }
                    if self.quorum > 1 {
                        return Err(HoldError::ScopeOfSeveral(self.quorum));
                    }
                }
                let before = self.approvers();
                if before.contains(&decision.operator) {
                    return Err(HoldError::Again(decision.operator.clone()));
                }
                // A wider scope needs as many as the yes itself does.
                let other = |it: &Decision| {
                    it.choice != decision.choice
                        || it.envelope != decision.envelope
                        || it.scope != decision.scope
                };
                if let Some(other) = self.yeses().find(other) {
                    return Err(HoldError::Disagrees(other.operator));
                }
                match u32::try_from(before.len() + 1).unwrap_or(u32::MAX) >= self.quorum {
                    true => HoldState::Approved,
                    false => self.state,
                }
            }
        };
        Ok(next)
    }

    /// Whether a yes can last longer than once.
    fn takes_scope(&self, choice: Choice) -> bool {
        choice == Choice::Continue && self.canonical.outside_target().is_some()
    }

    /// Who has said yes so far.
    pub fn approvers(&self) -> BTreeSet<String> {
        self.yeses().map(|decision| decision.operator).collect()
    }

    fn yeses(&self) -> impl Iterator<Item = Decision> {
        let claimed = self.decisions.iter().filter_map(|it| it.claimed().ok());
        claimed.filter(|decision| decision.choice.is_yes())
    }

    /// What every surface shows.
    pub fn pending(&self) -> Pending {
        let canonical = &self.canonical;
        let target = canonical.outside_target();
        let wants =
            target.map(|it| format!("a program behind the fence wants to {}", it.sentence()));
        let descriptions: Vec<&str> = self.triggers.iter().map(|it| it.description()).collect();
        let decided = self
            .decisions
            .iter()
            .filter_map(|signed| signed.claimed().ok());
        Pending {
            checkpoint_type: self
                .triggers
                .first()
                .copied()
                .unwrap_or(Trigger::PolicyDefined),
            trigger_description: wants
                .into_iter()
                .chain(descriptions.into_iter().map(str::to_owned))
                .chain(self.earlier_run.as_ref().map(EarlierRun::sentence))
                .collect::<Vec<String>>()
                .join("; "),
            canonical_request_summary: canonical.summary(),
            scope_delta: self.scope_delta.clone(),
            risk_classification: canonical.risk,
            side_effect_class: canonical.side_effects.clone(),
            policy_basis: self.basis.clone(),
            authorization_statement: self.statement(),
            trust_state: self
                .trust
                .iter()
                .map(|(boundary, (level, _))| (boundary.clone(), *level))
                .collect(),
            reversibility_class: canonical.reversibility,
            fingerprint: self.fingerprint,
            canonical_form: canonical.clone(),
            hold_id: self.hold_id.clone(),
            action_id: self.action_id.clone(),
            session_id: canonical.session_id.clone(),
            since: self.since,
            expires_at: self.expires_at,
            coverage: self.coverage.clone(),
            proposer: self.proposer.clone(),
            confirm: self.confirm(),
            quorum: self.quorum,
            decided_by: decided.map(|decision| decision.operator).collect(),
            state: self.state,
            waits_for: None,
            earlier_run: self.earlier_run.clone(),
        }
    }

    /// What a yes would mean.
    fn statement(&self) -> String {
        if let Some(target) = self.canonical.outside_target() {
            let longer = match self.quorum {
                0 | 1 => {
                    "; with `--for session` or `--for project`, each time this session or this workspace wants it"
                }
                _ => "",
            };
            return format!(
                "A yes {}, before {}{longer}.",
                target.opening(None),
                self.expires_at
            );
        }
        let back = match self.canonical.reversibility {
            Reversibility::Reversible => "It can be undone.",
            Reversibility::Partly => "It can be undone in part only.",
            Reversibility::Irreversible => "It cannot be undone.",
            Reversibility::Unknown => "Nobody knows whether it can be undone.",
        };
        format!(
            "A yes lets exactly this run, once, before {}, if nothing it names has changed. {back}",
            self.expires_at
        )
    }
}

/// What a tool is about, by the names that clients use for it.
const ABOUT: [&str; 5] = ["file_path", "filePath", "path", "notebook_path", "url"];

impl Canonical {
    /// The one thing a tool is about, if it is about one; otherwise all that it is given.
    fn told(&self, given: &str) -> String {
        let fields: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(given).unwrap_or_default();
        let about = ABOUT
            .into_iter()
            .find_map(|name| fields.get(name)?.as_str());
        let inside = |path: &str| {
            let path = path.strip_prefix(&self.workspace.path)?.strip_prefix('/')?;
            Some(path.to_owned())
        };
        match about {
            Some(about) => inside(about).unwrap_or_else(|| about.to_owned()),
            None => given.to_owned(),
        }
    }

    /// What would be done, in a line.
    pub fn summary(&self) -> String {
        let quoted = |word: &String| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
            match !word.is_empty() && word.chars().all(plain) {
                true => word.clone(),
                false => format!("'{}'", word.replace('\'', r"'\''")),
            }
        };
        if let Some(target) = self.outside_target() {
            return format!("{} {}", target.kind.action(), quoted(&target.name));
        }
        match (self.tool.is_a_clients(), self.argv.as_slice()) {
            // A line for its shell, or what its tool is given.
            (true, [line]) => line.clone(),
            (true, [name, given]) => format!("{name} {}", self.told(given)),
            _ => {
                let words: Vec<String> = self.argv.iter().map(quoted).collect();
                words.join(" ")
            }
        }
    }
}
