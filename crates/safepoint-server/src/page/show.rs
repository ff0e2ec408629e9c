//! How single things look on a page. Whatever comes from outside goes through here.
//!
//! Text is escaped twice, for two reasons: so that it is no markup, and so that it shows what
//! it is ([`safepoint_model::text`]).

use maud::{Markup, html};
use safepoint_model::Timestamp;
use safepoint_model::text::{self as safe, Shown};
use serde_json::Value;

/// A text on one line.
pub(super) fn text(input: &str) -> Markup {
    marked(&safe::line(input))
}

/// A text on as many lines as it has.
pub(super) fn block(input: &str) -> Markup {
    marked(&safe::block(input))
}

/// A text, with a mark where something in it is not what it seems.
fn marked(shown: &Shown) -> Markup {
    if shown.hazards.is_empty() {
        return html! { (shown.text) };
    }
    let hazards: Vec<String> = shown.hazards.iter().map(ToString::to_string).collect();
    let told = format!("has {}, shown as escapes", hazards.join(", "));
    html! { span.hazard title=(told) { (shown.text) } }
}

/// A text as a sentence of its own, with a capital letter and a full stop.
pub(super) fn sentence(input: &str) -> Markup {
    let mut letters = input.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    let whole = format!("{}{}", first.unwrap_or_default(), letters.as_str());
    html! { (text(&whole)) @if !whole.ends_with(['.', '?', '!']) { "." } }
}

/// How much is at stake.
pub(super) fn risk(level: &str) -> Markup {
    let tone = match level {
        "high" | "critical" => "bad",
        "medium" => "warn",
        _ => "plain",
    };
    html! { span class={ "badge " (tone) } { (text(level)) " risk" } }
}

/// Something that is written down to the letter.
pub(super) fn code(input: &str) -> Markup {
    html! { code { (text(input)) } }
}

/// A word that says how something stands. Its colour says the same as the word.
pub(super) fn badge(word: &str) -> Markup {
    let tone = match word {
        "allow" | "allowed" | "ok" | "approved" | "passed" | "valid" | "reversible" | "closed"
        | "integrated" | "done" | "live" | "complete" | "final" => "good",
        "deny" | "denied" | "error" | "failed" | "irreversible" | "critical" | "high"
        | "conflicted" | "halted" | "abandoned" => "bad",
        "pending" | "hold" | "requires_approval" | "unknown" | "expired" | "medium" | "blocked"
        | "partial" | "partly_reversible" | "suspended" | "waits" => "warn",
        _ => "plain",
    };
    html! { span class={ "badge " (tone) } { (text(&word.replace('_', " "))) } }
}

/// A value inside an address: one piece of its path, whatever is in it.
pub(super) fn url(value: &str) -> String {
    form_urlencoded::byte_serialize(value.as_bytes()).collect()
}

/// A moment, as people say it; to the letter where one points at it.
pub(super) fn time(moment: &str, now: Timestamp) -> Markup {
    match Timestamp::parse(moment) {
        Ok(then) => html! { time datetime=(moment) title=(moment) { (relative(then, now)) } },
        Err(_) => text(moment),
    }
}

/// How long ago, or until when.
fn relative(then: Timestamp, now: Timestamp) -> String {
    let micros = then.as_micros().saturating_sub(now.as_micros());
    let seconds = micros.unsigned_abs() / 1_000_000;
    let (number, unit) = match seconds {
        0..5 => return "now".to_owned(),
        5..60 => (seconds, "s"),
        60..3_600 => (seconds / 60, "min"),
        3_600..172_800 => (seconds / 3_600, "h"),
        _ => (seconds / 86_400, "days"),
    };
    match micros < 0 {
        true => format!("{number} {unit} ago"),
        false => format!("in {number} {unit}"),
    }
}

/// The end of an id, which tells it from others; all of it where one points at it.
pub(super) fn short(id: &str) -> Markup {
    let digest = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let shown = match (digest, id.rsplit_once('_')) {
        (true, _) => id.get(..12).unwrap_or(id),
        (false, Some((_, end))) if id.starts_with("chk_") => end,
        _ => id,
    };
    html! { code.id title=(safe::line(id).text) { (text(shown)) @if digest { "…" } } }
}

/// Bytes, as people say it.
pub(super) fn bytes(count: u64) -> String {
    let scaled = |unit: u64| format!("{}.{}", count / unit, count % unit * 10 / unit);
    match count {
        0..1_024 => format!("{count} B"),
        1_024..1_048_576 => format!("{} KiB", scaled(1_024)),
        1_048_576..1_073_741_824 => format!("{} MiB", scaled(1_048_576)),
        _ => format!("{} GiB", scaled(1_073_741_824)),
    }
}

/// `1 file`, `2 files`.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

/// A document, indented, with every text in it made safe.
pub(super) fn json(value: &Value) -> Markup {
    html! { pre.json tabindex="0" { (piece(value, 0)) } }
}

fn piece(value: &Value, depth: usize) -> Markup {
    let inner = "  ".repeat(depth + 1);
    let outer = "  ".repeat(depth);
    match value {
        Value::Object(fields) if !fields.is_empty() => html! {
            "{\n"
            @for (place, (name, value)) in fields.iter().enumerate() {
                (inner) span.field { (quoted(name)) } ": " (piece(value, depth + 1))
                @if place + 1 < fields.len() { "," } "\n"
            }
            (outer) "}"
        },
        Value::Array(values) if !values.is_empty() => html! {
            "[\n"
            @for (place, value) in values.iter().enumerate() {
                (inner) (piece(value, depth + 1))
                @if place + 1 < values.len() { "," } "\n"
            }
            (outer) "]"
        },
        Value::String(text) => html! { span.string { (quoted(text)) } },
        other => html! { span.other { (other.to_string()) } },
    }
}

fn quoted(input: &str) -> Markup {
    html! { "\"" (text(&input.replace('"', "\\\""))) "\"" }
}

/// What a page says that has nothing to show.
pub(super) fn empty(what: &str, next: &Markup) -> Markup {
    html! {
        div.empty {
            p.what { (what) }
            p { (next) }
        }
    }
}

/// A command to copy.
pub(super) fn command(line: &str) -> Markup {
    html! {
        div.command {
            pre tabindex="0" { code { (text(line)) } }
            button.quiet type="button" data-needs-script data-copy hidden { "Copy" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_08_hostile_text_is_no_markup_and_shows_what_it_is() {
        let shown = text("<img src=x>\u{202e}\n\u{1b}[2J").into_string();
        assert!(!shown.contains("<img"), "{shown}");
        assert!(
            shown.contains("&lt;img src=x&gt;\\u{202e}\\n\\u{1b}[2J"),
            "{shown}"
        );
        assert!(shown.contains("text direction changes"), "{shown}");
        let shown = json(&serde_json::json!({"a\"b": "</pre><script>\u{200b}"})).into_string();
        assert!(!shown.contains("<script>"), "{shown}");
        assert!(shown.contains("\\u{200b}"), "{shown}");
    }

    #[test]
    fn su_08_times_are_told_as_people_tell_them() {
        let now = Timestamp::parse("2026-11-16T12:00:00Z").unwrap();
        let told = |moment| relative(Timestamp::parse(moment).unwrap(), now);
        assert_eq!(told("2026-11-16T11:59:58Z"), "now");
        assert_eq!(told("2026-11-16T11:57:00Z"), "3 min ago");
        assert_eq!(told("2026-11-16T12:15:00Z"), "in 15 min");
        assert_eq!(told("2026-11-13T12:00:00Z"), "3 days ago");
        assert_eq!(bytes(1_536), "1.5 KiB");
    }
}
