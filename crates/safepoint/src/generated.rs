//! Documents made from the program itself. Each is committed, and its test
//! fails when it is stale; `SAFEPOINT_UPDATE=1` writes it anew.

#![expect(clippy::disallowed_methods, reason = "tests write documents")]

use std::fmt::Write;
use std::path::Path;

use safepoint_model::{Code, Exit};

use crate::commands::schema::schemas;

fn check(name: &str, fresh: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    if std::env::var_os("SAFEPOINT_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, fresh).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == fresh,
        "docs/{name} is stale: run the tests with SAFEPOINT_UPDATE=1"
    );
}

#[test]
fn su_02_the_reference_of_commands_is_current() {
    let mut text = "# Command reference\n\nMade from the program itself; do not edit.\n".to_owned();
    let mut root = crate::command_line();
    root.build();
    describe(&root, "safepoint", &mut text);
    check("cli.md", &text);
}

fn describe(command: &clap::Command, name: &str, text: &mut String) {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let usage = usage.replacen(
        command.get_name(),
        name,
        usize::from(!usage.starts_with(name)),
    );
    writeln!(text, "\n## {name}\n\n{about}.\n\n```\n{usage}\n```").unwrap();
    let own = |argument: &&clap::Arg| {
        let global = argument.is_global_set() && name != "safepoint";
        !global && !argument.is_hide_set() && argument.get_id() != "help"
    };
    let arguments: Vec<_> = command.get_arguments().filter(own).collect();
    if !arguments.is_empty() {
        writeln!(text, "\n| argument | meaning |\n|---|---|").unwrap();
    }
    for argument in arguments {
        let shown = argument.to_string().replace('|', "\\|");
        let help = argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let values: Vec<_> = argument
            .get_possible_values()
            .iter()
            .filter(|_| argument.get_action().takes_values())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        let values = if values.is_empty() {
            String::new()
        } else {
            format!(" ({})", values.join(", "))
        };
        writeln!(text, "| `{shown}` | {help}{values} |").unwrap();
    }
    for child in command
        .get_subcommands()
        .filter(|child| child.get_name() != "help")
    {
        describe(child, &format!("{name} {}", child.get_name()), text);
    }
}

#[test]
fn su_02_the_tables_of_codes_are_current() {
    let mut text = "# Exit codes and error codes\n\nMade from the program itself; do not edit.\n\n| exit | meaning |\n|---|---|\n".to_owned();
    for exit in Exit::ALL {
        writeln!(text, "| {} | {} |", exit as u8, exit.meaning()).unwrap();
    }
    text.push_str("\n| code | name | exit | meaning |\n|---|---|---|---|\n");
    for code in Code::ALL {
        let exit = code.exit() as u8;
        writeln!(
            text,
            "| {} | {} | {exit} | {} |",
            code.code(),
            code.name(),
            code.meaning()
        )
        .unwrap();
    }
    check("errors.md", &text);
}

#[test]
fn su_02_the_schemas_are_current() {
    for (name, schema) in schemas() {
        let text = serde_json::to_string_pretty(&schema()).unwrap();
        check(&format!("schema/{name}.json"), &format!("{text}\n"));
    }
}

#[test]
fn su_07_the_description_of_the_api_is_current() {
    let document = crate::commands::serve::document();
    let text = serde_json::to_string_pretty(&document).unwrap();
    check("openapi.json", &format!("{text}\n"));
    check("api.md", &crate::commands::serve::reference());
}
