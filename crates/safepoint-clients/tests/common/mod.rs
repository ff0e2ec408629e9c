//! What several tests need: the documents, and a short text of what became of them.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use safepoint_clients::{Call, Client, Event, Heard, Reply, Wire, answer, hear, refuse};

/// The directory of the documents: `recorded` from real clients, `documented` where none ran.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

pub(crate) fn document(name: &str) -> Vec<u8> {
    std::fs::read(directory().join(format!("{name}.json"))).unwrap()
}

/// Every document, with its client.
pub(crate) fn documents() -> Vec<(Client, Vec<u8>)> {
    let mut all = Vec::new();
    for kind in ["recorded", "documented"] {
        for client in Client::ALL {
            let Ok(files) = std::fs::read_dir(directory().join(kind).join(client.name())) else {
                continue;
            };
            let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
            files.sort();
            all.extend(
                files
                    .iter()
                    .map(|file| (client, std::fs::read(file).unwrap())),
            );
        }
    }
    all
}

pub(crate) fn client_of(name: &str) -> Client {
    name.split('/').nth(1).unwrap().parse().unwrap()
}

pub(crate) fn here() -> &'static Path {
    Path::new("/home/dev/elsewhere")
}

pub(crate) fn heard(name: &str) -> Heard {
    hear(client_of(name), &document(name), here()).unwrap()
}

/// What was heard and how it is answered.
pub(crate) fn story(name: &str) -> String {
    let heard = heard(name);
    let mut out = String::new();
    writeln!(out, "session    {}", heard.session).unwrap();
    writeln!(out, "directory  {}", heard.directory.display()).unwrap();
    if let Some(agent) = &heard.agent {
        writeln!(out, "agent      {agent}").unwrap();
    }
    writeln!(out, "event      {} = {}", heard.name, event(&heard.event)).unwrap();
    let context = Some("CONTEXT".to_owned());
    let replies = [
        ("pass", Reply::Pass { context: None }),
        (
            "context",
            Reply::Pass {
                context: context.clone(),
            },
        ),
        (
            "instead",
            Reply::Instead {
                line: "LINE".to_owned(),
                context,
            },
        ),
        (
            "deny",
            Reply::Deny {
                reason: "REASON".to_owned(),
            },
        ),
    ];
    for (word, reply) in replies {
        if word == "instead" && !matches!(heard.event, Event::Before(_)) {
            continue;
        }
        writeln!(out, "{word:<10} {}", wire(&answer(&heard, &reply))).unwrap();
    }
    let refused = refuse(heard.client, Some(&heard.name), "REASON");
    assert_eq!(
        refused,
        answer(
            &heard,
            &Reply::Deny {
                reason: "REASON".to_owned()
            }
        ),
        "a refusal is told the same way whether or not the rest was understood",
    );
    out
}

fn event(event: &Event) -> String {
    let call = |call: &Call| {
        let id = call.id.as_deref().unwrap_or("no id");
        format!("{} [{id}] {:?}", call.name, call.tool)
    };
    match event {
        Event::Before(of) => format!("before {}", call(of)),
        Event::Permission(of) => format!("permission {}", call(of)),
        Event::After {
            call: of,
            ended,
            result,
        } => {
            let result = result.to_string();
            let result: String = result.chars().take(60).collect();
            format!("after {} ended {ended:?} with {result}", call(of))
        }
        other => format!("{other:?}"),
    }
}

fn wire(wire: &Wire) -> String {
    let mut out = wire.exit.to_string();
    for (name, text) in [("stdout", &wire.stdout), ("stderr", &wire.stderr)] {
        if !text.is_empty() {
            write!(out, " {name} {}", text.trim_end()).unwrap();
        }
    }
    out
}
