//! Decimal numbers as people and data files write them. The standard library reads any number there is, by 16 KB of code and tables
//! that do not compress.

/// Most digits, so that the value is exact before its one division: 10^15 is below 2^53.
const DIGITS: usize = 15;

/// The number of digits with at most one point, and a minus before them if there is one: correctly rounded. `None` for anything
/// else, and for more than 15 digits.
///
/// Source: W. D. Clinger, "How to Read Floating Point Numbers Accurately", 1990, the fast path.
#[must_use]
pub fn decimal(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = || whole.bytes().chain(fraction.bytes());
    if all().count() == 0 || all().count() > DIGITS || !all().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = all().fold(0_u64, |value, byte| value * 10 + u64::from(byte - b'0'));
    let divisor = fraction.bytes().fold(1_u64, |divisor, _| divisor * 10);
    let magnitude = value as f64 / divisor as f64;
    Some(if digits.len() < text.len() {
        -magnitude
    } else {
        magnitude
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_what_the_standard_library_reads() {
        for text in [
            "0",
            "7",
            "007",
            "1.4",
            "-4.3",
            "0.0075",
            ".5",
            "5.",
            "-0",
            "3.14159265358979",
            "999999999999.999",
            "123456789012345",
            "0.00000000000001",
        ] {
            let theirs: f64 = text.parse().unwrap();
            assert_eq!(
                decimal(text).map(f64::to_bits),
                Some(theirs.to_bits()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "",
            "-",
            ".",
            "1.2.3",
            "1e5",
            "+1",
            "inf",
            "NaN",
            "1 2",
            "٣",
            "1234567890123456",
            "--1",
        ] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }
}
