//! The words for times and sizes.

use crate::words::plural;
use narrows_model::forwarding::Traffic;
use narrows_model::forwarding::report::SizeView;
use narrows_model::load::frame_words::sizes;

pub(super) use crate::words::millis as time;
pub(super) use narrows_model::forwarding::plan::size_word as size;

pub(super) fn times(n: u32) -> String {
    plural(n.into(), "time")
}

/// A size below an axis: `64`, or `mix`.
pub(super) fn short_size(size: &SizeView) -> String {
    size.size.map_or_else(|| "mix".to_owned(), |size| size.to_string())
}

/// What the sizes of a mix are.
pub(super) fn mix(of: &Traffic) -> String {
    sizes(&of.mix)
}

/// `2007-09-19 20:14 UTC`.
pub(super) fn moment(unix_us: u64) -> String {
    let minutes = unix_us / 60_000_000;
    let (days, minute) = (minutes / 1440, minutes % 1440);
    // Days since 1 March of year 0, so that the leap day is a year's last (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms").
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + next;
    format!("{year:04}-{month:02}-{of_month:02} {:02}:{:02} UTC", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(moment(0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(1_190_232_884_000_000), "2007-09-19 20:14 UTC");
        assert_eq!(moment(1_709_251_199_000_000), "2024-02-29 23:59 UTC");
        assert!(moment(u64::MAX).ends_with("UTC"));
    }
}
