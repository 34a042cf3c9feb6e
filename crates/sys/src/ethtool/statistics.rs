//! String sets and the driver's own statistics (`ETHTOOL_GSSET_INFO`, `ETHTOOL_GSTRINGS`, `ETHTOOL_GSTATS`).

use super::{Device, text};
use crate::{Error, Result};

const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
const GSSET_INFO: u32 = 0x37;

/// `ETH_SS_STATS`
const SET_STATISTICS: u32 = 1;
/// `ETH_SS_FEATURES`
pub(super) const SET_FEATURES: u32 = 4;

/// `ETH_GSTRING_LEN`
const STRING: usize = 32;
const COUNT_MAX: u32 = 1 << 16;
/// The kernel writes as many entries as exist at that moment, whatever was requested: room for a driver that got more
/// queues between the two calls.
const SLACK: usize = 1 << 13;

impl Device {
    /// The number of strings of a set.
    pub(super) fn string_count(&self, set: u32) -> Result<u32> {
        // struct ethtool_sset_info: command, reserved, a 64-bit mask of sets, then a count for each set found.
        let mask = (1_u64 << set).to_ne_bytes();
        let half = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_ne_bytes);
        let mut words = [GSSET_INFO, 0, half(&mask[..4]), half(&mask[4..]), 0];
        // SAFETY: one set is asked, so the kernel fills the 4 fixed words and one count.
        unsafe { self.call("count the strings of", &mut words) }?;
        let found = u64::from(words[2]) | u64::from(words[3]) != 0;
        let count = if found { words[4] } else { 0 };
        if count > COUNT_MAX {
            let cause = std::io::Error::other(format!("it claims {count} strings in one set"));
            return Err(Error::new("count the strings of", self.name(), cause));
        }
        Ok(count)
    }

    /// The strings of a set.
    pub(super) fn strings(&self, set: u32, count: u32) -> Result<Vec<String>> {
        // struct ethtool_gstrings: command, set, count, then the strings.
        let mut words = vec![0; 3 + (count as usize + SLACK) * STRING / 4];
        words[..3].copy_from_slice(&[GSTRINGS, set, count]);
        // SAFETY: there is room for every string and a wide margin.
        unsafe { self.call("read the strings of", &mut words) }?;
        let count = words[2].min(count) as usize;
        let used = words.get(3..3 + count * STRING / 4).unwrap_or_default();
        let bytes: Vec<u8> = used.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(bytes.chunks_exact(STRING).map(|field| text(field, 0, STRING)).collect())
    }

    /// The driver's own statistics, by the driver's own names; empty if it has none.
    pub fn statistics(&self) -> Result<Vec<(String, u64)>> {
        let count = match self.string_count(SET_STATISTICS) {
            Err(error) if error.errno() == Some(libc::EOPNOTSUPP) => 0,
            other => other?,
        };
        if count == 0 {
            return Ok(Vec::new());
        }
        let names = self.strings(SET_STATISTICS, count)?;
        // struct ethtool_stats: command, count, then 64-bit values.
        let mut words = vec![0; 2 + (count as usize + SLACK) * 2];
        words[..2].copy_from_slice(&[GSTATS, count]);
        // SAFETY: there is room for every value and a wide margin.
        unsafe { self.call("read the statistics of", &mut words) }?;
        let given = words[1].min(count) as usize;
        let values = words.get(2..2 + given * 2).unwrap_or_default();
        Ok(names.into_iter().zip(values.chunks_exact(2).map(join)).collect())
    }
}

/// A 64-bit number from its two words in memory order.
fn join(pair: &[u32]) -> u64 {
    let mut bytes = [0; 8];
    for (to, from) in bytes.chunks_exact_mut(4).zip(pair) {
        to.copy_from_slice(&from.to_ne_bytes());
    }
    u64::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_words_form_one_number() {
        let bytes = 0x0123_4567_89ab_cdef_u64.to_ne_bytes();
        let words = [0, 4].map(|at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
        assert_eq!(join(&words), 0x0123_4567_89ab_cdef);
    }

    #[test]
    fn loopback_has_no_statistics_of_its_own() {
        let device = Device::open("lo").expect("a socket");
        assert_eq!(device.statistics().expect("an answer"), []);
    }
}
