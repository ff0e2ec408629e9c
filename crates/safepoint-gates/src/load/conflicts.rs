//! Atlases that are loaded together: where they disagree.
//!
//! The strictest verdict wins whatever they say, so only two atlases of one
//! name are an error. The rest is told because somebody is in for a surprise.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::check::{Role, visit};
use super::suggest::shown;
use super::{Problem, Severity};
use crate::atlas::{AtlasAction, AtlasManifest, PolicyType};
use crate::pattern::{Pattern, PatternSet};

/// Where `atlases` contradict each other.
pub fn conflicts(atlases: &[&AtlasManifest]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut first: HashMap<&str, &AtlasManifest> = HashMap::new();
    let mut distinct: Vec<&AtlasManifest> = Vec::new();
    for atlas in atlases {
        match first.get(atlas.atlas_id.as_str()) {
            None => {
                first.insert(&atlas.atlas_id, atlas);
                distinct.push(atlas);
            }
            Some(earlier) if earlier == atlas => {}
            Some(_) => problems.push(problem(
                Severity::Error,
                "/atlas_id".to_owned(),
                format!(
                    "two different atlases are called `{}`",
                    shown(&atlas.atlas_id)
                ),
                "give one of them another `atlas_id`, or leave it out",
            )),
        }
    }
    definitions(&distinct, &mut problems);
    verdicts(&distinct, &mut problems);
    problems
}

/// The same action, defined in two ways.
fn definitions(atlases: &[&AtlasManifest], problems: &mut Vec<Problem>) {
    let mut first: HashMap<&str, (&AtlasManifest, &AtlasAction)> = HashMap::new();
    for atlas in atlases {
        for (index, action) in atlas.actions.iter().enumerate() {
            let id = action.action_id.as_str();
            let (other, earlier) = *first.entry(id).or_insert((atlas, action));
            if other.atlas_id == atlas.atlas_id {
                continue;
            }
            let (here, there) = (shown(&atlas.atlas_id), shown(&other.atlas_id));
            if earlier.risk_tier != action.risk_tier {
                problems.push(problem(
                    Severity::Warning,
                    format!("/actions/{index}/risk_tier"),
                    format!(
                        "action `{}` is of risk `{}` in `{here}` and `{}` in `{there}`",
                        shown(id),
                        action.risk_tier.as_str(),
                        earlier.risk_tier.as_str()
                    ),
                    "the higher one counts",
                ));
            }
            if earlier.parameters_schema != action.parameters_schema {
                problems.push(problem(
                    Severity::Warning,
                    format!("/actions/{index}/parameters_schema"),
                    format!(
                        "action `{}` has other parameters in `{here}` than in `{there}`",
                        shown(id)
                    ),
                    "parameters must fulfil both schemas",
                ));
            }
        }
    }
}

/// What one atlas allows or denies.
#[derive(Default)]
struct Verdicts {
    allowed: Vec<(Pattern, u32)>,
    denied: Vec<(Pattern, u32)>,
}

/// The same action, allowed by one and denied by another.
fn verdicts(atlases: &[&AtlasManifest], problems: &mut Vec<Problem>) {
    let mut all = Verdicts::default();
    // In order, so that the same atlases always give the same list.
    let mut names: BTreeMap<&str, ()> = BTreeMap::new();
    for (number, atlas) in (0_u32..).zip(atlases) {
        names.extend(atlas.actions.iter().map(|it| (it.action_id.as_str(), ())));
        visit(atlas, |reference| {
            if !reference.text.contains('*') {
                names.insert(reference.text, ());
            }
            let policy = atlas.policies.get(reference.owner).map(|it| it.policy_type);
            let list = match (reference.role, policy) {
                (Role::Allow, _) | (Role::Policy, Some(PolicyType::Allow)) => &mut all.allowed,
                (Role::Deny, _) | (Role::Policy, Some(PolicyType::Deny)) => &mut all.denied,
                _ => return,
            };
            if let Ok(pattern) = Pattern::parse(reference.text) {
                list.push((pattern, number));
            }
        });
    }
    let (allowed, denied) = (PatternSet::new(all.allowed), PatternSet::new(all.denied));
    let mut told = HashSet::new();
    let (mut allows, mut denies) = (Vec::new(), Vec::new());
    for name in names.into_keys() {
        allows.clear();
        denies.clear();
        allowed.matching(name, &mut allows);
        denied.matching(name, &mut denies);
        for allow in &allows {
            let Some(deny) = denies.iter().find(|deny| *deny != allow) else {
                continue;
            };
            let atlas = |number: u32| {
                let number = usize::try_from(number).ok()?;
                atlases.get(number).map(|atlas| shown(&atlas.atlas_id))
            };
            let (Some(one), Some(other)) = (atlas(*allow), atlas(*deny)) else {
                continue;
            };
            if told.insert((name, *allow, *deny)) {
                problems.push(problem(
                    Severity::Warning,
                    String::new(),
                    format!(
                        "`{one}` allows action `{}`, and `{other}` denies it",
                        shown(name)
                    ),
                    "it is denied: the strictest verdict wins",
                ));
            }
        }
    }
}

fn problem(severity: Severity, pointer: String, message: String, hint: &str) -> Problem {
    Problem {
        severity,
        message,
        hint: Some(hint.to_owned()),
        pointer,
        place: None,
    }
}
