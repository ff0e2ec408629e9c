//! A script that a person approved, held as it was seen: its interpreter is given the very
//! bytes, in memory that nobody can write to, instead of a name that may lead elsewhere by now.
//!
//! That changes what the script is called, so it is done only where nobody asks: a shell's
//! script in which the name does not occur. Whatever else is opened again by name is watched,
//! and told of when it was touched meanwhile.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use safepoint_authority::{Canonical, NamedPath, Preimage};
use safepoint_model::Digest;
use safepoint_store::regular;

use crate::world::{self, Interpreter, Opened};

/// Shells that read their script once, from the start, and need nothing beside it.
const SHELLS: [&str; 4] = ["sh", "dash", "bash", "ash"];
/// What a shell's script says when its own name matters to it.
const NAMES_ITSELF: [&str; 6] = ["$0", "${0", "$_", "BASH_", "caller", "/proc/"];
/// A script that is larger is opened by name.
const LARGEST: u64 = 4 << 20;

/// A script in sealed memory. It is open for as long as this is there.
#[derive(Debug)]
pub(super) struct Sealed {
    memory: OwnedFd,
    /// Which of the words it stands for.
    pub(super) word: usize,
}

impl Sealed {
    /// The name under which a child finds it.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.memory.as_raw_fd()).into()
    }

    /// The script of an approved command, if it can be handed over so.
    ///
    /// # Errors
    ///
    /// When it is no longer what was approved.
    pub(super) fn of(form: &Canonical, program: &Opened) -> std::io::Result<Option<Self>> {
        let Some((word, file, approved)) = script(form, program)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Ok(None);
        }
        if world::digest_of(bytes.as_slice())? != approved {
            return Err(std::io::Error::other(
                "the script is no longer the one that was approved",
            ));
        }
        if !is_self_contained(&bytes, word) {
            return Ok(None);
        }
        // Without closing on exec: the interpreter opens it by its number.
        // Kernels before 6.3 do not know that it may be run; there it may by itself.
        let memory = memfd_create("script", MemfdFlags::ALLOW_SEALING | MemfdFlags::EXEC)
            .or_else(|_| memfd_create("script", MemfdFlags::ALLOW_SEALING))?;
        let mut memory = File::from(memory);
        memory.write_all(&bytes)?;
        memory.rewind()?;
        let all = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
        fcntl_add_seals(&memory, all)?;
        Ok(Some(Self {
            memory: memory.into(),
            word,
        }))
    }
}

/// The word that names a script, the file, and what it was when it was approved.
fn script(form: &Canonical, program: &Opened) -> std::io::Result<Option<(usize, File, Digest)>> {
    if program.is_script {
        let mut file = program.file.try_clone()?;
        file.rewind()?;
        return Ok(Some((0, file, program.executable.digest)));
    }
    let name = program.path.file_name().and_then(|name| name.to_str());
    let is_shell = name.is_some_and(|name| SHELLS.contains(&name));
    let operand = form
        .argv
        .get(1)
        .filter(|word| !word.starts_with(['-', '+']));
    let (true, Some(operand)) = (is_shell, operand) else {
        return Ok(None);
    };
    let place = std::fs::canonicalize(Path::new(&form.directory.path).join(operand))?;
    let is_it = |path: &&NamedPath| path.role == "execute" && Path::new(&path.path) == place;
    match form.paths.iter().find(is_it).map(|path| &path.preimage) {
        Some(Preimage::File { digest, .. }) => Ok(Some((1, regular::open(&place)?, *digest))),
        _ => Ok(None),
    }
}

/// Whether a script does not care what it is called. One that is started by itself must be a
/// shell's, too.
fn is_self_contained(bytes: &[u8], word: usize) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let first = text.lines().next().unwrap_or_default();
    let is_for_shell = || {
        let interpreter = first.strip_prefix("#!").unwrap_or_default().trim_start();
        let mut words = interpreter.split_ascii_whitespace();
        let named = words.next().and_then(|path| path.rsplit('/').next());
        let named = match named {
            Some("env") => words.next(),
            other => other,
        };
        named.is_some_and(|name| SHELLS.contains(&name))
    };
    (word != 0 || is_for_shell()) && !NAMES_ITSELF.iter().any(|it| text.contains(it))
}

/// What is opened again by name while it runs, as it was just before.
#[derive(Debug, Default)]
pub(super) struct Watched(Vec<(PathBuf, Option<Stamp>)>);

/// What changes when a file is written to, renamed or replaced.
type Stamp = (u64, u64, i64, i64);

/// What is at a path; a link is not followed, for whoever puts another in its place touches it.
fn stamp(path: &Path) -> Option<Stamp> {
    let it = std::fs::symlink_metadata(path).ok()?;
    Some((it.dev(), it.ino(), it.ctime(), it.ctime_nsec()))
}

/// Where interpreters lie, and the names that lead there.
fn places_of(interpreters: &[Interpreter]) -> impl Iterator<Item = PathBuf> {
    let both = |it: &Interpreter| [it.called.clone(), PathBuf::from(&it.executable.path)];
    interpreters.iter().flat_map(both)
}

impl Watched {
    /// The files that an approved command runs and that no descriptor holds.
    pub(super) fn of(form: &Canonical, program: &Opened, interpreters: &[Interpreter]) -> Self {
        let named = form.paths.iter().filter(|path| path.role == "execute");
        let files = named.filter(|path| matches!(path.preimage, Preimage::File { .. }));
        let mut places: Vec<PathBuf> = files.map(|path| PathBuf::from(&path.path)).collect();
        if program.is_script {
            places.push(program.path.clone());
            places.push(Path::new(&form.directory.path).join(&program.called));
        }
        places.extend(places_of(interpreters));
        Self::at(places)
    }

    /// The interpreters of a script that is held in memory.
    pub(super) fn of_interpreters(interpreters: &[Interpreter]) -> Self {
        Self::at(places_of(interpreters).collect())
    }

    fn at(mut places: Vec<PathBuf>) -> Self {
        places.sort();
        places.dedup();
        let watched = places.into_iter().map(|place| {
            let stamp = stamp(&place);
            (place, stamp)
        });
        Self(watched.collect())
    }

    /// Those that were touched since.
    pub(super) fn touched(&self) -> Vec<String> {
        let touched = self.0.iter().filter(|(path, seen)| stamp(path) != *seen);
        touched
            .map(|(path, _)| path.display().to_string())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::is_self_contained;

    #[test]
    fn au_25_a_script_that_asks_for_its_name_is_left_with_it() {
        for (text, word, expected) in [
            ("#!/bin/sh\necho x\n", 0, true),
            ("#! /usr/bin/env bash\necho \"$1\"\n", 0, true),
            ("echo x\n", 1, true),
            ("echo x\n", 0, false),
            ("#!/usr/bin/python3\nprint(1)\n", 0, false),
            ("#!/bin/sh\ncd \"$(dirname \"$0\")\"\n", 0, false),
            ("#!/bin/bash\n. \"${BASH_SOURCE%/*}/x\"\n", 0, false),
            ("exec \"${0}\"\n", 1, false),
        ] {
            assert_eq!(is_self_contained(text.as_bytes(), word), expected, "{text}");
        }
        assert!(!is_self_contained(b"#!/bin/sh\n\xff\n", 0));
    }
}
