//! Dates in UTC as RFC 3339 writes them, by the proleptic Gregorian calendar.

/// The latest date that is written: the last second of the year 9999.
const MAX_SECONDS: u64 = 253_402_300_799;

/// `2099-12-31T23:59:59Z` of seconds since the Unix epoch; years above 9999 become 9999.
pub fn utc(seconds: u64) -> String {
    let [year, month, day, hour, minute, second] = fields(seconds);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// `2025-09-19 08:15` of microseconds since the Unix epoch.
pub fn minute(unix_us: u64) -> String {
    let [year, month, day, hour, minute, _] = fields(unix_us / 1_000_000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// Year, month, day, hour, minute and second of seconds since the Unix epoch; years above 9999 become 9999.
pub fn fields(seconds: u64) -> [u64; 6] {
    let seconds = seconds.min(MAX_SECONDS);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant's `civil_from_days`: years begin in March, so that the leap day comes last.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    [year, month, day, second / 3600, second / 60 % 60, second % 60]
}

/// Days from the Unix epoch to a date; `None` where there is no such date, or before the epoch.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day == 0 || day > length || year < 1970 {
        return None;
    }
    // Howard Hinnant's `days_from_civil`.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year / 400, year % 400);
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 1 - 719_468)
}

/// A number of exactly so many digits.
fn number(word: &str, digits: usize) -> Option<u64> {
    (word.len() == digits && word.bytes().all(|b| b.is_ascii_digit())).then(|| word.parse().ok())?
}

/// Parts of a fixed length with a separator: `12:34:56`.
fn parts<const N: usize>(word: &str, separator: char, digits: [usize; N]) -> Option<[u64; N]> {
    let mut words = word.split(separator);
    let mut numbers = [0; N];
    for (to, digits) in numbers.iter_mut().zip(digits) {
        *to = number(words.next()?, digits)?;
    }
    words.next().is_none().then_some(numbers)
}

/// Seconds since the Unix epoch of `2099-12-31T23:59:59Z`, `2099-12-31T23:59:59+01:00` or `2099-12-31` (its first second in UTC).
/// `None` where it is none of these, or before the epoch.
pub fn parse(word: &str) -> Option<u64> {
    let word = word.trim();
    let (date, rest) = word.split_once(['T', 't', ' ']).map_or((word, None), |(date, rest)| (date, Some(rest)));
    let [year, month, day] = parts(date, '-', [4, 2, 2])?;
    let midnight = days(year, month, day)? * 86_400;
    let Some(rest) = rest else { return Some(midnight) };
    let (time, sign, offset) = match rest.char_indices().find(|(_, c)| matches!(c, 'Z' | 'z' | '+' | '-'))? {
        (at, 'Z' | 'z') => (rest.get(..at)?, 1, rest.get(at + 1..)?.is_empty().then_some([0, 0])?),
        (at, sign) => (rest.get(..at)?, if sign == '+' { 1 } else { -1 }, parts(rest.get(at + 1..)?, ':', [2, 2])?),
    };
    // A fraction of a second is within the second.
    let time = match time.split_once('.') {
        Some((time, part)) if !part.is_empty() && part.len() <= 9 && part.bytes().all(|b| b.is_ascii_digit()) => time,
        Some(_) => return None,
        None => time,
    };
    let [hour, minute, second] = parts(time, ':', [2, 2, 2])?;
    // 60 is a leap second.
    if hour > 23 || minute > 59 || second > 60 || offset[0] > 23 || offset[1] > 59 {
        return None;
    }
    let local = midnight + hour * 3600 + minute * 60 + second;
    let offset = i64::try_from(offset[0] * 3600 + offset[1] * 60).ok()? * sign;
    local.checked_add_signed(-offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_read_as_date_writes_them() {
        // As `date -u -d @N +%FT%TZ` says.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_190_232_884, "2007-09-19T20:14:44Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
            (MAX_SECONDS, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!((utc(seconds).as_str(), parse(text)), (text, Some(seconds)));
        }
        assert_eq!(utc(u64::MAX), "9999-12-31T23:59:59Z");
        assert_eq!(minute(1_190_232_884_000_000), "2007-09-19 20:14");
        assert_eq!(parse("2007-09-19"), Some(1_190_160_000));
        assert_eq!(parse("2007-09-19T22:14:44.25+02:00"), Some(1_190_232_884));
        assert_eq!(parse("2007-09-19 17:44:44-02:30"), Some(1_190_232_884));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for word in [
            "", "now", "2007-9-19", "2007-02-29", "2007-13-01", "1969-12-31", "2007-09-19T", "2007-09-19T20:14Z",
            "2007-09-19T24:00:00Z", "2007-09-19T20:14:44", "2007-09-19T20:14:44Zx", "2007-09-19T20:14:44+2",
            "1970-01-01T00:00:00+01:00", "+007-09-19",
        ] {
            assert_eq!(parse(word), None, "{word}");
        }
    }

    proptest! {
        #[test]
        fn a_date_round_trips(seconds in 0..=MAX_SECONDS) {
            prop_assert_eq!(parse(&utc(seconds)), Some(seconds));
        }

        #[test]
        fn any_text_is_a_date_or_none(text in "[0-9TZtz:+. -]{0,30}|\\PC{0,30}") {
            if let Some(seconds) = parse(&text).filter(|seconds| *seconds <= MAX_SECONDS) {
                prop_assert_eq!(parse(&utc(seconds)), Some(seconds));
            }
        }
    }
}
