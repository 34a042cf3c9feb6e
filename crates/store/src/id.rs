//! A run's id: its start time and a random part. It sorts by time and is a valid file name.

use crate::Error;
use narrows_model::words::date;

/// The file name extension of a run.
pub const ENDING: &str = ".run.json";

/// The id of a run that started at this time (UTC): `20250919-081500-3fa29c07`.
pub fn new_id(started_unix_us: u64) -> Result<String, Error> {
    let random = u32::from_be_bytes(narrows_sys::random::bytes::<4>()?);
    Ok(format!("{}-{random:08x}", utc(started_unix_us / 1_000_000)))
}

/// An id as a part of a file name. Whatever one from outside contains, the name stays inside its directory.
pub fn safe(id: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    id.chars().take(100).map(safe).collect()
}

/// The file name of a run.
pub fn file_name(id: &str) -> String {
    format!("{}{ENDING}", safe(id))
}

/// `YYYYMMDD-hhmmss` of seconds since the Unix epoch.
fn utc(seconds: u64) -> String {
    let [year, month, day, hour, minute, second] = date::fields(seconds);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_reads_as_utc() {
        // As `date -u -d @N +%Y%m%d-%H%M%S` says.
        for (seconds, want) in [
            (0, "19700101-000000"),
            (951_782_400, "20000229-000000"),
            (1_190_232_884, "20070919-201444"),
            (4_102_444_799, "20991231-235959"),
        ] {
            assert_eq!(utc(seconds), want);
        }
    }

    #[test]
    fn ids_differ_and_sort_by_time() {
        let (a, b) = (new_id(1_190_232_884_000_000).unwrap(), new_id(1_190_232_884_000_000).unwrap());
        assert_ne!(a, b);
        assert!(a.starts_with("20070919-201444-") && a.len() == 24, "{a}");
        assert!(new_id(1_190_232_885_000_000).unwrap() > a);
    }

    #[test]
    fn an_id_never_leaves_its_directory() {
        assert_eq!(file_name("20070919-201444-0000002a"), "20070919-201444-0000002a.run.json");
        assert_eq!(file_name("../../etc/x"), "______etc_x.run.json");
    }
}
