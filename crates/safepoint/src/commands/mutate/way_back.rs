//! The command that takes a change back, written so that a shell reads exactly that.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use safepoint_model::text;
use safepoint_state::mutate::Mutated;
use safepoint_state::tree::Change;
use safepoint_state::{Snapshot, Workspace, path};

use super::difference::is_git;
use crate::context::Context;
use crate::settings::Origin as SettingOrigin;

/// More paths than this are not listed in a command.
const MOST_PATHS: usize = 50;

/// The command that brings back what was there before, as it can be pasted into a shell.
pub(super) fn command(context: &Context, workspace: &Workspace, mutated: &Mutated) -> String {
    let mut words = beginning(context, &workspace.root);
    let named = named(&mutated.changes);
    // A roll back that names nothing would be of everything.
    let nothing = named.is_empty() && mutated.parts.is_empty();
    // A shell takes the line break from the end of what it puts in place of `$(…)`.
    let unspeakable = |name: &&[u8]| is_git(name) || name.ends_with(b"\n");
    // Undo brings encrypted files back with the rest.
    if nothing
        || !mutated.secrets.is_empty()
        || named.len() > MOST_PATHS
        || named.iter().any(unspeakable)
    {
        words.push(b"undo".to_vec());
        words.push(mutated.action.to_string().into_bytes());
    } else {
        words.extend(roll_back(&mutated.before, &named));
        let parts = mutated.parts.iter().map(|part| part.to.subject.name());
        words.extend(parts.map(String::into_bytes));
    }
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    quoted.join(" ")
}

/// The command that takes back what is still there of a change that failed.
pub(super) fn of_standing(context: &Context, before: &Snapshot, standing: &[Change]) -> String {
    let mut words = beginning(context, &before.workspace);
    words.extend(roll_back(before, &named(standing)));
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    quoted.join(" ")
}

fn beginning(context: &Context, root: &Path) -> Vec<Vec<u8>> {
    let mut words = vec![program(context)];
    if context.settings.store.origin == SettingOrigin::Flag {
        words.push(b"--store".to_vec());
        words.push(context.settings.store.value.to_string().into_bytes());
    }
    words.push(b"-C".to_vec());
    words.push(root.as_os_str().as_bytes().to_vec());
    words
}

/// The paths of changes, without those below others.
fn named(changes: &[Change]) -> Vec<&[u8]> {
    let mut named: Vec<&[u8]> = Vec::new();
    for change in changes {
        if !named.iter().any(|it| path::is_within(&change.path, it)) {
            named.push(&change.path);
        }
    }
    named
}

fn roll_back(before: &Snapshot, named: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut words = vec![b"rollback".to_vec(), before.id.to_string().into_bytes()];
    if before.expiry != safepoint_model::Expiry::Never {
        words.push(b"--expired".to_vec());
    }
    words.push(b"--".to_vec());
    words.extend(named.iter().map(|name| [b"./", *name].concat()));
    words
}

/// `safepoint`, if that is this program for the shell, and its whole path otherwise.
fn program(context: &Context) -> Vec<u8> {
    let ours = std::env::current_exe().and_then(std::fs::canonicalize);
    let Ok(ours) = ours else {
        return b"safepoint".to_vec();
    };
    let search = context.environment.path("PATH").unwrap_or_default();
    let found = std::env::split_paths(&search)
        .map(|directory| directory.join("safepoint"))
        .find(|program| program.is_file());
    match found.and_then(|found| std::fs::canonicalize(found).ok()) {
        Some(found) if found == ours => b"safepoint".to_vec(),
        _ => ours.into_os_string().into_vec(),
    }
}

/// A word as a shell reads it back, of nothing but characters that every terminal shows
/// as they are.
fn quote(word: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(byte);
    match std::str::from_utf8(word) {
        Ok(text) if !word.is_empty() && word.iter().all(plain) => text.to_owned(),
        Ok(text) if text::line(text).text == text => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let byte = |byte: &u8| match byte.is_ascii_alphanumeric() || b"-_./".contains(byte) {
                true => char::from(*byte).to_string(),
                false => format!("\\{byte:03o}"),
            };
            let written: String = word.iter().map(byte).collect();
            format!("\"$(printf '{written}')\"")
        }
    }
}
