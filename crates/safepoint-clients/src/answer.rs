//! Answering a client in its own way.
//!
//! How each client can be refused is taken from what was seen to work. Where an answer is
//! only a word on stdout, a client that does not know the word goes on; so the exit code 2
//! with a reason on stderr is preferred, and other forms are used only where that one was
//! not seen to work, or loses the reason. Nobody is ever answered with `ask`, and `allow` is
//! said only where another line would not be taken without it.

use serde_json::{Map, Value, json};

use crate::hear::event::{self, Kind};
use crate::hear::is_shell;
use crate::{Call, Client, Event, Heard, Tool};

/// The most characters of a reason or of a context. Clients cut at 10,000.
const LONGEST: usize = 9_000;

/// What we say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Go on, with this to be told to the model.
    Pass {
        /// What the model is told besides, where the client has a way to tell it.
        context: Option<String>,
    },
    /// Go on, with another line in the place of the one that was to be run. Where the
    /// client cannot replace it, this is a refusal.
    Instead {
        /// The line.
        line: String,
        /// What the model is told besides.
        context: Option<String>,
    },
    /// Do not. After a tool: the model is told this, as pressingly as the client can.
    Deny {
        /// Why, and how to go on. It is never empty.
        reason: String,
    },
}

/// What is written, and how the hook ends: with 0 or with 2.
///
/// Whoever cannot write `stdout` completely ends with 2, whatever `exit` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// For the client.
    pub stdout: String,
    /// For the model or the person, by the client's own rules.
    pub stderr: String,
    /// How the process ends.
    pub exit: u8,
}

/// The answer to an event that was understood.
pub fn answer(heard: &Heard, reply: &Reply) -> Wire {
    let to = To {
        client: heard.client,
        name: &heard.name,
        kind: kind(heard),
    };
    match reply {
        Reply::Pass { context } => to.pass(context.as_deref().and_then(told)),
        Reply::Instead { line, context } => {
            let context = context.as_deref().and_then(told);
            let replaced = match &heard.event {
                Event::Before(call) => replaced(call, line),
                _ => None,
            };
            replaced
                .and_then(|input| to.instead(input, context))
                .unwrap_or_else(|| to.deny(NO_OTHER_LINE))
        }
        Reply::Deny { reason } => to.deny(reason),
    }
}

/// A refusal, whatever was or was not understood. `event` is the client's own name.
///
/// What cannot be refused, such as the end of a session, is let go with a note: a client
/// would take the refusal of a stop for the order to go on. An event that we do not know is
/// refused.
pub fn refuse(client: Client, event: Option<&str>, reason: &str) -> Wire {
    match event.and_then(|name| event::find(client, name)) {
        Some((name, kind)) => To { client, name, kind }.deny(reason),
        None => blocked(reason),
    }
}

const NO_REASON: &str = "Safepoint refused this and gave no reason.";
const NO_OTHER_LINE: &str = "Safepoint must run another line in the place of this one, and \
     this client cannot replace it here. Nothing was run.";

fn kind(heard: &Heard) -> Kind {
    match heard.event {
        Event::SessionStart => Kind::SessionStart,
        Event::Prompt { .. } => Kind::Prompt,
        Event::Before(_) => Kind::Before,
        Event::After { .. } => Kind::After,
        Event::Permission(_) => Kind::Permission,
        Event::Stop => Kind::Stop,
        Event::SessionEnd => Kind::SessionEnd,
        Event::Other => Kind::Other,
    }
}

/// The event that is answered.
struct To<'name> {
    client: Client,
    name: &'name str,
    kind: Kind,
}

impl To<'_> {
    fn pass(&self, context: Option<String>) -> Wire {
        let told = context.and_then(|context| self.context(&context));
        told.map_or_else(|| self.nothing(), written)
    }

    /// No objection, and nothing to tell.
    fn nothing(&self) -> Wire {
        match (self.client, self.kind) {
            // Cursor reads every answer, and its `failClosed` takes none for a failure.
            (Client::Cursor, Kind::Prompt) => written(json!({"continue": true})),
            (Client::Cursor, _) => written(json!({})),
            _ => ended(String::new(), String::new(), 0),
        }
    }

    /// How the model is told something besides, where the client has a way.
    fn context(&self, context: &str) -> Option<Value> {
        use Kind::{After, Before, Failure, Prompt, SessionStart};
        let name = self.name;
        let specific =
            || json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}});
        match (self.client, self.kind) {
            (
                Client::ClaudeCode | Client::Codex,
                SessionStart | Prompt | Before | After | Failure,
            ) => Some(specific()),
            (Client::Gemini, SessionStart | Prompt | After) => Some(specific()),
            (Client::Copilot, SessionStart | Prompt | Before | After | Failure)
                if self.is_camel() =>
            {
                Some(json!({"additionalContext": context}))
            }
            (Client::Cursor, SessionStart) => Some(json!({"additional_context": context})),
            (Client::Cursor, After) if name == "postToolUse" => {
                Some(json!({"additional_context": context}))
            }
            (Client::Opencode, SessionStart | Prompt | Before | After) => {
                Some(json!({"context": context}))
            }
            _ => None,
        }
    }

    fn instead(&self, input: Value, context: Option<String>) -> Option<Wire> {
        let (mut answer, told) = match self.client {
            // It takes another line without a word about permission, and goes on to ask itself.
            Client::ClaudeCode => {
                let specific = json!({"hookEventName": self.name, "updatedInput": input});
                (
                    json!({"hookSpecificOutput": specific}),
                    "/hookSpecificOutput",
                )
            }
            // It takes another line only with this word, and asks its own rules all the same.
            Client::Codex => {
                let specific = json!({"hookEventName": self.name, "permissionDecision": "allow",
                    "updatedInput": input});
                (
                    json!({"hookSpecificOutput": specific}),
                    "/hookSpecificOutput",
                )
            }
            Client::Gemini => {
                let specific = json!({"hookEventName": self.name, "tool_input": input});
                (json!({"hookSpecificOutput": specific}), "")
            }
            Client::Copilot if self.is_camel() => (
                json!({"permissionDecision": "allow", "modifiedArgs": input}),
                "",
            ),
            Client::Cursor if self.name == "preToolUse" => {
                (json!({"permission": "allow", "updated_input": input}), "")
            }
            Client::Opencode => (json!({"args": input}), ""),
            Client::Copilot | Client::Cursor => return None,
        };
        let key = match self.client {
            Client::ClaudeCode | Client::Codex | Client::Copilot => Some("additionalContext"),
            Client::Opencode => Some("context"),
            Client::Gemini | Client::Cursor => None,
        };
        if let (Some(key), Some(context)) = (key, context)
            && let Some(Value::Object(fields)) = answer.pointer_mut(told)
        {
            fields.insert(key.to_owned(), Value::String(context));
        }
        Some(written(answer))
    }

    fn deny(&self, reason: &str) -> Wire {
        use Kind::{After, Before, Failure, Permission, Prompt, SessionStart};
        let said = told(reason).unwrap_or_else(|| NO_REASON.to_owned());
        let word = match (self.client, self.kind) {
            (_, Kind::Stop | Kind::SessionEnd | Kind::Other) => return self.noted(&said),
            (_, SessionStart) => return self.context_or_note(&said),
            (Client::ClaudeCode, Permission) => {
                let decision = json!({"behavior": "deny", "message": said});
                json!({"hookSpecificOutput":
                    {"hookEventName": self.name, "decision": decision}})
            }
            (Client::Gemini, Prompt) => json!({"decision": "deny", "reason": said}),
            (Client::Gemini, After | Failure) => json!({"decision": "block", "reason": said}),
            (Client::Copilot, Before) if self.is_camel() => {
                json!({"permissionDecision": "deny", "permissionDecisionReason": said})
            }
            (Client::Copilot, Permission) if self.is_camel() => {
                json!({"behavior": "deny", "message": said})
            }
            (Client::Copilot, After | Failure) if self.is_camel() => {
                return self.context_or_note(&said);
            }
            (Client::Cursor, Before) => {
                json!({"permission": "deny", "user_message": said, "agent_message": said})
            }
            (Client::Cursor, Prompt) => json!({"continue": false, "user_message": said}),
            (Client::Cursor, After | Failure) => return self.context_or_note(&said),
            _ => return blocked(&said),
        };
        written(word)
    }

    /// Told to the model, where it cannot be refused.
    fn context_or_note(&self, said: &str) -> Wire {
        match self.context(said) {
            Some(answer) => Wire {
                stderr: format!("{said}\n"),
                ..written(answer)
            },
            None => self.noted(said),
        }
    }

    /// Told to whoever reads the client's log.
    fn noted(&self, said: &str) -> Wire {
        Wire {
            stderr: format!("{said}\n"),
            ..self.nothing()
        }
    }

    /// Whether Copilot uses its own names of events, for which it takes its own answers.
    fn is_camel(&self) -> bool {
        self.name
            .starts_with(|first: char| first.is_ascii_lowercase())
    }
}

/// The one answer that stopped every client with command hooks. An empty reason would
/// make Codex go on.
fn blocked(reason: &str) -> Wire {
    let said = told(reason).unwrap_or_else(|| NO_REASON.to_owned());
    ended(String::new(), format!("{said}\n"), 2)
}

fn written(answer: Value) -> Wire {
    ended(format!("{answer}\n"), String::new(), 0)
}

fn ended(stdout: String, stderr: String, exit: u8) -> Wire {
    Wire {
        stdout,
        stderr,
        exit,
    }
}

/// A text as it is told: without what moves a cursor, not too long, and `None` when there
/// is nothing in it. Nothing else is escaped here: it may quote a command to be run.
fn told(said: &str) -> Option<String> {
    let harmless = |character: char| match character {
        '\n' | '\t' => Some(character),
        '\r' => None,
        other if other.is_control() => Some('\u{fffd}'),
        other => Some(other),
    };
    let said: String = said.trim().chars().filter_map(harmless).collect();
    if said.is_empty() {
        return None;
    }
    let length = said.chars().count();
    if length <= LONGEST {
        return Some(said);
    }
    let note = format!("\n(cut here: it has {length} characters)");
    let kept = LONGEST.saturating_sub(note.len());
    Some(said.chars().take(kept).chain(note.chars()).collect())
}

/// Everything that the tool is given, with another line.
fn replaced(call: &Call, line: &str) -> Option<Value> {
    let Tool::Shell { field, .. } = &call.tool else {
        return None;
    };
    let mut input: Map<String, Value> = call.input.as_object()?.clone();
    let value = input.get_mut(*field)?;
    *value = match value {
        Value::String(_) => Value::String(line.to_owned()),
        Value::Array(words) => {
            let shell = words.first().and_then(Value::as_str);
            let flags = words.get(1).and_then(Value::as_str);
            match (shell, flags) {
                (Some(shell), Some(flags @ ("-c" | "-lc"))) if is_shell(shell) => {
                    json!([shell, flags, line])
                }
                _ => json!(["/bin/sh", "-c", line]),
            }
        }
        _ => return None,
    };
    Some(Value::Object(input))
}
