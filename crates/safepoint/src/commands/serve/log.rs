//! What the server tells about itself, line by line.
//!
//! It never waits for whoever reads: a request is answered also when nobody takes the lines.
//! Those are dropped then, and the next one that is taken says how many.

use std::convert::Infallible;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use safepoint_model::Clock;
use serde_json::{Map, Value, json};

use crate::world::SystemClock;

/// How many lines wait for whoever reads.
const MOST: usize = 1_024;

/// The lines, on their way.
pub(super) struct Log {
    waiting: Mutex<Waiting>,
    /// Hangs up when the last line is written.
    written: Mutex<Receiver<Infallible>>,
}

struct Waiting {
    /// Nothing after the end.
    lines: Option<SyncSender<String>>,
    /// How many were dropped since one was taken.
    dropped: u64,
}

impl Log {
    /// Lines go to `out`, from a thread of their own.
    pub(super) fn new(mut out: impl Write + Send + 'static) -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel::<String>(MOST);
        let (writing, written) = channel();
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                for line in waiting {
                    // Nobody to tell it to is no reason to fail.
                    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
                }
                drop(writing);
            })?;
        Ok(Self {
            waiting: Mutex::new(Waiting {
                lines: Some(lines),
                dropped: 0,
            }),
            written: Mutex::new(written),
        })
    }

    /// Tells something, with the time.
    pub(super) fn tell(&self, line: Map<String, Value>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.dropped > 0 {
            let mut gap = Map::new();
            gap.insert("event".to_owned(), "dropped".into());
            gap.insert("detail".to_owned(), json!({ "lines": waiting.dropped }));
            if waiting.send(gap) {
                waiting.dropped = 0;
            }
        }
        if !waiting.send(line) {
            waiting.dropped += 1;
        }
    }

    /// Ends it: what waits is written, if somebody takes it in time.
    pub(super) fn end(&self, patience: Duration) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.lines = None;
        drop(waiting);
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = written.recv_timeout(patience);
    }
}

impl Waiting {
    /// Whether there was room for it.
    fn send(&self, line: Map<String, Value>) -> bool {
        let mut whole = Map::new();
        whole.insert("time".to_owned(), SystemClock.now().to_string().into());
        whole.extend(line);
        let text = format!("{}\n", Value::Object(whole));
        let lines = self.lines.as_ref();
        lines.is_some_and(|lines| lines.try_send(text).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Takes nothing before it is told to.
    struct Reader {
        go: Receiver<Infallible>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.go.recv();
            self.taken.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn line(number: usize) -> Map<String, Value> {
        let mut line = Map::new();
        line.insert("number".to_owned(), number.into());
        line
    }

    #[test]
    fn su_07_a_log_that_nobody_reads_stops_nobody_and_tells_the_gap() {
        let (hold, go) = channel();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let reader = Reader {
            go,
            taken: Arc::clone(&taken),
        };
        let log = Log::new(reader).unwrap();
        for number in 0..2 * MOST {
            log.tell(line(number));
        }
        // Somebody reads again.
        drop(hold);
        let lines = || {
            let text = String::from_utf8(taken.lock().unwrap().clone()).unwrap();
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect::<Vec<Value>>()
        };
        while lines().len() < MOST {
            std::thread::yield_now();
        }
        log.tell(line(0));
        log.end(Duration::from_secs(60));
        let lines = lines();
        let gaps = lines.iter().filter(|line| line["event"] == "dropped");
        let gap: u64 = gaps
            .map(|line| line["detail"]["lines"].as_u64().unwrap())
            .sum();
        let numbers = lines.iter().filter(|line| line["number"].is_u64()).count();
        assert_eq!(numbers as u64 + gap, 2 * MOST as u64 + 1);
        assert!(gap >= MOST as u64 - 1, "{gap}");
        assert_eq!(lines.last().unwrap()["number"], 0);
        assert!(lines.iter().all(|line| line["time"].is_string()));
        // After the end nothing is told, and nothing breaks.
        log.tell(line(1));
    }
}
