//! `safepoint atlas test`.

use std::path::PathBuf;

use safepoint_control::AtlasFile;
use safepoint_gates::Mismatch;
use safepoint_model::{Exit, text};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{BAD, FAINT, GOOD, count};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `atlas test`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The atlas; `-` for standard input
    file: PathBuf,
}

/// What `atlas test` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TestReply {
    /// How many examples came out as they say.
    passed: usize,
    /// How many did not.
    failed: usize,
    /// Each example, in order.
    tests: Vec<TriedCase>,
}

/// One example.
#[derive(Serialize, JsonSchema)]
struct TriedCase {
    /// What it shows.
    name: String,
    /// Whether everything came out as it says.
    passed: bool,
    /// What did not.
    mismatches: Vec<FoundMismatch>,
}

/// Something that came out otherwise.
#[derive(Serialize, JsonSchema)]
struct FoundMismatch {
    /// Which step, from 1.
    step: usize,
    /// What of it.
    what: &'static str,
    /// What must come out.
    expected: String,
    /// What came out.
    found: String,
}

impl From<Mismatch> for FoundMismatch {
    fn from(mismatch: Mismatch) -> Self {
        Self {
            step: mismatch.step + 1,
            what: mismatch.what,
            expected: mismatch.expected,
            found: mismatch.found,
        }
    }
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let atlas = match super::given(context, &arguments.file)? {
        Some(text) => AtlasFile::given(text)?,
        None => AtlasFile::read(&context.directory.join(&arguments.file))?,
    };
    let engine = atlas.engine()?;
    let tests: Vec<TriedCase> = atlas
        .manifest
        .tests
        .iter()
        .map(|case| {
            let mismatches = engine.try_case(case);
            TriedCase {
                name: case.name.clone(),
                passed: mismatches.is_empty(),
                mismatches: mismatches.into_iter().map(FoundMismatch::from).collect(),
            }
        })
        .collect();
    if tests.is_empty() {
        return Err(CliError::Invalid {
            message: format!("`{}` has no tests", arguments.file.display()),
            suggestion: "write some under `tests`; docs/atlas.md shows how",
        });
    }
    let failed = tests.iter().filter(|test| !test.passed).count();
    let reply = TestReply {
        passed: tests.len() - failed,
        failed,
        tests,
    };
    context.console.value(&reply, show)?;
    Ok(if failed == 0 {
        Exit::Done
    } else {
        Exit::Failed
    })
}

fn show(reply: &TestReply) -> String {
    let mut shown = String::new();
    for test in &reply.tests {
        let name = text::line(&test.name).text;
        match test.passed {
            true => shown.push_str(&format!("{GOOD}ok{GOOD:#}      {name}\n")),
            false => shown.push_str(&format!("{BAD}failed{BAD:#}  {name}\n")),
        }
        for mismatch in &test.mismatches {
            shown.push_str(&format!(
                "        {FAINT}step {}{FAINT:#}  {}: expected `{}`, found `{}`\n",
                mismatch.step,
                mismatch.what,
                text::line(&mismatch.expected).text,
                text::line(&mismatch.found).text
            ));
        }
    }
    shown.push_str(&match reply.failed {
        0 => format!("{} passed\n", count(reply.passed as u64, "test", "tests")),
        failed => format!("{} passed, {failed} failed\n", reply.passed),
    });
    shown
}
