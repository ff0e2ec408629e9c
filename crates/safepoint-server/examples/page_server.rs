//! The page over a real binary, for trying it and for the stories that a browser plays.
//!
//!   page_server BINARY PROJECT HOME [ADDRESS]
//!
//! Each command is a process of its own, in a project that can be thrown away. It is for tests:
//! its tokens are known to everybody, and `PROJECT/../revoked` takes them back. What lies in
//! `PROJECT/../answers`, such as `workspace-list.json`, is answered in place of the command.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command as Process, ExitCode, Stdio};
use std::sync::Arc;

use safepoint_authority::{Choice, Decision, SignedDecision};
use safepoint_model::{Clock, Entropy, EntropyError, Timestamp};
use safepoint_server::commands::{Answer, Caller, Command, Commands, Role, Unavailable};
use safepoint_server::page::{Around, Transport, router};
use safepoint_trail::note::PublicKey;
use serde_json::{Value, json};

/// Runs the binary for each command.
struct Children {
    binary: PathBuf,
    project: PathBuf,
    home: PathBuf,
    /// Whether the binary takes decisions that were signed elsewhere.
    takes_signatures: bool,
}

struct WallClock;

impl Clock for WallClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is a program, if a small one"
    )]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let micros = since.map_or(0, |since| since.as_micros());
        Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }
}

struct Device;

impl Entropy for Device {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        let mut device =
            std::fs::File::open("/dev/urandom").map_err(|error| EntropyError(error.to_string()))?;
        device
            .read_exact(bytes)
            .map_err(|error| EntropyError(error.to_string()))
    }
}

impl Commands for Children {
    fn caller(&self, token: &str) -> Result<Option<Caller>, Unavailable> {
        let revoked = std::fs::read_to_string(self.project.join("../revoked"));
        if revoked.is_ok_and(|revoked| revoked.lines().any(|line| line == token)) {
            return Ok(None);
        }
        let role = match token {
            "operator-token" => Role::Operator,
            "auditor-token" => Role::Auditor,
            "agent-token" => Role::Agent,
            _ => return Ok(None),
        };
        Ok(Some(Caller {
            name: token.trim_end_matches("-token").to_owned(),
            roles: vec![role],
            scopes: Vec::new(),
        }))
    }

    fn run(&self, _caller: &Caller, command: &Command) -> Answer {
        let is_signed = command.words.iter().any(|word| word == "--signature=-");
        match is_signed && !self.takes_signatures {
            true => self.decide(command).unwrap_or_else(|message| Answer {
                exit: 7,
                document: json!({"error": {"message": message, "suggestion": "look at it again"}}),
            }),
            false => self
                .laid_out(command)
                .unwrap_or_else(|| self.child(command)),
        }
    }
}

impl Children {
    /// A document that somebody has laid out for these words.
    fn laid_out(&self, command: &Command) -> Option<Answer> {
        let mut words = command.words.iter();
        let name = format!("{}-{}.json", words.next()?, words.next()?);
        let text = std::fs::read_to_string(self.project.join("../answers").join(name)).ok()?;
        let document = serde_json::from_str(&text).ok()?;
        Some(Answer { exit: 0, document })
    }

    /// Asks the binary whether it has `hold approve --signature`.
    #[expect(
        clippy::disallowed_methods,
        reason = "the binary is what is tried here"
    )]
    fn ask_about_signatures(&mut self) {
        let help = Process::new(&self.binary)
            .args(["hold", "approve", "--help"])
            .env_clear()
            .output();
        let help = help.map_or_else(|_| Vec::new(), |help| help.stdout);
        self.takes_signatures = String::from_utf8_lossy(&help).contains("--signature");
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the binary is what is tried here"
    )]
    fn child(&self, command: &Command) -> Answer {
        let directory = command.directory.as_ref().unwrap_or(&self.project);
        let started = Process::new(&self.binary)
            .arg("--json")
            .args(&command.words)
            .current_dir(directory)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.home.join("../user"))
            .env("SAFEPOINT_HOME", &self.home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let broken = |message: String| Answer {
            exit: 5,
            document: json!({"error": {"message": message}}),
        };
        let mut child = match started {
            Ok(child) => child,
            Err(error) => return broken(error.to_string()),
        };
        if let Some(mut input) = child.stdin.take() {
            drop(input.write_all(&command.input));
        }
        match child.wait_with_output() {
            Ok(output) => Answer {
                exit: output.status.code().map_or(5, |code| code.to_le_bytes()[0]),
                document: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
            },
            Err(error) => broken(error.to_string()),
        }
    }

    /// Takes a decision that was signed in the browser, as `hold approve --signature` would: the
    /// note is opened with the operator's public key. What it says is then done by the binary.
    fn decide(&self, command: &Command) -> Result<Answer, String> {
        let note = String::from_utf8(command.input.clone()).map_err(|error| error.to_string())?;
        let signed = SignedDecision::new(note);
        let claimed = signed.claimed().map_err(|error| error.to_string())?;
        let words = ["operator", "list"].map(str::to_owned).to_vec();
        let list = self.child(&Command {
            words,
            ..Command::default()
        });
        let operators = list.document.get("operators").and_then(Value::as_array);
        let named = |it: &&Value| it.get("name").and_then(Value::as_str) == Some(&claimed.operator);
        let operator = operators.and_then(|all| all.iter().find(named));
        let key = operator.and_then(|it| it.get("key")?.as_str());
        let key = key.ok_or("there is no such operator")?;
        let key: PublicKey = key.parse().map_err(|_| "the key is none".to_owned())?;
        let decision = signed.open(&key).map_err(|error| error.to_string())?;
        Ok(self.child(&Command {
            words: said(&decision),
            ..Command::default()
        }))
    }
}

/// The words that say the same as a decision.
fn said(decision: &Decision) -> Vec<String> {
    let verb = match decision.choice {
        Choice::Deny => "deny",
        Choice::Halt => "halt",
        Choice::Continue | Choice::Modify | Choice::PerStep => "approve",
    };
    let mut words = vec!["hold".to_owned(), verb.to_owned()];
    words.push(format!("--operator={}", decision.operator));
    if decision.choice.is_yes() {
        words.push(format!("--fingerprint={}", decision.fingerprint));
        let confirm = decision.confirm.iter();
        words.extend(confirm.map(|word| format!("--confirm={word}")));
    }
    let reason = decision.reason.iter();
    words.extend(reason.map(|reason| format!("--reason={reason}")));
    words.extend(["--".to_owned(), decision.hold_id.to_string()]);
    words
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(binary), Some(project), Some(home)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        eprintln!("page_server BINARY PROJECT HOME [ADDRESS]");
        return ExitCode::from(7);
    };
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let mut children = Children {
        binary: binary.into(),
        project: project.into(),
        home: home.into(),
        takes_signatures: false,
    };
    children.ask_about_signatures();
    let commands = Arc::new(children);
    let around = Around {
        clock: Arc::new(WallClock),
        entropy: Arc::new(Device),
        transport: Transport::Plain,
    };
    let served = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| {
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind(&address).await?;
                println!("http://{}", listener.local_addr()?);
                axum::serve(listener, router(commands, around)).await
            })
        });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
