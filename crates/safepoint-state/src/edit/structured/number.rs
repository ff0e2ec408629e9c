//! Numbers as they are written, of any size and precision.

/// Whether two numbers have the same value: `1`, `1.0` and `10e-1` do.
pub(super) fn same_number(one: &str, other: &str) -> bool {
    one == other || matches!((parts(one), parts(other)), (Some(a), Some(b)) if a == b)
}

/// Whether two numbers have the same value and are both integers, or neither.
pub(super) fn same_spelling(one: &str, other: &str) -> bool {
    is_fraction(one) == is_fraction(other) && same_number(one, other)
}

/// Whether a number is written with a point or an exponent.
fn is_fraction(number: &str) -> bool {
    number.contains(['.', 'e', 'E'])
}

/// The sign, the digits from the first to the last that is not zero, and how
/// many places the point stands behind the first of them.
fn parts(number: &str) -> Option<(bool, String, i64)> {
    let negative = number.starts_with('-');
    let number = number.trim_start_matches(['-', '+']);
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || digits.is_empty() {
        return None;
    }
    let first = digits.trim_start_matches('0');
    let significant = first.trim_end_matches('0');
    if significant.is_empty() {
        return Some((false, String::new(), 0));
    }
    let zeros = i64::try_from(digits.len() - first.len()).ok()?;
    let point = i64::try_from(whole.len()).ok()?;
    let places = exponent.checked_add(point)?.checked_sub(zeros)?;
    Some((negative, significant.to_owned(), places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_23_numbers_are_compared_by_value() {
        for (one, other) in [
            ("1", "1.0"),
            ("1", "10e-1"),
            ("100", "1e2"),
            ("0", "-0.0e5"),
            ("0.001", "1E-3"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890.0",
            ),
            ("+5", "5"),
            ("12", "012"),
            (".5", "0.5"),
            ("1e99999999999999999999", "1e99999999999999999999"),
        ] {
            assert!(same_number(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("1", "-1"),
            ("1", "10"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567891",
            ),
            ("0.1", "0.10000000000000000001"),
            ("1e99999999999999999999", "1e99999999999999999998"),
            ("1", "x"),
        ] {
            assert!(!same_number(one, other), "{one} {other}");
        }
        assert!(!same_spelling("1", "1.0"));
        assert!(same_spelling("1.0", "1e0"));
    }
}
