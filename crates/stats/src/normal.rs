//! The standard normal distribution.

use statrs::distribution::{ContinuousCDF as _, Normal};
use statrs::function::erf::erfc;

/// The probability above `z`.
pub(crate) fn tail(z: f64) -> f64 {
    erfc(z / std::f64::consts::SQRT_2) / 2.0
}

/// The quantile at `p`; `None` if `p` is not inside (0, 1).
pub(crate) fn quantile(p: f64) -> Option<f64> {
    (p > 0.0 && p < 1.0).then(|| Normal::standard().inverse_cdf(p))
}
