//! Atlases, ready to judge: everything that is looked up often is indexed once.
//!
//! Nothing in here decides. [`judge`](crate::judge) does, with what it finds here.

mod actions;
mod build;
mod code;
mod config;
mod gate;
mod moments;
mod policy;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use safepoint_model::Digest;

pub(crate) use actions::{Capability, KnownAction, Profile};
pub(crate) use code::{Code, Ran};
pub(crate) use gate::{Gate, Question};
pub(crate) use moments::Moments;
pub(crate) use policy::Policy;

use crate::atlas::{AtlasManifest, Budget, Condition, ContextBlock, RiskTier};
use crate::event::Rate;
use crate::load::Problem;
use crate::pattern::PatternSet;
use crate::resolution::Decision;
use crate::schema::Schema;
use crate::session::Pinned;

/// An atlas, and what lies beside it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The atlas.
    pub manifest: AtlasManifest,
    /// The digest of its text and its modules.
    pub digest: Digest,
    /// The WebAssembly modules it names, by path.
    pub modules: BTreeMap<String, Vec<u8>>,
}

/// One or more atlases, ready to judge.
#[derive(Debug)]
pub struct Engine {
    pub(crate) atlases: Vec<Atlas>,
    pub(crate) gates: Vec<Gate>,
    pub(crate) capabilities: Vec<Capability>,
    pub(crate) contexts: Vec<Context>,
    pub(crate) policies: Vec<Policy>,
    /// Every action with a name of its own, in order.
    pub(crate) actions: Vec<KnownAction>,
    pub(crate) moments: Moments,
    gate_names: HashMap<Arc<str>, u32>,
    context_names: HashMap<String, u32>,
    capability_names: HashMap<Arc<str>, u32>,
    capability_patterns: PatternSet,
    policy_patterns: PatternSet,
    known_patterns: PatternSet,
    /// What gates allow and deny, and the number of each such pattern.
    grant_patterns: PatternSet,
    grant_numbers: HashMap<String, u32>,
    /// The gates in the order of their short names.
    gates_by_id: Vec<u32>,
}

/// What judging needs of one atlas.
#[derive(Debug)]
pub(crate) struct Atlas {
    pub(crate) manifest: AtlasManifest,
    pub(crate) digest: Digest,
    /// The actions it defines, by name.
    pub(crate) actions: HashMap<String, Defined>,
    /// What a key may ask for.
    pub(crate) rates: Vec<Rate>,
}

/// An action that an atlas defines.
#[derive(Debug)]
pub(crate) struct Defined {
    pub(crate) risk: RiskTier,
    schema: Option<serde_json::Value>,
    /// Made when it is first needed.
    compiled: OnceLock<Result<Schema, String>>,
}

impl Defined {
    /// The schema of its parameters, if it has one; what is wrong with it otherwise.
    pub(crate) fn schema(&self) -> Option<Result<&Schema, &str>> {
        let schema = self.schema.as_ref()?;
        Some(
            self.compiled
                .get_or_init(|| Schema::compile(schema))
                .as_ref()
                .map_err(String::as_str),
        )
    }
}

/// A context of an atlas.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) atlas: usize,
    pub(crate) name: Arc<str>,
    pub(crate) label: String,
    pub(crate) block: ContextBlock,
}

impl Engine {
    /// Makes atlases ready. Each was loaded without errors before; what only shows now is told.
    pub fn new(loaded: Vec<Loaded>) -> Result<Self, Vec<Problem>> {
        build::build(loaded)
    }

    /// What a session is pinned to.
    pub fn pinned(&self) -> Vec<Pinned> {
        self.atlases
            .iter()
            .map(|atlas| Pinned {
                atlas_id: atlas.manifest.atlas_id.clone(),
                version: atlas.manifest.version.clone(),
                digest: atlas.digest,
            })
            .collect()
    }

    /// The atlases, in the order in which they were loaded. Their gates are not
    /// in them: the engine has made them ready, and keeps them once.
    pub fn manifests(&self) -> impl Iterator<Item = &AtlasManifest> {
        self.atlases.iter().map(|atlas| &atlas.manifest)
    }

    /// Compiles all code of stewards that runs here; the first that cannot be, and why.
    pub fn check_code(&self) -> Result<(), (String, String)> {
        for gate in &self.gates {
            let validators = gate.questions.iter().filter_map(|it| it.validator.as_ref());
            for code in gate.code.iter().chain(validators).filter(|it| !it.is_far()) {
                code.program()
                    .map_err(|error| (gate.label.to_string(), error.to_string()))?;
            }
        }
        Ok(())
    }

    /// Whether a steward has allowed an action by a policy, and not merely left it open.
    pub fn allows_by_policy(&self, action: &str, known: &BTreeSet<Condition>) -> bool {
        let mut numbers = Vec::new();
        self.policy_patterns.matching(action, &mut numbers);
        let policies = numbers
            .iter()
            .filter_map(|it| self.policies.get(*it as usize));
        let mut counting = policies.filter(|policy| policy.counts(known));
        counting.any(|policy| policy.always() == Some(Decision::Allow))
    }

    /// The limits that a request for `action` is measured against.
    pub fn rates(&self, action: &str) -> Vec<Rate> {
        let mut rates: Vec<Rate> = self
            .atlases
            .iter()
            .flat_map(|atlas| atlas.rates.iter().cloned())
            .collect();
        let mut numbers = Vec::new();
        self.policy_patterns.matching(action, &mut numbers);
        rates.extend(
            numbers
                .iter()
                .filter_map(|number| self.policies.get(*number as usize)?.rate.clone()),
        );
        rates
    }

    /// The budget of one atlas.
    pub(crate) fn budget(&self, atlas: usize) -> Budget {
        self.atlases
            .get(atlas)
            .and_then(|atlas| atlas.manifest.checkpoint_config.as_ref()?.budget)
            .unwrap_or_default()
    }

    /// How many contexts of one atlas a session may have.
    pub(crate) fn contexts_per_session(&self, atlas: usize) -> Option<u64> {
        let steward = self.atlases.get(atlas)?.manifest.steward.as_ref()?;
        steward.access.rate_limit?.contexts_per_session
    }

    /// The gate with this full name.
    pub(crate) fn gate(&self, name: &str) -> Option<&Gate> {
        let number = *self.gate_names.get(name)?;
        self.gates.get(number as usize)
    }

    /// The gates that `id` can mean: one with this full name, or all with this short one.
    pub(crate) fn gates_called(&self, id: &str) -> Vec<&Gate> {
        match self.gate(id) {
            Some(gate) => vec![gate],
            None => {
                let id_of = |number: &u32| {
                    let gate = self.gates.get(*number as usize);
                    gate.map(|gate| gate.definition.checkpoint_id.as_str())
                };
                let first = self
                    .gates_by_id
                    .partition_point(|number| id_of(number) < Some(id));
                let rest = self.gates_by_id.get(first..).unwrap_or_default();
                rest.iter()
                    .take_while(|number| id_of(number) == Some(id))
                    .filter_map(|number| self.gates.get(*number as usize))
                    .collect()
            }
        }
    }

    /// The number of a pattern that a gate allows or denies.
    pub(crate) fn grant_number(&self, pattern: &str) -> Option<u32> {
        self.grant_numbers.get(pattern).copied()
    }

    /// The context with this full name.
    pub(crate) fn context(&self, name: &str) -> Option<&Context> {
        let number = *self.context_names.get(name)?;
        self.contexts.get(number as usize)
    }

    /// The capabilities that `id` can mean.
    pub(crate) fn capabilities_called(&self, id: &str) -> Vec<u32> {
        if let Some(number) = self.capability_names.get(id) {
            return vec![*number];
        }
        (0..)
            .zip(&self.capabilities)
            .filter(|(_, capability)| capability.id == id)
            .map(|(number, _)| number)
            .collect()
    }

    pub(crate) fn atlas_id(&self, atlas: usize) -> &str {
        self.atlases
            .get(atlas)
            .map_or("", |atlas| atlas.manifest.atlas_id.as_str())
    }
}

/// The name of something in one atlas that no other atlas has.
pub(crate) fn qualified(atlas_id: &str, id: &str) -> String {
    format!("{atlas_id}/{id}")
}
