//! Between the protocol and the tools: lists them, and has them called.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult,
    ListToolsResult, PaginatedRequestParams, Prompt, PromptMessage, Role, ServerCapabilities,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{About, Caller, PromptNote, Refused, ToolAnswer, ToolNote, Tools};

/// The header that names a connection in protocols before 2026-07-28.
const CONNECTION: &str = "mcp-session-id";

/// Answers one connection, or all of them.
pub(super) struct Handler<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    tools: T,
    about: About,
    notes: Vec<ToolNote>,
    prompts: Vec<PromptNote>,
    /// What changes something happens one by one, in the order in which it was asked for: it
    /// would wait for the lock of the workspace all the same, and in any order.
    turn: Semaphore,
}

impl<T> Clone for Handler<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T: Tools> Handler<T> {
    pub(super) fn new(tools: T) -> Self {
        Self {
            shared: Arc::new(Shared {
                about: tools.about(),
                notes: tools.list(),
                prompts: tools.prompts(),
                tools,
                turn: Semaphore::new(1),
            }),
        }
    }

    fn note(&self, name: &str) -> Option<&ToolNote> {
        self.shared.notes.iter().find(|note| note.name == name)
    }

    async fn answer(
        &self,
        caller: Caller,
        request: CallToolRequestParams,
    ) -> Result<ToolAnswer, Refused> {
        let name = request.name.into_owned();
        let note = self
            .note(&name)
            .ok_or_else(|| Refused::Unknown(name.clone()))?;
        let turn = match note.hints.read_only {
            true => None,
            false => self.shared.turn.acquire().await.ok(),
        };
        let shared = Arc::clone(&self.shared);
        let arguments = request.arguments.unwrap_or_default();
        // What waits for a person comes after what was asked for before it, and then holds up
        // nobody: each step of it takes the lock of the store by itself.
        let turn = turn.filter(|_| !shared.tools.waits(&name, &arguments));
        // One that is cancelled is not stopped: half a change is worse than one that nobody
        // waits for.
        let called =
            tokio::task::spawn_blocking(move || shared.tools.call(&caller, &name, &arguments));
        let answered = called.await;
        drop(turn);
        answered.unwrap_or_else(|error| {
            Ok(ToolAnswer {
                document: json!({"error": {"message": format!("it has gone wrong inside: {error}")}}),
                advice: Some("it is not known how far it came: look before trying again".into()),
                done: false,
            })
        })
    }
}

impl<T: Tools> ServerHandler for Handler<T> {
    fn get_info(&self) -> ServerConfig {
        let About {
            name,
            title,
            version,
            instructions,
        } = &self.shared.about;
        let mut server = Implementation::new(name, version);
        server.title = Some(title.clone());
        let capabilities = ServerCapabilities::builder().enable_tools();
        let capabilities = match self.shared.prompts.is_empty() {
            true => capabilities.build(),
            false => capabilities.enable_prompts().build(),
        };
        ServerConfig::new(capabilities)
            .with_server_info(server)
            .with_instructions(instructions)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = self.shared.prompts.iter();
        let prompts = prompts
            .map(|note| Prompt::new(note.name.clone(), Some(note.description.clone()), None));
        Ok(ListPromptsResult::with_all_items(prompts.collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let mut prompts = self.shared.prompts.iter();
        let note = prompts.find(|note| note.name == request.name);
        let note = note.ok_or_else(|| {
            let message = format!("there is no prompt `{}`", request.name);
            ErrorData::invalid_params(message, None)
        })?;
        let message = PromptMessage::new_text(Role::User, note.text.clone());
        let result = GetPromptResult::new(vec![message]);
        Ok(result.with_description(note.description.clone()).into())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.shared.notes.iter().map(as_tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.note(name).map(as_tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let parts = context.extensions.get::<http::request::Parts>();
        let named = parts.and_then(|parts| parts.headers.get(CONNECTION));
        let caller = Caller {
            connection: named.and_then(|name| name.to_str().ok()).map(str::to_owned),
        };
        match self.answer(caller, request).await {
            Ok(answer) => Ok(as_result(answer).into()),
            Err(refused) => Err(ErrorData::invalid_params(refused.to_string(), None)),
        }
    }
}

fn as_tool(note: &ToolNote) -> Tool {
    let hints = note.hints;
    let annotations = ToolAnnotations::with_title(&note.title)
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    Tool::new(
        note.name.clone(),
        note.description.clone(),
        note.input.clone(),
    )
    .with_title(&note.title)
    .with_raw_output_schema(Arc::new(note.output.clone()))
    .with_annotations(annotations)
}

/// The document both as data and as text, for clients that know only text, and then how to
/// go on.
fn as_result(answer: ToolAnswer) -> CallToolResult {
    let mut result = match answer.done {
        true => CallToolResult::structured(answer.document),
        false => CallToolResult::structured_error(answer.document),
    };
    result.content.extend(answer.advice.map(ContentBlock::text));
    result
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use serde_json::{Map, Value};

    use super::*;
    use crate::mcp::Hints;

    /// Tools that tell when they are used, and end when they are told to.
    struct Slow {
        began: Sender<String>,
        go: Mutex<Receiver<()>>,
    }

    impl Tools for Slow {
        fn about(&self) -> About {
            About {
                name: "slow".into(),
                title: "Slow".into(),
                version: "1".into(),
                instructions: String::new(),
            }
        }

        fn list(&self) -> Vec<ToolNote> {
            ["change", "look", "break", "wait"]
                .map(|name| ToolNote {
                    name: name.into(),
                    title: name.into(),
                    description: name.into(),
                    input: Map::new(),
                    output: Map::new(),
                    hints: Hints {
                        read_only: name == "look",
                        destructive: false,
                        idempotent: false,
                        open_world: false,
                    },
                })
                .into()
        }

        fn waits(&self, name: &str, _: &Map<String, Value>) -> bool {
            name == "wait"
        }

        fn call(
            &self,
            _: &Caller,
            name: &str,
            given: &Map<String, Value>,
        ) -> Result<ToolAnswer, Refused> {
            assert_ne!(name, "break", "as it was asked to");
            let what = given.get("what").and_then(Value::as_str).unwrap();
            self.began.send(what.to_owned()).unwrap();
            if name == "change" || name == "wait" {
                self.go.lock().unwrap().recv().unwrap();
            }
            Ok(ToolAnswer {
                document: json!({ "what": what }),
                advice: None,
                done: true,
            })
        }
    }

    fn request(name: &str, what: &str) -> CallToolRequestParams {
        let mut request = CallToolRequestParams::new(name.to_owned());
        request.arguments = json!({ "what": what }).as_object().cloned();
        request
    }

    #[test]
    fn su_06_changes_are_made_one_by_one_and_looking_does_not_wait() {
        let (began, begun) = channel();
        let (go, wait) = channel();
        let handler = Handler::new(Slow {
            began,
            go: Mutex::new(wait),
        });
        let runtime = crate::mcp::runtime().unwrap();
        runtime.block_on(async {
            let calls = ["one", "two"].map(|what| {
                let handler = handler.clone();
                let request = request("change", what);
                tokio::spawn(async move { handler.answer(Caller::default(), request).await })
            });
            // The first one waits for us to go on; looking does not wait for it.
            let looked = handler.answer(Caller::default(), request("look", "here"));
            assert!(looked.await.unwrap().done);
            let so_far: Vec<String> = begun.try_iter().collect();
            assert!(!so_far.contains(&"two".to_owned()), "{so_far:?}");
            go.send(()).unwrap();
            go.send(()).unwrap();
            for call in calls {
                assert!(call.await.unwrap().unwrap().done);
            }
        });
        let last: Vec<String> = begun.try_iter().collect();
        assert_eq!(last.last().map(String::as_str), Some("two"));
    }

    #[test]
    fn su_06_what_waits_for_a_person_holds_up_nothing_else() {
        let (began, begun) = channel();
        let (go, wait) = channel();
        let handler = Handler::new(Slow {
            began,
            go: Mutex::new(wait),
        });
        let runtime = crate::mcp::runtime().unwrap();
        runtime.block_on(async {
            let waiting = {
                let handler = handler.clone();
                let request = request("wait", "person");
                tokio::spawn(async move { handler.answer(Caller::default(), request).await })
            };
            while begun.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
            assert!(
                handler.shared.turn.try_acquire().is_ok(),
                "the turn is free"
            );
            go.send(()).unwrap();
            assert!(waiting.await.unwrap().unwrap().done);
        });
    }

    #[test]
    fn su_06_a_tool_that_breaks_down_is_an_answer() {
        let (began, _begun) = channel();
        let (_go, wait) = channel();
        let handler = Handler::new(Slow {
            began,
            go: Mutex::new(wait),
        });
        let runtime = crate::mcp::runtime().unwrap();
        let ask =
            |name: &str| runtime.block_on(handler.answer(Caller::default(), request(name, "x")));
        let broken = as_result(ask("break").unwrap());
        assert_eq!(broken.is_error, Some(true));
        assert_eq!(broken.content.len(), 2);
        assert!(matches!(ask("nothing"), Err(Refused::Unknown(_))));
    }
}
