//! Somebody who follows what happens, and comes back to another server when one is gone.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::World;
use super::people::Cast;

/// How long nothing is heard before another server is asked.
const SILENCE: Duration = Duration::from_secs(5);

/// How long between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// So many agents follow their own sessions.
const AGENTS: usize = 4;

/// One who follows.
pub(super) struct Follower {
    /// Whose events: an agent's, or everybody's.
    pub(super) agent: Option<usize>,
    token: String,
    /// The first place that they hear of.
    pub(super) from: u64,
    /// What they heard: places and hashes, in the order in which they came.
    heard: Mutex<Vec<(u64, String)>>,
    enough: AtomicBool,
}

impl Follower {
    /// Two who hear everything, and some agents.
    pub(super) fn all(world: &World, cast: &Cast) -> Vec<Self> {
        let head = world.site.env.json(&["trail", "head"]);
        let follower = |agent: Option<usize>, token: &str| Self {
            agent,
            token: token.to_owned(),
            from: head["size"].as_u64().unwrap(),
            heard: Mutex::default(),
            enough: AtomicBool::new(false),
        };
        let everything = (0..2).map(|_| follower(None, &cast.auditor));
        let agents = cast.agents.iter().take(AGENTS).enumerate();
        let own = agents.map(|(number, agent)| follower(Some(number), &agent.token));
        everything.chain(own).collect()
    }

    pub(super) fn heard(&self) -> Vec<(u64, String)> {
        self.heard.lock().unwrap().clone()
    }

    /// They need not listen any longer.
    pub(super) fn enough(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }

    /// Follows until that is enough.
    pub(super) fn follow(&self, world: &World) {
        let chance = world.chance("follows");
        let mut server = chance.below(1_000) as usize;
        while !self.enough.load(Ordering::Relaxed) {
            server += 1;
            // They also come back when nothing is wrong.
            let most = 20 + chance.below(400);
            if self.listen(&world.site.address(server), most).is_err() {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn listen(&self, url: &str, most: u64) -> std::io::Result<()> {
        let broken = || std::io::Error::other("no answer");
        let (_, address) = url.split_once("://").ok_or_else(broken)?;
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(SILENCE))?;
        let last = self.heard.lock().unwrap().last().map(|(place, _)| *place);
        let last = last.unwrap_or(self.from - 1);
        let head = format!(
            "GET /v1/events HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nLast-Event-ID: {last}\r\n\r\n",
            self.token
        );
        stream.write_all(head.as_bytes())?;
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next().ok_or_else(broken)??;
        if !status.ends_with(" 200 OK") {
            return Err(broken());
        }
        let mut place = None;
        let mut number = 0;
        for line in lines {
            let line = line?;
            if let Some(id) = line.strip_prefix("id: ") {
                place = id.parse().ok();
            }
            // An event that broke off before its end was not heard.
            if let Some(data) = line.strip_prefix("data: ")
                && let (Some(place), Ok(entry)) =
                    (place.take(), serde_json::from_str::<Value>(data))
            {
                let hash = entry["hash"].as_str().unwrap_or_default().to_owned();
                self.heard.lock().unwrap().push((place, hash));
                number += 1;
            }
            if number >= most || self.enough.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        Err(broken())
    }
}
