//! Cedar policies, behind one door where every error is a denial.
//!
//! Cedar itself skips a policy that fails while it is evaluated, also one that
//! forbids, and may then allow. Here the answer is `Permit` only when Cedar
//! allows *and* no policy failed. Policies are validated strictly before they
//! are used ([`schema`]), and the request is built from typed parts
//! ([`request`]). Policies never see a clock, and read nothing.
//!
//! What policies can say is written down in `docs/cedar.md`.

mod request;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use cedar_policy::{
    Authorizer, Decision, Effect, PolicyId, PolicySet, Response, ValidationMode, Validator,
};
use miette::Diagnostic;
use safepoint_model::text;
use serde_json::Value;

use crate::atlas::RiskTier;
use crate::nesting::{self, Bounds};

/// The most bytes of a policy set.
pub const MAX_BYTES: usize = 64 * 1024;
/// The most policies of a set.
pub const MAX_POLICIES: usize = 256;
/// How deep brackets may stand in each other, and how many operators one
/// policy may have.
const BOUNDS: Bounds = Bounds {
    brackets: 32,
    operators: 512,
};
/// How many of Cedar's errors are named in a reason.
const MAX_NAMED: usize = 5;

/// A policy set that cannot be used.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message}")]
pub struct CedarError {
    /// What is wrong.
    pub message: String,
    /// Where in the text, in bytes.
    pub offset: Option<usize>,
}

/// What is asked of a policy set.
#[derive(Clone, Copy, Debug)]
pub struct CedarRequest<'a> {
    /// Who asks.
    pub principal: &'a str,
    /// For which action.
    pub action: &'a str,
    /// In which session.
    pub session: &'a str,
    /// Of what risk.
    pub risk: RiskTier,
    /// With which parameters.
    pub parameters: &'a Value,
    /// With which capabilities open.
    pub unlocked: &'a [&'a str],
}

/// What a policy set says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CedarVerdict {
    /// A policy permits it, and none forbids it.
    Permit,
    /// A policy forbids it, none permits it, or one could not be evaluated.
    Deny(String),
}

/// A policy set, ready for use.
#[derive(Debug)]
pub struct CedarPolicies {
    policies: PolicySet,
    authorizer: Authorizer,
    names: request::Names,
}

impl CedarPolicies {
    /// Reads a policy set, and validates it against the schema of requests.
    /// All mistakes are given, not just the first.
    pub fn parse(text: &str) -> Result<Self, Vec<CedarError>> {
        if text.len() > MAX_BYTES {
            let message = format!(
                "the policies have {} bytes, and {MAX_BYTES} are the most: use several policies",
                text.len()
            );
            return Err(vec![mistake(message, Some(MAX_BYTES))]);
        }
        nesting::check_statements(text, BOUNDS).map_err(|deep| {
            let message = "a policy nests too deep, or has too many operators: split it".to_owned();
            vec![mistake(message, Some(deep.offset))]
        })?;
        let policies: PolicySet = text.parse().map_err(|errors: cedar_policy::ParseErrors| {
            errors.iter().map(explain).collect::<Vec<_>>()
        })?;
        check_shape(&policies)?;
        let schema = schema::schema_for(&policies)?;
        let result = Validator::new(schema).validate(&policies, ValidationMode::Strict);
        if !result.validation_passed() {
            let mut errors: Vec<CedarError> = result.validation_errors().map(explain).collect();
            errors.sort_by(|left, right| {
                (left.offset, &left.message).cmp(&(right.offset, &right.message))
            });
            // The same mistake is found once for each action that is named.
            errors.dedup();
            return Err(errors);
        }
        let names = request::Names::new().map_err(|message| vec![mistake(message, None)])?;
        Ok(Self {
            policies,
            authorizer: Authorizer::new(),
            names,
        })
    }

    /// Decides about a request. Everything that goes wrong is a denial.
    pub fn decide(&self, request: &CedarRequest<'_>) -> CedarVerdict {
        let (request, entities) = match self.names.build(request) {
            Ok(built) => built,
            Err(message) => {
                return CedarVerdict::Deny(format!(
                    "the request cannot be put to Cedar: {message}"
                ));
            }
        };
        let response = self
            .authorizer
            .is_authorized(&request, &self.policies, &entities);
        self.verdict(&response)
    }

    fn verdict(&self, response: &Response) -> CedarVerdict {
        let failed: BTreeSet<String> = response
            .diagnostics()
            .errors()
            .map(|error| {
                let shown = text::line(&error.to_string()).text;
                text::shorten(&shown, 300)
            })
            .collect();
        if !failed.is_empty() {
            return CedarVerdict::Deny(format!(
                "a policy could not be evaluated, which denies: {}",
                list(failed)
            ));
        }
        let reasons: BTreeSet<String> = response
            .diagnostics()
            .reason()
            .map(|id| self.name(id))
            .collect();
        match response.decision() {
            Decision::Allow => CedarVerdict::Permit,
            Decision::Deny if reasons.is_empty() => {
                CedarVerdict::Deny("no policy permits it".to_owned())
            }
            Decision::Deny => CedarVerdict::Deny(format!("forbidden by {}", list(reasons))),
        }
    }

    /// What a policy is called: its `@id`, or its place in the text.
    fn name(&self, id: &PolicyId) -> String {
        match self.policies.annotation(id, "id") {
            Some(name) => format!("`{}`", text::shorten(&text::line(name).text, 100)),
            None => format!("`{id}`"),
        }
    }
}

fn list(names: BTreeSet<String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let mut named: Vec<String> = names.into_iter().take(MAX_NAMED).collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

/// What a set must have, and must not, whatever its policies say.
fn check_shape(policies: &PolicySet) -> Result<(), Vec<CedarError>> {
    if policies.templates().next().is_some() {
        let message = "a template (`?principal`, `?resource`) is never used: write the policy out";
        return Err(vec![mistake(message.to_owned(), None)]);
    }
    let count = policies.policies().count();
    if count > MAX_POLICIES {
        let message = format!("there are {count} policies, and {MAX_POLICIES} are the most");
        return Err(vec![mistake(message, None)]);
    }
    if !policies
        .policies()
        .any(|policy| policy.effect() == Effect::Permit)
    {
        let message = "no policy permits anything, so all would be denied: add a `permit`";
        return Err(vec![mistake(message.to_owned(), None)]);
    }
    Ok(())
}

fn mistake(message: String, offset: Option<usize>) -> CedarError {
    CedarError { message, offset }
}

/// An error of Cedar's, with its help, on one line, and its place.
fn explain(error: &(impl Diagnostic + ?Sized)) -> CedarError {
    let mut message = error.to_string();
    if let Some(help) = error.help() {
        message = format!("{message}: {help}");
    }
    let offset = error
        .labels()
        .and_then(|mut labels| labels.next())
        .map(|label| label.offset());
    CedarError {
        message: text::shorten(&text::line(&message).text, 500),
        offset,
    }
}
