//! The document, read strictly, with one allowance.
//!
//! What a tool printed may hold half a character, because a client cut it in the middle, or
//! a number too large for most readers. That must not hide how the call ended, so there,
//! and nowhere else, it is mended. Everything that is judged is read strictly.

use safepoint_model::json::{self, Limits, ReadErrorKind};
use serde_json::Value;

use super::dialect::Dialect;
use super::event::Kind;
use crate::Client;

/// The longest document, in bytes.
const LONGEST: usize = 64 << 20;

pub(crate) fn read(client: Client, bytes: &[u8]) -> Result<Value, String> {
    let limits = Limits {
        bytes: LONGEST,
        ..Limits::default()
    };
    json::read(bytes, limits).or_else(|error| {
        let mendable = matches!(
            error.kind,
            ReadErrorKind::LoneSurrogate
                | ReadErrorKind::IntegerOutOfRange { .. }
                | ReadErrorKind::NumberOverflow { .. }
        );
        let mended = (mendable && Dialect::in_result(client, &error.path))
            .then(|| mended(client, bytes))
            .flatten();
        mended.ok_or_else(|| error.to_string())
    })
}

/// The document with its halves of characters replaced, if all of them, and all numbers
/// that are too large, lie in what came of the tool.
fn mended(client: Client, bytes: &[u8]) -> Option<Value> {
    let whole = String::from_utf8(whole_characters(bytes)).ok()?;
    let value: Value = serde_json::from_str(&whole).ok()?;
    let (_, kind) = super::which(client, &value).ok()?;
    if !matches!(kind, Kind::After | Kind::Failure) {
        return None;
    }
    // The rest must stand the strict reader, too.
    let mut rest = value.clone();
    let dialect = Dialect::of(client, &value);
    for place in dialect.result {
        if let Some(result) = rest.pointer_mut(place) {
            *result = Value::Null;
        }
    }
    let rest = serde_json::to_vec(&rest).ok()?;
    json::read(&rest, Limits::default()).ok()?;
    Some(value)
}

/// Every `\u` escape that is half of a pair becomes `\ufffd`.
fn whole_characters(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        let taken = match (first, half(rest)) {
            (b'\\', Some(0xd800..=0xdbff))
                if matches!(rest.get(6..).and_then(half), Some(0xdc00..=0xdfff)) =>
            {
                12
            }
            (b'\\', Some(0xd800..=0xdfff)) => {
                out.extend_from_slice(b"\\ufffd");
                rest = rest.get(6..).unwrap_or_default();
                continue;
            }
            (b'\\', _) if !behind.is_empty() => 2,
            _ => 1,
        };
        let (now, later) = rest.split_at_checked(taken).unwrap_or((rest, &[]));
        out.extend_from_slice(now);
        rest = later;
    }
    out
}

/// The code of the `\u` escape that `bytes` begin with.
fn half(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
