//! Tokens: what somebody shows who asks over a connection.
//!
//! A token is 32 random bytes. What is kept is a SHA-256 of them: there is nothing to guess
//! in 256 random bits, so a slow or keyed hash would protect nothing more, and would cost
//! each request its time. Rows are documents like holds and operators: one that was
//! written, changed or taken away behind our back does not count.

use safepoint_authority::Operator;
use safepoint_model::{Digest, Entropy, EntropyError, Frame, Timestamp};
use safepoint_store::Durability;
use safepoint_trail::{Draft, Kind, Stream, Writing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::kept::{self, Kept};
use crate::{Control, ControlError};

/// What every token begins with, so that one that leaked is found.
const PREFIX: &str = "spt_";

/// What a token lets somebody do.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenRole {
    /// Works in sessions of its own. It decides nothing.
    Agent,
    /// Decides, with a signature of the operator whom the token names.
    Operator,
    /// Tries out rules.
    Steward,
    /// Reads everything, and changes nothing.
    Auditor,
}

impl TokenRole {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Operator => "operator",
            Self::Steward => "steward",
            Self::Auditor => "auditor",
        }
    }
}

/// A token, without what opens anything.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The version of this form.
    pub format: u32,
    /// Its name. It is given once: what a token has done stays its own.
    pub name: String,
    /// What it lets somebody do.
    pub role: TokenRole,
    /// The operator it belongs to, where it is one's.
    pub operator: Option<String>,
    /// What it is limited to.
    pub scopes: Vec<String>,
    /// The hash of what is shown.
    #[schemars(with = "String")]
    pub digest: Digest,
    /// Since when.
    #[schemars(with = "String")]
    pub created: Timestamp,
    /// Until when; for ever without it.
    #[schemars(with = "Option<String>")]
    pub expires_at: Option<Timestamp>,
    /// When it was last exchanged for another.
    #[schemars(with = "Option<String>")]
    pub rotated: Option<Timestamp>,
    /// When it was taken back.
    #[schemars(with = "Option<String>")]
    pub revoked: Option<Timestamp>,
}

/// A token that is to be made.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Its name.
    pub name: String,
    /// What it lets somebody do.
    pub role: TokenRole,
    /// The operator it belongs to, where it is one's.
    pub operator: Option<String>,
    /// What it is limited to.
    pub scopes: Vec<String>,
    /// Until when.
    pub expires_at: Option<Timestamp>,
}

/// What somebody shows: a token, or a cookie. It is neither printed by accident nor kept.
pub struct Secret(String);

impl Secret {
    /// Thirty-two random bytes, as text.
    pub(crate) fn generate(prefix: &str, entropy: &dyn Entropy) -> Result<Self, EntropyError> {
        let mut bytes = [0; 32];
        entropy.fill(&mut bytes)?;
        Ok(Self(format!("{prefix}{}", Digest::from_bytes(bytes))))
    }

    /// The text, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The hash of what is shown; `None` for what no token looks like.
fn digest_of(shown: &str) -> Option<Digest> {
    let bytes: Digest = shown.strip_prefix(PREFIX)?.parse().ok()?;
    Some(
        Frame::new("safepoint/token/v1")
            .field(bytes.as_bytes())
            .digest(),
    )
}

impl Kept for Token {
    const KIND: &'static str = "token";
    const WHAT: &'static str = "token";

    fn id(&self) -> String {
        self.name.clone()
    }
    fn time(&self) -> Timestamp {
        self.created
    }
    fn is_open(&self) -> bool {
        self.revoked.is_none()
    }
    fn topic(&self) -> Option<String> {
        Some(self.digest.to_string())
    }
}

impl Token {
    /// Whether it opens anything now.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && self.expires_at.is_none_or(|end| end > now)
    }
}

impl Control {
    /// Makes a token. What it returns beside it is never seen again.
    pub fn create_token(&self, new: &NewToken) -> Result<(Token, Secret), ControlError> {
        let (secret, digest) = self.secret()?;
        let token = Token {
            format: 1,
            name: new.name.clone(),
            role: new.role,
            operator: new.operator.clone(),
            scopes: new.scopes.clone(),
            digest,
            created: self.around.clock.now(),
            expires_at: new.expires_at,
            rotated: None,
            revoked: None,
        };
        self.trail.write(Durability::Sync, |writing| {
            if kept::get::<Token>(writing.sql(), &token.name)?.is_some() {
                return Err(ControlError::TokenExists {
                    name: token.name.clone(),
                });
            }
            if let Some(name) = &token.operator {
                crate::pass::active_operator(writing.sql(), name)?;
            }
            self.keep_token(writing, &token, "token_created")
        })?;
        Ok((token, secret))
    }

    /// Exchanges what is shown for a token. The old one opens nothing from now on.
    pub fn rotate_token(&self, name: &str) -> Result<(Token, Secret), ControlError> {
        let (secret, digest) = self.secret()?;
        let now = self.around.clock.now();
        let token = self.trail.write(Durability::Sync, |writing| {
            let token = Token {
                digest,
                rotated: Some(now),
                ..living(writing, name)?
            };
            self.keep_token(writing, &token, "token_rotated")?;
            Ok::<_, ControlError>(token)
        })?;
        Ok((token, secret))
    }

    /// Takes a token back, for good and at once.
    pub fn revoke_token(&self, name: &str) -> Result<Token, ControlError> {
        let now = self.around.clock.now();
        self.trail.write(Durability::Sync, |writing| {
            let token = Token {
                revoked: Some(now),
                ..living(writing, name)?
            };
            self.keep_token(writing, &token, "token_revoked")?;
            Ok(token)
        })
    }

    /// Tokens of any state, the newest first.
    pub fn tokens(&self) -> Result<Vec<Token>, ControlError> {
        self.trail.store().read(|sql| kept::newest(sql, 10_000))
    }

    /// The token that somebody shows, if it opens anything now. It is looked up each time:
    /// one that was taken back is taken back for every server of the store.
    pub fn token_of(&self, shown: &str) -> Result<Option<Token>, ControlError> {
        let Some(digest) = digest_of(shown) else {
            return Ok(None);
        };
        let now = self.around.clock.now();
        self.trail.store().read(|sql| {
            let found: Vec<Token> = kept::about(sql, &digest.to_string())?;
            let fits = |token: &Token| token.digest == digest && token.is_good(now);
            let Some(token) = found.into_iter().find(fits) else {
                return Ok(None);
            };
            // Whoever is no operator any more has no token of one.
            let gone = match &token.operator {
                None => false,
                Some(name) => kept::get::<Operator>(sql, name)?
                    .is_none_or(|operator| operator.removed.is_some()),
            };
            Ok((!gone).then_some(token))
        })
    }

    fn secret(&self) -> Result<(Secret, Digest), ControlError> {
        let secret = Secret::generate(PREFIX, &*self.around.entropy)?;
        let digest = digest_of(secret.reveal());
        let digest = digest.ok_or(ControlError::Meanwhile("no token could be made"))?;
        Ok((secret, digest))
    }

    fn keep_token(
        &self,
        writing: &mut Writing<'_>,
        token: &Token,
        kind: &'static str,
    ) -> Result<(), ControlError> {
        kept::put(writing, token)?;
        writing.append(Draft {
            stream: Stream::store(),
            actor: self.around.actor.clone(),
            kind: Kind::fixed(kind).into(),
            action_id: None,
            body: json!({
                "name": token.name, "role": token.role, "operator": token.operator,
                "scopes": token.scopes, "expires_at": token.expires_at,
            }),
        })?;
        Ok(())
    }
}

/// The token of this name that was not taken back.
fn living(writing: &mut Writing<'_>, name: &str) -> Result<Token, ControlError> {
    let token: Option<Token> = kept::get(writing.sql(), name)?;
    token
        .filter(|token| token.revoked.is_none())
        .ok_or_else(|| ControlError::NotFound {
            what: "token",
            name: name.to_owned(),
        })
}
