//! Axes: values to pixels, and their ticks.

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Linear between the two.
    Linear(f64, f64),
    /// Logarithmic between the two; both above zero.
    Logarithmic(f64, f64),
}

impl Scale {
    /// From zero to a round value at or above the largest.
    pub fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let high = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        if high <= 0.0 {
            return Self::Linear(0.0, 1.0);
        }
        let step = step(high, 5.0);
        Self::Linear(0.0, (high / step - 1e-9).ceil() * step)
    }

    /// Logarithmic around all values above zero, with a small margin; `None` without such a value.
    pub fn factors(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        (high > 0.0).then(|| {
            let air = (high / low).max(1.5).powf(0.04);
            Self::Logarithmic(low / air, high * air)
        })
    }

    pub const fn ends(self) -> (f64, f64) {
        match self {
            Self::Linear(low, high) | Self::Logarithmic(low, high) => (low, high),
        }
    }

    /// The position of a value, 0 at the low end and 1 at the high end; outside of them for a value outside.
    pub fn part(self, value: f64) -> f64 {
        let part = match self {
            Self::Linear(low, high) => (value - low) / (high - low),
            Self::Logarithmic(low, high) => (value.max(low / 10.0) / low).ln() / (high / low).ln(),
        };
        if part.is_finite() { part } else { 0.0 }
    }

    /// Round values along the axis: about `count` of them, or each decade (and 2 and 5 of it where there is room).
    pub fn ticks(self, count: f64) -> Vec<f64> {
        match self {
            Self::Linear(low, high) => {
                let step = step(high - low, count);
                let first = (low / step - 1e-9).ceil();
                let count = ((high / step + 1e-9).floor() - first).clamp(0.0, 100.0);
                let count = count as u32;
                (0..=count).map(|k| (first + f64::from(k)) * step).collect()
            }
            Self::Logarithmic(low, high) => {
                let decades = (high / low).log10();
                let within: &[f64] = if decades > count { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
                (first..=last)
                    .flat_map(|power| within.iter().map(move |digit| digit * 10f64.powi(power)))
                    .filter(|value| (low..=high).contains(value))
                    .collect()
            }
        }
    }
}

/// The round step (1, 2 or 5 times a power of ten) that divides a span into about `count` parts.
fn step(span: f64, count: f64) -> f64 {
    let rough = span / count.max(1.0);
    if !rough.is_finite() || rough <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(rough.log10().floor());
    let digit = match rough / power {
        d if d <= 1.0 + 1e-9 => 1.0,
        d if d <= 2.0 + 1e-9 => 2.0,
        d if d <= 5.0 + 1e-9 => 5.0,
        _ => 10.0,
    };
    digit * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_values() {
        assert_eq!(Scale::from_zero([9.41e9, 3.0].into_iter()), Scale::Linear(0.0, 10e9));
        assert_eq!(Scale::from_zero([0.0, f64::NAN].into_iter()), Scale::Linear(0.0, 1.0));
        assert_eq!(Scale::Linear(0.0, 10.0).ticks(5.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    }

    #[test]
    fn factors_have_their_decades() {
        let scale = Scale::factors([100.0, 8900.0, 0.0].into_iter()).expect("positive values");
        let ticks = scale.ticks(3.0);
        assert_eq!(ticks, [100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0]);
        assert!((Scale::Logarithmic(1.0, 100.0).part(10.0) - 0.5).abs() < 1e-12);
        assert_eq!(Scale::factors([0.0].into_iter()), None);
    }

    #[test]
    fn nothing_leaves_the_numbers() {
        for scale in [Scale::Linear(0.0, 0.0), Scale::Linear(1.0, 2.0), Scale::Logarithmic(1.0, 2.0)] {
            for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
                assert!(scale.part(value).is_finite(), "{scale:?} {value}");
            }
            assert!(scale.ticks(5.0).len() < 200);
        }
    }
}
