//! The skills that agents are given: checkpoint, mutate, verify, rollback.
//!
//! Each has one source text, in the form of the Agent Skills standard that all clients read:
//! a `SKILL.md` in a directory of its name. They differ in where they look for it. An MCP
//! server offers the same texts as prompts.

use std::path::{Path, PathBuf};

use safepoint_model::Digest;

use crate::Client;
use crate::hear::quote;
use crate::settings::{HookCommand, Roots, Scope, SettingsError};

/// What stands for the program in the source texts.
const PROGRAM: &str = "PROGRAM";
/// The file of a skill in its directory.
const FILE: &str = "SKILL.md";
/// How the last line of an installed skill begins. It tells whether somebody changed the file.
const SEAL: &str = "<!-- installed by safepoint, sha256:";
const SEAL_END: &str = " -->";

const SOURCES: [&str; 4] = [
    include_str!("checkpoint.md"),
    include_str!("mutate.md"),
    include_str!("verify.md"),
    include_str!("rollback.md"),
];

/// One skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name, such as `safepoint-checkpoint`.
    pub name: &'static str,
    /// What it is for, and when to use it.
    pub description: &'static str,
    /// The text after the front matter, with `PROGRAM` in the place of the program.
    pub source: &'static str,
}

impl Skill {
    /// All of them, in the order in which they are used.
    pub fn all() -> impl Iterator<Item = Self> {
        SOURCES.iter().filter_map(|text| Self::read(text))
    }

    fn read(text: &'static str) -> Option<Self> {
        let (front, source) = text.strip_prefix("---\n")?.split_once("---\n")?;
        let field = |name: &str| {
            let mut lines = front.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        Some(Self {
            name: field("name")?,
            description: field("description")?,
            source: source.trim_start(),
        })
    }

    /// Where it lies below a directory of skills.
    pub fn path(&self) -> PathBuf {
        Path::new(self.name).join(FILE)
    }

    /// The text with the program in it.
    pub fn text(&self, command: &HookCommand) -> Result<String, SettingsError> {
        Ok(self.source.replace(PROGRAM, &quote(command.text()?)))
    }

    /// The file as it is installed, and where, below a directory of skills.
    pub fn file(&self, command: &HookCommand) -> Result<(PathBuf, String), SettingsError> {
        let text = format!(
            "---\nname: {}\ndescription: {}\n---\n\n{}",
            self.name,
            self.description,
            self.text(command)?
        );
        let seal = seal_of(&text);
        Ok((self.path(), format!("{text}\n{SEAL}{seal}{SEAL_END}\n")))
    }
}

fn seal_of(text: &str) -> Digest {
    Digest::of_parts(&[b"safepoint skill", text.as_bytes()])
}

/// Whether the text of a skill is as we wrote it, whichever version of us that was.
pub fn is_skill_untouched(text: &str) -> bool {
    let Some((text, last)) = text
        .strip_suffix('\n')
        .and_then(|text| text.rsplit_once('\n'))
    else {
        return false;
    };
    let seal = last
        .strip_prefix(SEAL)
        .and_then(|rest| rest.strip_suffix(SEAL_END));
    seal.is_some_and(|seal| seal == seal_of(text).to_string())
}

/// The directory in which a client looks for skills.
pub fn skill_directory(client: Client, scope: Scope, roots: Roots<'_>) -> PathBuf {
    let own = |name: &str| match roots.own {
        Some(own) => own.to_owned(),
        None => roots.home.join(name),
    };
    match (client, scope) {
        (Client::ClaudeCode, Scope::Project) => roots.project.join(".claude/skills"),
        (Client::ClaudeCode, Scope::User) => own(".claude").join("skills"),
        // Codex reads those of a project where several clients do.
        (Client::Codex, Scope::Project) => roots.project.join(".agents/skills"),
        (Client::Codex, Scope::User) => own(".codex").join("skills"),
        (Client::Gemini, Scope::Project) => roots.project.join(".gemini/skills"),
        (Client::Gemini, Scope::User) => roots.home.join(".gemini/skills"),
        (Client::Copilot, Scope::Project) => roots.project.join(".github/skills"),
        (Client::Copilot, Scope::User) => own(".copilot").join("skills"),
        (Client::Cursor, Scope::Project) => roots.project.join(".cursor/skills"),
        (Client::Cursor, Scope::User) => roots.home.join(".cursor/skills"),
        (Client::Opencode, Scope::Project) => roots.project.join(".opencode/skills"),
        (Client::Opencode, Scope::User) => own(".config").join("opencode/skills"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> HookCommand {
        HookCommand {
            program: "/opt/safe point/safepoint".into(),
        }
    }

    #[test]
    fn ag_11_skills_have_all_their_parts_and_keep_to_the_standard() {
        let names: Vec<&str> = Skill::all().map(|skill| skill.name).collect();
        let expected = ["checkpoint", "mutate", "verify", "rollback"];
        assert_eq!(names, expected.map(|name| format!("safepoint-{name}")));
        for skill in Skill::all() {
            assert!(
                (1..=1024).contains(&skill.description.len()),
                "{}",
                skill.name
            );
            // It is a plain value of YAML.
            assert!(!skill.description.contains(": "), "{}", skill.name);
            for part in ["Inputs", "Procedure", "Output", "Rules", "Do not", "Next"] {
                let heading = format!("\n## {part}\n");
                assert!(skill.source.contains(&heading), "{}: {part}", skill.name);
            }
            let (path, text) = skill.file(&command()).unwrap();
            assert_eq!(path, Path::new(skill.name).join("SKILL.md"));
            assert!(text.starts_with(&format!("---\nname: {}\ndescription: ", skill.name)));
            assert!(text.contains("'/opt/safe point/safepoint' "), "{text}");
            assert!(!text.contains(PROGRAM));
        }
    }

    #[test]
    fn ag_11_a_skill_that_somebody_changed_is_told_from_ours() {
        for skill in Skill::all() {
            let (_, text) = skill.file(&command()).unwrap();
            assert!(is_skill_untouched(&text));
            assert!(!is_skill_untouched(&text.replacen(
                "checkpoint",
                "Checkpoint",
                1
            )));
            assert!(!is_skill_untouched(&format!("{text}more\n")));
            assert!(!is_skill_untouched(text.trim_end()));
        }
        assert!(!is_skill_untouched(""));
        assert!(!is_skill_untouched("---\nname: safepoint-verify\n---\n"));
    }
}
