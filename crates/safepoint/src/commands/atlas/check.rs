//! `safepoint atlas check`.

use std::path::{Path, PathBuf};

use safepoint_control::AtlasFile;
use safepoint_gates::AtlasManifest;
use safepoint_gates::load::{self, Problem, Severity};
use safepoint_model::Exit;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{BAD, GOOD, HINT, count};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `atlas check`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The atlases, `-` for standard input; those of the project without any
    files: Vec<PathBuf>,
    /// Take warnings for errors
    #[arg(long)]
    strict: bool,
}

/// What `atlas check` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckReply {
    /// Whether all of them can be used.
    valid: bool,
    /// Each file, in order.
    files: Vec<CheckedFile>,
}

/// One file.
#[derive(Serialize, JsonSchema)]
struct CheckedFile {
    /// Where it is.
    path: String,
    /// The name of the atlas, if it can be read.
    atlas_id: Option<String>,
    /// Everything that is wrong with it.
    problems: Vec<FoundProblem>,
    #[serde(skip)]
    shown: Vec<String>,
}

/// Something wrong with an atlas.
#[derive(Serialize, JsonSchema)]
struct FoundProblem {
    /// `error` or `warning`.
    severity: &'static str,
    /// What is wrong.
    message: String,
    /// What to do about it.
    hint: Option<String>,
    /// Where in the atlas, as a JSON Pointer.
    pointer: String,
    /// The line, from 1.
    line: Option<usize>,
    /// The column, from 1.
    column: Option<usize>,
}

impl From<&Problem> for FoundProblem {
    fn from(problem: &Problem) -> Self {
        Self {
            severity: problem.severity.as_str(),
            message: problem.message.clone(),
            hint: problem.hint.clone(),
            pointer: problem.pointer.clone(),
            line: problem.place.map(|place| place.line),
            column: problem.place.map(|place| place.column),
        }
    }
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let mut paths = arguments.files.clone();
    if paths.is_empty() {
        paths = context.atlases()?;
    }
    if paths.is_empty() {
        return Err(CliError::Invalid {
            message: "no atlas is named".to_owned(),
            suggestion: "name one, or list them under `atlases` in safepoint.yaml",
        });
    }
    let is_given = |path: &PathBuf| path.as_path() == Path::new(super::GIVEN);
    if let [only] = paths.as_slice()
        && !is_given(only)
    {
        let path = context.directory.join(only);
        if let Err(error) = std::fs::metadata(&path) {
            let action = "read";
            return Err(CliError::File {
                action,
                path,
                error,
            });
        }
    }
    let mut files = Vec::new();
    let mut manifests: Vec<AtlasManifest> = Vec::new();
    for path in &paths {
        let (file, manifest) = match super::given(context, path)? {
            Some(text) => check_given(&text),
            None => check(context, path),
        };
        files.push(file);
        manifests.extend(manifest);
    }
    let together: Vec<&AtlasManifest> = manifests.iter().collect();
    if let Some(last) = files.last_mut() {
        for problem in load::conflicts(&together) {
            last.shown.push(problem.render(&last.path, ""));
            last.problems.push(FoundProblem::from(&problem));
        }
    }
    let bad = |problem: &FoundProblem| arguments.strict || problem.severity == "error";
    let valid = !files.iter().any(|file| file.problems.iter().any(bad));
    let reply = CheckReply { valid, files };
    context.console.value(&reply, show)?;
    Ok(if valid { Exit::Done } else { Exit::Usage })
}

/// The same of one that was handed in: nothing lies beside it.
fn check_given(text: &str) -> (CheckedFile, Option<AtlasManifest>) {
    let mut file = CheckedFile::new(super::GIVEN);
    let checked = load::check(text);
    file.take(&checked, text);
    if checked.manifest.is_some() {
        let code = AtlasFile::given(text.to_owned()).and_then(|atlas| atlas.check_code());
        if let Err(error) = code {
            file.add(error.to_string());
        }
    }
    (file, checked.manifest)
}

/// One file: what is wrong with it, or with what lies beside it.
fn check(context: &Context, path: &Path) -> (CheckedFile, Option<AtlasManifest>) {
    let mut file = CheckedFile::new(&path.display().to_string());
    let place = context.directory.join(path);
    let text = match std::fs::read(&place).map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(_)) => {
            file.add("it is not UTF-8 text".to_owned());
            return (file, None);
        }
        Err(error) => {
            file.add(format!("it cannot be read: {error}"));
            return (file, None);
        }
    };
    let checked = load::check(&text);
    file.take(&checked, &text);
    if checked.manifest.is_some() {
        let beside = AtlasFile::read(&place).and_then(|atlas| atlas.check_code());
        if let Err(error) = beside {
            file.add(error.to_string());
        }
    }
    (file, checked.manifest)
}

impl CheckedFile {
    fn new(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            atlas_id: None,
            problems: Vec::new(),
            shown: Vec::new(),
        }
    }

    /// Takes what is wrong with the text.
    fn take(&mut self, checked: &load::Checked, text: &str) {
        for problem in &checked.problems {
            self.problems.push(FoundProblem::from(problem));
            self.shown.push(problem.render(&self.path, text));
        }
        self.atlas_id = checked.manifest.as_ref().map(|it| it.atlas_id.clone());
    }

    /// Adds an error that has no place in the text.
    fn add(&mut self, message: String) {
        let problem = Problem {
            severity: Severity::Error,
            message,
            hint: None,
            pointer: String::new(),
            place: None,
        };
        self.shown.push(problem.render(&self.path, ""));
        self.problems.push(FoundProblem::from(&problem));
    }
}

fn show(reply: &CheckReply) -> String {
    let mut shown = String::new();
    for file in &reply.files {
        for problem in &file.shown {
            shown.push_str(&coloured(problem));
            shown.push('\n');
        }
        let count_of = |severity| {
            let fits = file.problems.iter().filter(|it| it.severity == severity);
            fits.count() as u64
        };
        let (errors, warnings) = (
            count_of(Severity::Error.as_str()),
            count_of(Severity::Warning.as_str()),
        );
        let verdict = match (errors, warnings) {
            (0, 0) => format!("{GOOD}good{GOOD:#}"),
            (0, warnings) => format!(
                "{GOOD}good{GOOD:#}, with {}",
                count(warnings, "warning", "warnings")
            ),
            (errors, 0) => format!("{BAD}{}{BAD:#}", count(errors, "error", "errors")),
            (errors, warnings) => format!(
                "{BAD}{}{BAD:#}, {}",
                count(errors, "error", "errors"),
                count(warnings, "warning", "warnings")
            ),
        };
        let path = safepoint_model::text::line(&file.path).text;
        shown.push_str(&format!("{path}  {verdict}\n"));
    }
    shown
}

/// The first word in its colour.
fn coloured(problem: &str) -> String {
    if let Some(rest) = problem.strip_prefix("error:") {
        return format!("{BAD}error:{BAD:#}{rest}");
    }
    match problem.strip_prefix("warning:") {
        Some(rest) => format!("{HINT}warning:{HINT:#}{rest}"),
        None => problem.to_owned(),
    }
}
