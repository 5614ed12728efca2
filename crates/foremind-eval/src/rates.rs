//! Shares with their intervals.

use serde_json::{Value, json};

/// How often something was so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) hits: u32,
    pub(crate) rows: u32,
}

impl Rate {
    pub(crate) fn add(&mut self, hit: bool) {
        self.rows += 1;
        self.hits += u32::from(hit);
    }

    /// The share, or null without rows.
    pub(crate) fn share(self) -> Value {
        if self.rows == 0 {
            return Value::Null;
        }
        json!(rounded(f64::from(self.hits) / f64::from(self.rows)))
    }

    /// The 95 % interval `[low, high]`, or null without rows.
    ///
    /// Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", 1927.
    pub(crate) fn ci95(self) -> Value {
        if self.rows == 0 {
            return Value::Null;
        }
        wilson95(
            f64::from(self.hits) / f64::from(self.rows),
            f64::from(self.rows),
        )
    }
}

/// Wilson's 95 % interval of a share of `rows` rows, more than none.
pub(crate) fn wilson95(share: f64, rows: f64) -> Value {
    let z = 1.959_964_f64;
    let middle = share + z * z / (2.0 * rows);
    let half = z * (share * (1.0 - share) / rows + z * z / (4.0 * rows * rows)).sqrt();
    let whole = 1.0 + z * z / rows;
    json!([
        rounded(((middle - half) / whole).max(0.0)),
        rounded(((middle + half) / whole).min(1.0))
    ])
}

fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_wilsons() {
        // Worked by hand: p = 0.8, n = 10: centre 0.7167, half width 0.2266.
        let rate = Rate { hits: 8, rows: 10 };
        assert_eq!(rate.share(), json!(0.8));
        assert_eq!(rate.ci95(), json!([0.4902, 0.9433]));
        // With no hit the upper end is z² / (n + z²).
        assert_eq!(Rate { hits: 0, rows: 10 }.ci95(), json!([0.0, 0.2775]));
        assert_eq!(Rate::default().share(), Value::Null);
    }
}
