//! The writer: RFC 8785, from a tree.
//!
//! This lies on the path of every append. A map whose keys are plain text is
//! already in order and written as it stands; no key is copied.

use serde_json::{Map, Number, Value};

use super::{MAX_DEPTH, MAX_INTEGER, WriteError, is_inexact_integer, is_special};

/// So many bytes have room for most of what is written, without asking for more.
pub(super) const ENOUGH_FOR_MOST: usize = 1024;

/// The canonical bytes of `value`.
pub fn canonical(value: &Value) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::with_capacity(ENOUGH_FOR_MOST);
    write_canonical(value, &mut out)?;
    Ok(out)
}

/// Appends the canonical bytes of `value` to `out`.
///
/// After an error, `out` holds part of them.
pub fn write_canonical(value: &Value, out: &mut Vec<u8>) -> Result<(), WriteError> {
    write_value(value, MAX_DEPTH, out)
}

fn write_value(value: &Value, room: usize, out: &mut Vec<u8>) -> Result<(), WriteError> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number, out)?,
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            let room = room.checked_sub(1).ok_or(WriteError::TooDeep)?;
            out.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_value(item, room, out)?;
            }
            out.push(b']');
        }
        Value::Object(members) => {
            let room = room.checked_sub(1).ok_or(WriteError::TooDeep)?;
            if is_in_order(members) {
                write_members(members.iter(), room, out)?;
            } else {
                let mut members: Vec<_> = members.iter().collect();
                members
                    .sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
                write_members(members.into_iter(), room, out)?;
            }
        }
    }
    Ok(())
}

/// Whether the members can be written as they come.
///
/// The map is sorted by bytes, unless some other crate of the build switches
/// on `serde_json/preserve_order`, so this looks. The order of bytes and that
/// of UTF-16 differ only between U+E000..U+FFFF, which begin with 0xEE or
/// 0xEF, and what lies beyond, which begins with more.
fn is_in_order(members: &Map<String, Value>) -> bool {
    members.keys().is_sorted() && members.keys().all(|key| orders_by_bytes(key))
}

/// Whether comparing `key` with any other by bytes gives the order of UTF-16.
pub(super) fn orders_by_bytes(key: &str) -> bool {
    key.bytes().all(|byte| byte < 0xee)
}

fn write_members<'a>(
    members: impl Iterator<Item = (&'a String, &'a Value)>,
    room: usize,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    out.push(b'{');
    for (place, (key, value)) in members.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write_string(key, out);
        out.push(b':');
        write_value(value, room, out)?;
    }
    out.push(b'}');
    Ok(())
}

pub(super) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(end) = rest.iter().position(|byte| is_special(*byte)) {
        let (plain, escaped) = rest.split_at(end);
        out.extend_from_slice(plain);
        let Some((byte, after)) = escaped.split_first() else {
            break;
        };
        write_escape(*byte, out);
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let letter = match byte {
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        b'"' | b'\\' => byte,
        _ => {
            out.extend_from_slice(if byte < 0x10 { b"\\u000" } else { b"\\u001" });
            out.push(match byte & 0xf {
                digit @ 0..10 => b'0' + digit,
                digit => b'a' + digit - 10,
            });
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

fn write_number(number: &Number, out: &mut Vec<u8>) -> Result<(), WriteError> {
    if let Some(number) = number.as_u64() {
        write_unsigned(number, out)
    } else if let Some(number) = number.as_i64() {
        write_signed(number, out)
    } else {
        write_double(number.as_f64().unwrap_or(f64::NAN), out)
    }
}

pub(super) fn write_signed(number: i64, out: &mut Vec<u8>) -> Result<(), WriteError> {
    if number >= 0 {
        return write_unsigned(number.unsigned_abs(), out);
    }
    if number.unsigned_abs() > MAX_INTEGER {
        return Err(out_of_range(number));
    }
    out.push(b'-');
    write_unsigned(number.unsigned_abs(), out)
}

pub(super) fn write_unsigned(number: u64, out: &mut Vec<u8>) -> Result<(), WriteError> {
    if number > MAX_INTEGER {
        return Err(out_of_range(number));
    }
    let mut digits = [0; 16]; // as many as `MAX_INTEGER` has
    let mut start = digits.len();
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        start -= 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(start..).unwrap_or_default());
    Ok(())
}

pub(super) fn write_double(number: f64, out: &mut Vec<u8>) -> Result<(), WriteError> {
    if !number.is_finite() {
        return Err(WriteError::NotFinite);
    }
    if is_inexact_integer(number) {
        return Err(out_of_range(number));
    }
    out.extend_from_slice(ecmascript(number).as_bytes());
    Ok(())
}

/// A finite double as ECMAScript prints it (`Number::toString`, to which RFC 8785 refers).
pub(super) fn ecmascript(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned(); // minus zero, too
    }
    let sign = if number < 0.0 { "-" } else { "" };
    let scientific = shortest(number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    // The number is 0.DIGITS times ten to the `point`.
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    let zeros = |count: usize| "0".repeat(count);
    match usize::try_from(point) {
        Ok(whole @ 1..=21) => match digits.split_at_checked(whole) {
            Some((before, after)) if !after.is_empty() => format!("{sign}{before}.{after}"),
            _ => format!("{sign}{digits}{}", zeros(whole - digits.len())),
        },
        _ if (-5..=0).contains(&point) => {
            format!("{sign}0.{}{digits}", zeros(point.unsigned_abs() as usize))
        }
        _ => format!("{sign}{mantissa}e{:+}", point - 1),
    }
}

/// The fewest digits that give `number` back, as `1.25e-7`.
///
/// These are the digits of `{:e}`, save that of two that are equally near it
/// takes the upper, and ECMAScript the even one. Rounding to a given number of
/// digits does take the even one; it is right whenever it gives the number
/// back, which next to a power of two it may not.
fn shortest(number: f64) -> String {
    let upper = format!("{number:e}");
    let mantissa = upper.find('e').unwrap_or(upper.len());
    if mantissa < 16 {
        return upper; // up to 15 digits, no two spellings mean the same double
    }
    let even = format!("{number:.*e}", mantissa.saturating_sub(2));
    if even.parse() == Ok(number) {
        even
    } else {
        upper
    }
}

pub(super) fn out_of_range(number: impl ToString) -> WriteError {
    WriteError::IntegerOutOfRange {
        number: number.to_string(),
    }
}
