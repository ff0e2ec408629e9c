//! The operator's terminal over a desk that is made up: three holds, one of them hostile.
//! `cargo run -p safepoint-tui --example desk`, and drive it by hand or in a multiplexer.

#[expect(clippy::unwrap_used, reason = "made up, and known to be fine")]
#[path = "../tests/terminal/holds.rs"]
mod holds;

use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use safepoint_authority::{Choice, Hold, HoldState, Pending};
use safepoint_model::{Clock, HoldId, Timestamp};
use safepoint_tui::{Desk, Moment, Options, Palette, Until, Verdict};

struct Wall;

impl Clock for Wall {
    #[expect(clippy::disallowed_methods, reason = "an example is a binary")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
        let micros = since.map_or(0, |since| since.as_micros());
        Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }
}

/// A desk with nothing behind it.
struct MadeUp {
    holds: Vec<Hold>,
    moments: Vec<Moment>,
}

impl Desk for MadeUp {
    fn queue(&mut self) -> Result<Vec<Pending>, String> {
        let waits = |hold: &&Hold| matches!(hold.state, HoldState::Pending | HoldState::Halted);
        Ok(self.holds.iter().filter(waits).map(Hold::pending).collect())
    }

    fn preview(&mut self, _: &HoldId) -> Result<Vec<String>, String> {
        let lines = [
            "--- a/pages/index.html",
            "+++ b/pages/index.html",
            "@@ -1,4 +1,4 @@",
            " <h1>Catalogue</h1>",
            "-\t<p>Winter</p>",
            "+\t<p>Spring</p>",
            "+\t<script>\u{202e}evil\u{2066}</script>",
        ];
        Ok(lines.map(str::to_owned).to_vec())
    }

    fn timeline(&mut self, _: &HoldId) -> Result<Vec<Moment>, String> {
        Ok(self.moments.clone())
    }

    fn decide(&mut self, verdict: &Verdict) -> Result<String, String> {
        let hold = self
            .holds
            .iter_mut()
            .find(|hold| hold.hold_id == verdict.hold_id);
        let Some(hold) = hold else {
            return Err("there is no such hold any more".to_owned());
        };
        if hold.fingerprint != verdict.fingerprint {
            return Err("the decision is about another fingerprint".to_owned());
        }
        if verdict.choice.is_yes() && hold.confirm() != verdict.confirm {
            return Err("the second confirmation is missing".to_owned());
        }
        hold.state = match verdict.choice {
            Choice::Deny => HoldState::Denied,
            Choice::Halt => HoldState::Halted,
            _ => HoldState::Approved,
        };
        let reason = verdict.reason.as_deref().unwrap_or("no reason given");
        self.moments.push(Moment {
            time: Wall.now(),
            kind: "decision".to_owned(),
            text: format!("{} ({reason})", verdict.choice.as_str()),
        });
        Ok(format!("{}: {}", verdict.hold_id, verdict.choice.as_str()))
    }
}

fn main() -> ExitCode {
    let ago = |seconds: i64| Wall.now().saturating_add_micros(-seconds * 1_000_000);
    let mut desk = MadeUp {
        holds: vec![
            holds::hold(1, ago(150), &["git", "commit", "-m", "Tidy the page"]),
            holds::final_hold(2, ago(90)),
            holds::hostile_hold(3, ago(20)),
        ],
        moments: vec![Moment {
            time: ago(160),
            kind: "session_began".to_owned(),
            text: "agent:writer, to publish the spring catalogue".to_owned(),
        }],
    };
    #[expect(clippy::disallowed_methods, reason = "an example is a binary")]
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let options = Options {
        palette: match no_color {
            true => Palette::None,
            false => Palette::Sixteen,
        },
        until: Until::Left,
        operator: Some("ana".to_owned()),
        stop: std::sync::Arc::default(),
    };
    match safepoint_tui::run(&mut desk, &Wall, &options) {
        Ok(ended) => {
            println!("{ended:?}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
