//! A message for a chat room, in the form that Slack and those who followed it take.
//!
//! Others' words stand in code alone, where nobody is called and nothing is a link, with the
//! characters that would end it taken out. There is no button: who is in a chat room is no
//! operator, and whoever has an operator's key does not need one.

use safepoint_model::text;
use serde_json::{Value, json};

use super::vault::Kept;
use super::webhook::Links;
use super::{Letter, Target, Told};

/// The most characters of one fact.
const LONGEST_FACT: usize = 180;

/// The most facts: together with their labels they stay below Slack's 3,000 characters.
const MOST_FACTS: usize = 12;

/// The most characters of the form. Slack takes 3,000 in a block.
const LONGEST_FORM: usize = 2_800;

/// Slack's answers that no other attempt changes: a message it cannot read, a room that is gone.
const HOPELESS: &[u16] = &[400, 403, 404];

/// The message for one event.
pub(super) fn letter(
    told: &Told,
    target: &Target,
    kept: &Kept,
    links: &Links,
    now: safepoint_model::Timestamp,
) -> Letter {
    sealed(&message(told, links), target, kept, now)
}

/// A message that only says that it arrived.
pub(super) fn trial(target: &Target, kept: &Kept, now: safepoint_model::Timestamp) -> Letter {
    let title = "Safepoint: a test, nothing has happened";
    let body = json!({"text": title, "blocks": [header(title)]});
    sealed(&body, target, kept, now)
}

fn sealed(body: &Value, target: &Target, kept: &Kept, now: safepoint_model::Timestamp) -> Letter {
    Letter {
        url: kept.url.clone(),
        reach: target.reach(),
        authority: kept.authority.clone(),
        headers: vec![("content-type", "application/json; charset=utf-8".to_owned())],
        body: body.to_string(),
        hopeless: HOPELESS,
        now,
    }
}

/// The whole message: as blocks, and once more as text for rooms that know no blocks.
fn message(told: &Told, links: &Links) -> Value {
    let title = format!("Safepoint: {}", told.title);
    let facts = told.facts.iter().take(MOST_FACTS);
    let mut facts: Vec<String> = facts
        .map(|(label, value)| {
            let shown = text::line(value).text;
            format!("*{label}:* `{}`", escaped(&shown, LONGEST_FACT))
        })
        .collect();
    if let Some(time) = told.expires {
        facts.push(format!("*Denied at:* {time}, if nobody decides"));
    }
    let form = told.form.as_deref().map(|form| {
        let shown = text::block(form).text;
        format!("```\n{}\n```", escaped(&shown, LONGEST_FORM))
    });
    let mut next = Vec::new();
    if let Some(page) = &links.page {
        next.push(format!("Look: {}", escaped(page, LONGEST_FORM)));
    }
    if let Some(command) = &links.command {
        next.push(format!(
            "In a terminal: `{}`",
            escaped(command, LONGEST_FACT)
        ));
    }
    if told.expires.is_some() {
        next.push(
            "Nobody can decide in here: an operator does, with a key of their own.".to_owned(),
        );
    }
    let facts = facts.join("\n");
    let next = next.join("\n");
    let mut blocks = vec![header(&title), section(&facts)];
    blocks.extend(form.as_deref().map(section));
    if !next.is_empty() {
        blocks.push(section(&next));
    }
    let parts = [Some(title), Some(facts), form, Some(next)];
    let parts: Vec<String> = parts
        .into_iter()
        .flatten()
        .filter(|it| !it.is_empty())
        .collect();
    json!({
        "text": parts.join("\n"),
        "blocks": blocks,
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

/// A heading. Its text is our own.
fn header(text: &str) -> Value {
    json!({"type": "header", "text": {"type": "plain_text", "text": text, "emoji": false}})
}

fn section(text: &str) -> Value {
    json!({"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": true}})
}

/// Text that calls nobody, links nowhere and ends no code, at most so many characters long.
fn escaped(text: &str, most: usize) -> String {
    let mut written = String::new();
    let mut length = 0;
    for c in text.chars() {
        let piece = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            // Looks the same, and ends nothing.
            '`' => "\u{2cb}",
            _ => "",
        };
        length += piece.chars().count().max(1);
        if length >= most {
            written.push('…');
            return written;
        }
        match piece.is_empty() {
            true => written.push(c),
            false => written.push_str(piece),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_10_hostile_words_call_nobody_and_end_no_code() {
        for (text, shown) in [
            ("<!channel> hi", "&lt;!channel&gt; hi"),
            ("<@U123|you>", "&lt;@U123|you&gt;"),
            ("a & b", "a &amp; b"),
            ("```\n*bold*", "ˋˋˋ\n*bold*"),
            (
                "<https://evil.example|Approve>",
                "&lt;https://evil.example|Approve&gt;",
            ),
        ] {
            assert_eq!(escaped(text, 1_000), shown);
        }
    }

    #[test]
    fn su_10_long_words_are_cut_between_characters() {
        for length in 0..2_000 {
            let shown = escaped(&"<".repeat(length), 100);
            assert!(shown.chars().count() <= 100, "{length}");
            let whole = shown.trim_end_matches('…');
            assert_eq!(whole.replace("&lt;", ""), "");
        }
    }
}
