//! What is counted, in Prometheus' text form: requests by route and status, and how long
//! they took. Routes are those of the table, so nobody can make up new ones.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Gauges;

/// The upper ends of the buckets, in seconds.
const ENDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// What is counted.
#[derive(Default)]
pub(super) struct Metrics {
    routes: Mutex<BTreeMap<&'static str, Counts>>,
}

#[derive(Default)]
struct Counts {
    /// By status.
    requests: BTreeMap<u16, u64>,
    /// By bucket, the last being everything beyond.
    took: [u64; ENDS.len() + 1],
    seconds: f64,
}

impl Metrics {
    /// Counts a request.
    pub(super) fn count(&self, route: &'static str, status: u16, took: Duration) {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = routes.entry(route).or_default();
        *counts.requests.entry(status).or_default() += 1;
        let seconds = took.as_secs_f64();
        counts.seconds += seconds;
        let bucket = ENDS.iter().take_while(|end| seconds > **end).count();
        if let Some(bucket) = counts.took.get_mut(bucket) {
            *bucket += 1;
        }
    }

    /// All of it as text. What the store cannot say is left out.
    pub(super) fn show(&self, gauges: Option<Gauges>) -> String {
        let mut text = String::new();
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        head(
            &mut text,
            "safepoint_requests_total",
            "counter",
            "Requests by route and status.",
        );
        for (route, counts) in &*routes {
            for (status, count) in &counts.requests {
                let _ = writeln!(
                    text,
                    "safepoint_requests_total{{route=\"{route}\",status=\"{status}\"}} {count}"
                );
            }
        }
        let name = "safepoint_request_seconds";
        head(&mut text, name, "histogram", "How long requests took.");
        for (route, counts) in &*routes {
            let mut sum = 0;
            let ends = ENDS.iter().map(ToString::to_string);
            for (end, count) in ends.chain(["+Inf".to_owned()]).zip(counts.took) {
                sum += count;
                let _ = writeln!(
                    text,
                    "{name}_bucket{{route=\"{route}\",le=\"{end}\"}} {sum}"
                );
            }
            let _ = writeln!(text, "{name}_sum{{route=\"{route}\"}} {}", counts.seconds);
            let _ = writeln!(text, "{name}_count{{route=\"{route}\"}} {sum}");
        }
        let Some(gauges) = gauges else {
            return text;
        };
        for (name, about, value) in [
            (
                "safepoint_holds_open",
                "Holds that wait for a person.",
                gauges.holds_open,
            ),
            (
                "safepoint_trail_size",
                "Entries in the trail.",
                gauges.trail_size,
            ),
        ] {
            head(&mut text, name, "gauge", about);
            let _ = writeln!(text, "{name} {value}");
        }
        text
    }
}

fn head(text: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(text, "# HELP {name} {about}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_07_requests_are_counted_by_route_and_status() {
        let metrics = Metrics::default();
        metrics.count("status", 200, Duration::from_millis(1));
        metrics.count("status", 200, Duration::from_millis(30));
        metrics.count("status", 401, Duration::from_secs(60));
        let text = metrics.show(Some(Gauges {
            holds_open: 2,
            trail_size: 7,
        }));
        for line in [
            "safepoint_requests_total{route=\"status\",status=\"200\"} 2",
            "safepoint_requests_total{route=\"status\",status=\"401\"} 1",
            "safepoint_request_seconds_bucket{route=\"status\",le=\"0.001\"} 1",
            "safepoint_request_seconds_bucket{route=\"status\",le=\"0.05\"} 2",
            "safepoint_request_seconds_bucket{route=\"status\",le=\"10\"} 2",
            "safepoint_request_seconds_bucket{route=\"status\",le=\"+Inf\"} 3",
            "safepoint_request_seconds_count{route=\"status\"} 3",
            "safepoint_holds_open 2",
            "safepoint_trail_size 7",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }
}
