//! Dates in UTC, by the proleptic Gregorian calendar.

/// Year, month, day, hour, minute and second of seconds since the Unix epoch.
#[must_use]
pub const fn utc(seconds: u64) -> [u64; 6] {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant's `civil_from_days`: years begin in March, so that the leap day comes last.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    [year, month, day, second / 3600, second / 60 % 60, second % 60]
}

/// `2025-09-19 08:15` of microseconds since the Unix epoch.
#[must_use]
pub fn minute(unix_us: u64) -> String {
    let [year, month, day, hour, minute, _] = utc(unix_us / 1_000_000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// `2025-09-19T08:15:00Z` of microseconds since the Unix epoch (RFC 3339).
#[must_use]
pub fn rfc3339(unix_us: u64) -> String {
    let [year, month, day, hour, minute, second] = utc(unix_us / 1_000_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_reads_as_utc() {
        // As `date -u -d @N +%Y%m%d-%H%M%S` says.
        for (seconds, want) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_190_232_884, "2007-09-19T20:14:44Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000), want);
        }
        assert_eq!(minute(1_190_232_884_000_000), "2007-09-19 20:14");
    }
}
