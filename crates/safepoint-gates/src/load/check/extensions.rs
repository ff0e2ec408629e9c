//! Extensions, and what the steward of an atlas gives away by mistake.

use crate::atlas::{AtlasManifest, Extension};
use crate::load::finding::Findings;
use crate::load::suggest::shown;
use crate::sandbox::Program;

pub(super) fn check(atlas: &AtlasManifest, findings: &mut Findings) {
    for (index, extension) in atlas.extensions.iter().enumerate() {
        one(extension, &format!("/extensions/{index}"), findings);
    }
}

fn one(extension: &Extension, pointer: &str, findings: &mut Findings) {
    let id = shown(&extension.extension_id);
    let given = [&extension.cel, &extension.wasm, &extension.url];
    let given = given.iter().filter(|it| it.is_some()).count();
    if given != 1 {
        let message = match given {
            0 => format!("extension `{id}` has no code"),
            _ => format!("extension `{id}` has more than one kind of code"),
        };
        let hint = "give exactly one of `cel`, `wasm` and `url`";
        findings.error(pointer.to_owned(), message, hint);
    }
    if let Some(expression) = &extension.cel {
        // Which of the two uses it, its names do not say.
        let given = [OF_TRIGGERS, OF_ANSWERS];
        cel(expression, &given, &format!("{pointer}/cel"), findings);
    }
    if let Some(path) = &extension.wasm
        && path.trim().is_empty()
    {
        let message = format!("extension `{id}` names no module");
        findings.key_error(
            format!("{pointer}/wasm"),
            message,
            "give its path beside the atlas",
        );
    }
    if let Some(url) = &extension.url
        && !is_https(url)
    {
        findings.error(
            format!("{pointer}/url"),
            format!("`{}` is not an `https:` address", shown(url)),
            "a callback is asked over `https://` and nothing else",
        );
    }
    let called = extension.url.is_some();
    if !called && extension.timeout_ms.is_some() {
        findings.key_warning(
            format!("{pointer}/timeout_ms"),
            format!("extension `{id}` is not asked over the network, so this counts for nothing"),
            "leave it out",
        );
    }
}

/// Whether `url` begins like an address with a host.
pub(super) fn is_https(url: &str) -> bool {
    url.strip_prefix("https://")
        .and_then(|rest| rest.split(['/', '?', '#']).next())
        .is_some_and(|host| !host.is_empty())
        && !url.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// What a trigger is given.
pub(super) const OF_TRIGGERS: &[&str] = &[
    "event", "input", "action", "params", "risk", "trigger", "session",
];
/// What a check of an answer is given.
pub(super) const OF_ANSWERS: &[&str] =
    &["answer", "question", "session", "action", "params", "risk"];

/// An expression that cannot be compiled would fail each time it is asked, and one that uses
/// anything but the members of its input, too.
pub(super) fn cel(expression: &str, given: &[&[&str]], pointer: &str, findings: &mut Findings) {
    let program = match Program::cel(expression) {
        Ok(program) => program,
        Err(error) => {
            let message = format!(
                "this is not a CEL expression: {}",
                shown(&error.to_string())
            );
            findings.error(pointer.to_owned(), message, None);
            return;
        }
    };
    for name in program.variables() {
        if !given.iter().any(|names| names.contains(&name)) {
            let names: Vec<&str> = given.iter().copied().flatten().copied().collect();
            findings.warning(
                pointer.to_owned(),
                format!("nothing gives `{}`, so this fails each time", shown(name)),
                format!("there are `{}`", names.join("`, `")),
            );
        }
    }
}

pub(super) fn warn(atlas: &AtlasManifest, findings: &mut Findings) {
    let Some(steward) = &atlas.steward else {
        return;
    };
    for (index, key) in steward.access.api_keys.iter().enumerate() {
        let digits = key.chars().any(|c| c.is_ascii_digit());
        if !key.contains('*') && key.chars().count() >= 16 && digits {
            findings.warning(
                format!("/steward/access/api_keys/{index}"),
                "this looks like a whole key, and everybody who has the atlas can read it"
                    .to_owned(),
                "keep the secret part out: end it with `*`",
            );
        }
    }
}
