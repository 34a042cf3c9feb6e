//! Numbers as text, in addition to [`narrows_model::words::units`]: packet rates, nanoseconds, grouped counts.

pub use crate::words::units::grouped;
use crate::words::units::{self, micros};

/// A count as a float; exact up to 2^53.
pub const fn float(count: u64) -> f64 {
    count as f64
}

/// Three significant digits: `941`, `94.1`, `9.41`, `0.941`.
pub fn digits(value: f64) -> String {
    let size = value.abs();
    if size >= 99.95 || size == 0.0 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else if size >= 0.9995 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// Packets a second without the unit: `120`, `86.3k`, `1.49M`.
pub fn pps_short(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    match value.abs() {
        v if v >= 999.5e6 => format!("{}G", digits(value / 1e9)),
        v if v >= 999.5e3 => format!("{}M", digits(value / 1e6)),
        v if v >= 999.5 => format!("{}k", digits(value / 1e3)),
        v if v >= 99.95 || v.fract() == 0.0 => format!("{value:.0}"),
        _ => digits(value),
    }
}

/// A round value on an axis: `0`, `2.5k`, `150k`, `10M`.
pub fn tick(value: f64) -> String {
    let (factor, unit) = match value.abs() {
        v if v >= 1e9 => (1e9, "G"),
        v if v >= 1e6 => (1e6, "M"),
        v if v >= 1e3 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let text = format!("{:.3}", value / factor);
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Packets a second: `120 pps`, `86.3 kpps`, `1.49 Mpps`.
pub fn pps(value: f64) -> String {
    let short = pps_short(value);
    match short.char_indices().next_back() {
        Some((at, unit)) if unit.is_ascii_alphabetic() => format!("{} {unit}pps", &short[..at]),
        _ => format!("{short} pps"),
    }
}

/// A rate with this many significant digits: `81.350 kpps`, `957.39 Mbit/s`. For bounds that are close together.
pub fn precise(value: f64, unit: &str, digits: usize) -> String {
    if !value.is_finite() {
        return format!("– {unit}");
    }
    // The next prefix starts where these digits would round up to 1000.
    let below = 1000.0 * (1.0 - 0.5 * 10f64.powi(-(digits as i32)));
    let (mut scaled, mut prefixes) = (value.abs(), ["", "k", "M", "G", "T"].into_iter());
    let mut prefix = prefixes.next().unwrap_or_default();
    while scaled >= below {
        let Some(next) = prefixes.next() else { break };
        (scaled, prefix) = (scaled / 1000.0, next);
    }
    // Rounded first: 9.9996 with four digits is 10.00.
    let round = below / 1000.0;
    let whole = if scaled >= 100.0 * round {
        3
    } else if scaled >= 10.0 * round {
        2
    } else {
        1
    };
    let behind = digits.saturating_sub(whole);
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{scaled:.behind$} {prefix}{unit}").trim_end().to_owned()
}

/// `850 ns`, `12.3 us`, `1.20 ms`, `2.00 s`.
pub fn nanos(value: u64) -> String {
    match value {
        0..1_000 => format!("{value} ns"),
        1_000..1_000_000 => format!("{} us", digits(float(value) / 1e3)),
        _ => micros(value / 1000),
    }
}

/// A difference in groups of three with its sign: `+12`, `−1,234`, `0`.
pub fn grouped_signed(count: i64) -> String {
    match count {
        0 => "0".to_owned(),
        1.. => format!("+{}", grouped(count.unsigned_abs())),
        _ => format!("−{}", grouped(count.unsigned_abs())),
    }
}

/// A loss ratio in percent, small ones with more digits: `0 %`, `0.0004 %`, `0.31 %`, `12 %`.
pub fn ratio(fraction: f64) -> String {
    let percent = fraction * 100.0;
    match percent.abs() {
        _ if !percent.is_finite() => "–".to_owned(),
        0.0 => "0 %".to_owned(),
        99.5..100.0 if percent > 0.0 => units::nearly_all(percent).unwrap_or_default(),
        v if v >= 9.95 => format!("{percent:.0} %"),
        v if v >= 0.995 => format!("{percent:.1} %"),
        v if v >= 0.0995 => format!("{percent:.2} %"),
        v if v >= 0.00095 => format!("{percent:.3} %"),
        _ => "<0.001 %".to_owned(),
    }
}

/// A success ratio in percent, with as many digits as distinguish it from 100 %: `96.35 %`,
/// `99.9996 %`, `100 %`.
pub fn success(fraction: f64) -> String {
    if !fraction.is_finite() {
        return "–".to_owned();
    }
    if fraction >= 1.0 {
        return format!("{:.0} %", fraction * 100.0);
    }
    let text = (2..=8).map(|digits| format!("{:.digits$} %", fraction * 100.0)).find(|text| !text.starts_with("100"));
    text.unwrap_or_else(|| "<100 %".to_owned())
}

/// A share of the line rate: `68.7 %`, `9.41 %`; only all of it is `100 %`.
pub fn of_line(part: f64) -> String {
    let percent = part * 100.0;
    match percent {
        p if !p.is_finite() => "–".to_owned(),
        p if (99.9..99.995).contains(&p) => "99.9 %".to_owned(),
        p if p >= 99.995 => format!("{p:.0} %"),
        p if p >= 9.995 => format!("{p:.1} %"),
        p => format!("{} %", digits(p)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_rates() {
        assert_eq!(pps(1_488_095.2), "1.49 Mpps");
        assert_eq!(pps(86_300.0), "86.3 kpps");
        assert_eq!(pps(999_600.0), "1.00 Mpps");
        assert_eq!(pps(120.0), "120 pps");
        assert_eq!(pps(0.5), "0.500 pps");
        assert_eq!(pps_short(0.0), "0");
        assert_eq!(pps_short(f64::NAN), "–");
    }

    #[test]
    fn close_bounds_stay_apart() {
        assert_eq!(precise(81_350.0, "pps", 5), "81.350 kpps");
        assert_eq!(precise(957_388_800.0, "bit/s", 5), "957.39 Mbit/s");
        assert_eq!(precise(999_999.0, "pps", 4), "1.000 Mpps");
        assert_eq!(precise(12.0, "pps", 4), "12.00 pps");
        assert_eq!(precise(9_999.6, "pps", 4), "10.00 kpps");
        assert_eq!(precise(9_999.4, "pps", 4), "9.999 kpps");
        assert_eq!(precise(99_996.0, "pps", 4), "100.0 kpps");
        assert_eq!(precise(f64::NAN, "pps", 4), "– pps");
    }

    #[test]
    fn times_and_counts() {
        assert_eq!(nanos(850), "850 ns");
        assert_eq!(nanos(12_345), "12.3 us");
        assert_eq!(nanos(1_200_000), "1.20 ms");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped_signed(-1_234), "−1,234");
        assert_eq!(grouped_signed(7), "+7");
    }

    #[test]
    fn small_losses_stay_visible() {
        assert_eq!(ratio(0.0), "0 %");
        assert_eq!(ratio(0.000_004), "<0.001 %");
        assert_eq!(ratio(0.000_02), "0.002 %");
        assert_eq!(ratio(0.003_13), "0.31 %");
        assert_eq!(ratio(0.12), "12 %");
        assert_eq!([0.994, 0.997_16, 0.999_96, 1.0].map(ratio), ["99 %", "99.7 %", ">99.9 %", "100 %"]);
        assert_eq!(ratio(f64::NAN), "–");
        assert_eq!(success(1.0), "100 %");
        assert_eq!(success(0.963_48), "96.35 %");
        assert_eq!(success(0.999_996), "99.9996 %");
        assert_eq!(success(1.0 - 1e-14), "<100 %");
    }

    #[test]
    fn only_all_of_the_line_is_all_of_it() {
        assert_eq!(of_line(1.0), "100 %");
        assert_eq!(of_line(0.9996), "99.9 %");
        assert_eq!(of_line(0.687_4), "68.7 %");
        assert_eq!(of_line(0.000_5), "0.050 %");
        assert_eq!(of_line(f64::NAN), "–");
    }
}
