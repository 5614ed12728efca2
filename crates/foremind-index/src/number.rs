/// Rounds a score to 1e-4. Ranking happens after it, so differences in the last bits between hosts vanish.
#[must_use]
pub fn quantise(score: f64) -> f32 {
    // Division of two exactly represented numbers is correctly rounded, hence the same everywhere.
    ((score * 1e4).round() / 1e4) as f32
}

/// Natural logarithm of a positive finite number from basic operations alone, which IEEE 754 rounds alike on
/// every host; the platform's own `ln` may differ in the last bit. Absolute error below 1e-12.
pub(crate) fn ln(x: f64) -> f64 {
    let (mut mantissa, mut exponent) = (x, 0.0_f64);
    while mantissa > core::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1.0;
    }
    while mantissa < core::f64::consts::FRAC_1_SQRT_2 {
        mantissa *= 2.0;
        exponent -= 1.0;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)); |t| <= 0.1716, so 8 terms reach 1e-13.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let series = (0..8).rev().fold(0.0, |sum, n| {
        1.0 / (2.0 * f64::from(n) + 1.0) + square * sum
    });
    exponent * core::f64::consts::LN_2 + 2.0 * t * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_agrees_with_the_platform_s() {
        let mut x = 1e-6;
        while x < 1e9 {
            assert!((ln(x) - f64::ln(x)).abs() < 1e-12, "{x}");
            x *= 1.37;
        }
    }

    #[test]
    fn quantised_scores_lie_on_the_grid() {
        assert_eq!(quantise(0.123_449_9), 0.1234);
        assert_eq!(quantise(0.123_450_1), 0.1235);
        assert_eq!(quantise(-0.000_04), 0.0);
    }
}
