//! From atlases to an engine.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::gate::Question;
use super::{
    Atlas, Capability, Code, Context, Defined, Engine, Gate, KnownAction, Loaded, Policy, config,
    qualified,
};
use crate::atlas::{
    AtlasManifest, CheckpointTrigger, PolicyType, RateLimit, Runner, StewardCheckpointDef,
};
use crate::event::Rate;
use crate::load::{Problem, Severity};
use crate::pattern::{Pattern, PatternSet};

mod moments;

/// Makes atlases ready.
pub(super) fn build(mut loaded: Vec<Loaded>) -> Result<Engine, Vec<Problem>> {
    let mut builder = Builder::new(&loaded);
    let mut ids = HashSet::new();
    for loaded in &loaded {
        // Everything is told apart by it: gates of one would be found in the other.
        let id = &loaded.manifest.atlas_id;
        if !ids.insert(id) {
            builder.problem(format!("two atlases are called `{id}`"), "/atlas_id");
        }
    }
    drop(ids);
    for (atlas, loaded) in loaded.iter_mut().enumerate() {
        // They are kept once: as gates that are ready.
        let gates = std::mem::take(&mut loaded.manifest.checkpoints);
        builder.add(atlas, loaded, gates);
    }
    builder.finish(loaded)
}

/// Everything that is collected before the indexes are made.
#[derive(Default)]
struct Builder {
    /// Short names that more than one atlas uses.
    shared: HashSet<String>,
    gates: Vec<Gate>,
    capabilities: Vec<Capability>,
    contexts: Vec<Context>,
    policies: Vec<Policy>,
    known: Vec<(Pattern, u32)>,
    capability_patterns: Vec<(Pattern, u32)>,
    policy_patterns: Vec<(Pattern, u32)>,
    grant_patterns: Vec<(Pattern, u32)>,
    grant_numbers: HashMap<String, u32>,
    /// Every action with a name of its own.
    names: BTreeSet<String>,
    problems: Vec<Problem>,
}

impl Builder {
    fn new(loaded: &[Loaded]) -> Self {
        let mut builder = Self::default();
        if loaded.len() < 2 {
            return builder;
        }
        let mut seen: HashMap<Cow<'_, str>, usize> = HashMap::new();
        for (atlas, loaded) in loaded.iter().enumerate() {
            let manifest = &loaded.manifest;
            let gates = manifest.checkpoints.iter();
            let capabilities = manifest.capabilities.iter();
            let contexts = manifest.context_blocks.iter();
            let ids = gates
                .map(|it| Cow::Borrowed(it.checkpoint_id.as_str()))
                .chain(
                    config::gates(manifest)
                        .into_iter()
                        .map(|it| Cow::Owned(it.checkpoint_id)),
                )
                .chain(capabilities.map(|it| Cow::Borrowed(it.capability_id.as_str())))
                .chain(contexts.map(|it| Cow::Borrowed(it.context_id.as_str())));
            for id in ids {
                match seen.get(&id) {
                    None => _ = seen.insert(id, atlas),
                    Some(first) if *first != atlas => _ = builder.shared.insert(id.into_owned()),
                    Some(_) => {}
                }
            }
        }
        builder
    }

    /// Adds an atlas, which comes without its gates, and its gates.
    fn add(&mut self, atlas: usize, loaded: &Loaded, mut gates: Vec<StewardCheckpointDef>) {
        let manifest = &loaded.manifest;
        gates.retain(|gate| gate.enabled);
        gates.extend(config::gates(manifest));
        self.add_capabilities(atlas, manifest, &gates);
        for block in &manifest.context_blocks {
            self.contexts.push(Context {
                atlas,
                name: qualified(&manifest.atlas_id, &block.context_id).into(),
                label: self.label(manifest, &block.context_id).to_string(),
                block: block.clone(),
            });
        }
        for action in &manifest.actions {
            self.know(atlas, &action.action_id);
        }
        for (place, policy) in manifest.policies.iter().enumerate() {
            let number = count(&self.policies);
            let pointer = || format!("/policies/{place}/actions");
            for text in &policy.actions {
                if let Some(pattern) = self.pattern(text, pointer) {
                    self.policy_patterns.push((pattern, number));
                }
                // A pattern that only restricts must not open what nobody has heard of.
                let restricts = matches!(
                    policy.policy_type,
                    PolicyType::Deny | PolicyType::RateLimit | PolicyType::Risk
                );
                if !restricts || !text.contains('*') {
                    self.know(atlas, text);
                }
            }
            if policy.actions.is_empty() && policy.policy_type == PolicyType::Cedar {
                // Without actions it is about all of them.
                let every = Pattern::parse("*").map(|pattern| (pattern, number));
                self.policy_patterns.extend(every.ok());
            }
            self.policies
                .push(Policy::new(atlas, &manifest.atlas_id, policy.clone()));
        }
        for definition in gates {
            self.add_gate(atlas, loaded, definition);
        }
    }

    fn add_capabilities(
        &mut self,
        atlas: usize,
        manifest: &AtlasManifest,
        gates: &[StewardCheckpointDef],
    ) {
        let mut keys: HashMap<&str, Arc<str>> = HashMap::new();
        for gate in gates {
            for id in &gate.unlock_capabilities {
                keys.entry(id)
                    .or_insert_with(|| self.label(manifest, &gate.checkpoint_id));
            }
        }
        for (place, capability) in manifest.capabilities.iter().enumerate() {
            let number = count(&self.capabilities);
            for text in &capability.actions {
                let pointer = || format!("/capabilities/{place}/actions");
                if let Some(pattern) = self.pattern(text, pointer) {
                    self.capability_patterns.push((pattern, number));
                }
                self.know(atlas, text);
            }
            let id = capability.capability_id.as_str();
            self.capabilities.push(Capability {
                number,
                atlas,
                id: id.to_owned(),
                name: qualified(&manifest.atlas_id, id).into(),
                label: self.label(manifest, id),
                key: keys.get(id).cloned(),
            });
        }
    }

    fn add_gate(&mut self, atlas: usize, loaded: &Loaded, mut definition: StewardCheckpointDef) {
        let manifest = &loaded.manifest;
        // A gate that only watches for `*.delete` does not make every `x.delete` known.
        let names = match &definition.trigger {
            CheckpointTrigger::ActionPre { patterns }
            | CheckpointTrigger::ActionPost { patterns } => patterns.as_slice(),
            _ => &[],
        };
        for text in names.iter().chain(&definition.deny_actions) {
            if !text.contains('*') {
                self.know(atlas, text);
            }
        }
        for text in &definition.allow_actions {
            self.know(atlas, text);
        }
        for text in definition
            .allow_actions
            .iter()
            .chain(&definition.deny_actions)
        {
            self.number_grant(text);
        }
        let code = match &definition.trigger {
            CheckpointTrigger::Custom { trigger_id, .. } => code_called(loaded, trigger_id),
            _ => None,
        };
        // They are kept once: with their rules.
        let questions = std::mem::take(&mut definition.questions)
            .into_iter()
            .map(|question| {
                let validator = question
                    .validation
                    .as_ref()
                    .and_then(|validation| validation.custom_validator.as_ref());
                // A name that stands for nothing must not pass for no validator.
                let validator = validator.map(|name| {
                    code_called(loaded, name)
                        .unwrap_or_else(|| Code::new(Runner::Wasm(name.clone()), None))
                });
                Question::new(question, validator)
            })
            .collect();
        self.gates.push(Gate {
            number: count(&self.gates),
            atlas,
            name: qualified(&manifest.atlas_id, &definition.checkpoint_id).into(),
            label: self.label(manifest, &definition.checkpoint_id),
            priority: definition.effective_priority(),
            definition,
            code,
            questions,
        });
    }

    /// The short name where that is enough, or else the full one.
    fn label(&self, manifest: &AtlasManifest, id: &str) -> Arc<str> {
        match self.shared.contains(id) {
            true => qualified(&manifest.atlas_id, id).into(),
            false => id.into(),
        }
    }

    fn know(&mut self, atlas: usize, text: &str) {
        let Ok(pattern) = Pattern::parse(text) else {
            return;
        };
        if let Some(name) = pattern.exact() {
            self.names.insert(name.to_owned());
        }
        self.known
            .push((pattern, u32::try_from(atlas).unwrap_or(u32::MAX)));
    }

    /// Gives a pattern that a gate allows or denies its number. One that is none stands for nothing.
    fn number_grant(&mut self, text: &str) {
        if self.grant_numbers.contains_key(text) {
            return;
        }
        let number = u32::try_from(self.grant_numbers.len()).unwrap_or(u32::MAX);
        self.grant_numbers.insert(text.to_owned(), number);
        let pattern = Pattern::parse(text).map(|pattern| (pattern, number));
        self.grant_patterns.extend(pattern.ok());
    }

    fn pattern(&mut self, text: &str, pointer: impl Fn() -> String) -> Option<Pattern> {
        match Pattern::parse(text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                self.problem(error.to_string(), &pointer());
                None
            }
        }
    }

    fn problem(&mut self, message: String, pointer: &str) {
        self.problems.push(Problem {
            severity: Severity::Error,
            message,
            hint: None,
            pointer: pointer.to_owned(),
            place: None,
        });
    }

    fn finish(mut self, loaded: Vec<Loaded>) -> Result<Engine, Vec<Problem>> {
        let capability_names = index(self.capabilities.iter().map(|it| Arc::clone(&it.name)));
        let moments = self.moments(&capability_names);
        let gate_names = index(self.gates.iter().map(|it| Arc::clone(&it.name)));
        if gate_names.len() != self.gates.len() {
            let message = "two gates have the same name; the names of `checkpoint_config` begin with `checkpoint_config.`";
            self.problem(message.to_owned(), "/checkpoints");
        }
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        let mut engine = Engine {
            atlases: loaded.into_iter().map(atlas).collect(),
            gate_names,
            context_names: index(self.contexts.iter().map(|it| it.name.to_string())),
            capability_names,
            capability_patterns: PatternSet::new(self.capability_patterns),
            policy_patterns: PatternSet::new(self.policy_patterns),
            known_patterns: PatternSet::new(self.known),
            grant_patterns: PatternSet::new(self.grant_patterns),
            grant_numbers: self.grant_numbers,
            gates_by_id: by_id(&self.gates),
            gates: self.gates,
            capabilities: self.capabilities,
            contexts: self.contexts,
            policies: self.policies,
            actions: Vec::new(),
            moments,
        };
        engine.actions = self
            .names
            .iter()
            .map(|name| {
                let mut before = Vec::new();
                engine.moments.before.matching(name, &mut before);
                let asks = before
                    .iter()
                    .filter_map(|number| engine.gates.get(*number as usize))
                    .find(|gate| gate.asks())
                    .map(|gate| Arc::clone(&gate.label));
                KnownAction {
                    id: name.as_str().into(),
                    profile: engine.profile(name),
                    asks,
                }
            })
            .collect();
        Ok(engine)
    }
}

/// The code that `name` stands for: an extension of the atlas, or code by itself.
fn code_called(loaded: &Loaded, name: &str) -> Option<Code> {
    let extension = loaded
        .manifest
        .extensions
        .iter()
        .find(|extension| extension.extension_id == name);
    let runner = match extension {
        Some(extension) => extension.runner()?,
        None => Runner::inline(name)?,
    };
    let module = match &runner {
        Runner::Wasm(path) => loaded
            .modules
            .get(path)
            .map(|bytes| bytes.as_slice().into()),
        _ => None,
    };
    Some(Code::new(runner, module))
}

fn atlas(loaded: Loaded) -> Atlas {
    let manifest = loaded.manifest;
    let access = manifest.steward.as_ref().map(|steward| &steward.access);
    let limit = access
        .and_then(|access| access.rate_limit)
        .unwrap_or_default();
    let rates = rates(&manifest.atlas_id, limit);
    let actions = manifest
        .actions
        .iter()
        .map(|action| {
            let defined = Defined {
                risk: action.risk_tier,
                schema: action.parameters_schema.clone(),
                compiled: OnceLock::new(),
            };
            (action.action_id.clone(), defined)
        })
        .collect();
    Atlas {
        digest: loaded.digest,
        actions,
        rates,
        manifest,
    }
}

fn rates(atlas_id: &str, limit: RateLimit) -> Vec<Rate> {
    let windows = [
        ("minute", 60, limit.requests_per_minute),
        ("hour", 3600, limit.requests_per_hour),
    ];
    windows
        .into_iter()
        .filter_map(|(name, window_seconds, most)| {
            Some(Rate {
                name: format!("{atlas_id}/access/{name}"),
                window_seconds,
                most: most?,
            })
        })
        .collect()
}

/// The numbers of gates in the order of their short names.
fn by_id(gates: &[Gate]) -> Vec<u32> {
    let mut numbers: Vec<u32> = gates.iter().map(|gate| gate.number).collect();
    // Stable: gates of one name stay as they were written.
    numbers.sort_by_key(|number| {
        let gate = gates.get(*number as usize);
        gate.map(|gate| gate.definition.checkpoint_id.as_str())
    });
    numbers
}

fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}

fn index<K: Eq + std::hash::Hash>(names: impl Iterator<Item = K>) -> HashMap<K, u32> {
    names.zip(0..).collect()
}
