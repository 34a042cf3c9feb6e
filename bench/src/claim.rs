//! A claim: a measured value and its expected bound. It is printed as met or not met; nothing fails on it.

use crate::figures::Ratio;
use serde_json::{Value, json};

/// A single value, such as a ratio of two tools.
pub(crate) struct Claim {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) bound: Bound,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    Within(f64, f64),
    Zero,
}

impl Claim {
    /// The median of a ratio is at least this.
    pub(crate) fn at_least(what: String, ratio: Ratio, bound: f64) -> Self {
        Self { what, value: ratio.median, bound: Bound::AtLeast(bound) }
    }

    pub(crate) fn met(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.value >= bound,
            Bound::AtMost(bound) => self.value <= bound,
            Bound::Within(low, high) => (low..=high).contains(&self.value),
            Bound::Zero => self.value == 0.0,
        }
    }

    pub(crate) fn line(&self) -> String {
        let digits = match self.bound {
            Bound::AtLeast(_) | Bound::AtMost(_) => 2,
            Bound::Within(..) => 5,
            Bound::Zero => 0,
        };
        format!("  {}: {:.digits$}, {}\n", self.what, self.value, self.judged())
    }

    /// The bound, and whether it is met.
    pub(crate) fn judged(&self) -> String {
        let bound = match self.bound {
            Bound::AtLeast(bound) => format!(">= {bound}"),
            Bound::AtMost(bound) => format!("<= {bound}"),
            Bound::Within(low, high) => format!("{low} to {high}"),
            Bound::Zero => "none".to_owned(),
        };
        format!("wanted {bound}: {}", if self.met() { "met" } else { "NOT MET" })
    }

    pub(crate) fn json(&self) -> Value {
        let bound = match self.bound {
            Bound::AtLeast(bound) => json!([bound, null]),
            Bound::AtMost(bound) => json!([null, bound]),
            Bound::Within(low, high) => json!([low, high]),
            Bound::Zero => json!([0, 0]),
        };
        json!({"what": self.what, "value": self.value, "wanted": bound, "met": self.met()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_value_bound_and_result() {
        let claim = Claim { what: "rate, a to b".into(), value: 2.5, bound: Bound::AtLeast(3.0) };
        assert_eq!(claim.line(), "  rate, a to b: 2.50, wanted >= 3: NOT MET\n");
        let claim = Claim { what: "rate".into(), value: 1.0002, bound: Bound::Within(0.999, 1.001) };
        assert_eq!(claim.line(), "  rate: 1.00020, wanted 0.999 to 1.001: met\n");
        assert!(!Claim { value: f64::NAN, ..claim }.met());
        let claim = Claim { what: "lost".into(), value: 3.0, bound: Bound::Zero };
        assert_eq!(claim.line(), "  lost: 3, wanted none: NOT MET\n");
    }
}
