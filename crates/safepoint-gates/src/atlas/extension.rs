//! What a steward adds in code: own checks of answers, and own triggers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a callback may take unless the atlas says otherwise.
pub const DEFAULT_TIMEOUT_MS: u64 = 2_000;

/// A piece of code, by name. Exactly one of `cel`, `wasm` and `url` is given.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    /// Its name: what `trigger_id` and `custom_validator` refer to.
    pub extension_id: String,
    /// A CEL expression that is true or false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel: Option<String>,
    /// A WebAssembly module, by its path beside the atlas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wasm: Option<String>,
    /// An `https:` address that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How long the address may take to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether the address may be one of a private network.
    #[serde(default)]
    pub allow_private_addresses: bool,
}

/// Where a piece of code runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runner {
    /// Here, as an expression.
    Cel(String),
    /// Here, in a sandbox: the path of the module.
    Wasm(String),
    /// At the steward's: the caller asks, and feeds the answer back.
    Callback {
        /// The address.
        url: String,
        /// How long it may take.
        timeout_ms: u64,
        /// Whether it may be in a private network.
        allow_private_addresses: bool,
    },
}

impl Extension {
    /// Where it runs; `None` when that is not said, or said twice.
    pub fn runner(&self) -> Option<Runner> {
        match (&self.cel, &self.wasm, &self.url) {
            (Some(expression), None, None) => Some(Runner::Cel(expression.clone())),
            (None, Some(path), None) => Some(Runner::Wasm(path.clone())),
            (None, None, Some(url)) => Some(Runner::Callback {
                url: url.clone(),
                timeout_ms: self.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS),
                allow_private_addresses: self.allow_private_addresses,
            }),
            _ => None,
        }
    }
}

impl Runner {
    /// The code that `reference` names by itself: `cel:…`, `wasm:…` or `https://…`.
    pub fn inline(reference: &str) -> Option<Self> {
        if let Some(expression) = reference.strip_prefix("cel:") {
            return Some(Self::Cel(expression.trim().to_owned()));
        }
        if let Some(path) = reference.strip_prefix("wasm:") {
            return Some(Self::Wasm(path.trim().to_owned()));
        }
        reference.starts_with("https://").then(|| Self::Callback {
            url: reference.to_owned(),
            timeout_ms: DEFAULT_TIMEOUT_MS,
            allow_private_addresses: false,
        })
    }
}
