//! Whether octets and frames of one interface are consistent: a second check of a counter, by its own agent.

use crate::growth::{SideGrowth, WRAP};

/// Bytes of an Ethernet header, a tag and the FCS: devices that count IP packets instead of frames omit them.
const LEFT_OUT: u64 = 14 + 4 + 4;
/// Bytes of a tag, preamble and gap: devices that count bytes on the wire include them.
const ADDED: u64 = 4 + 20;
/// The largest frame that a device may send by itself.
const LARGEST: u64 = 9216;

/// What is wrong, if the octets cannot belong to the frames. `bytes` are the smallest and the largest frame of the
/// load, with FCS. A side without frame or octet counts, or with fewer than 1000 unicast frames, is not judged.
pub fn unfit(side: &SideGrowth, bytes: [u32; 2]) -> Option<String> {
    let (unicast, octets) = side.unicast.zip(side.octets)?;
    // Other frames may have any size.
    let others = side.others.unwrap_or(0);
    let [least, most] = bytes.map(u64::from);
    let fits = |unicast: u64, octets: u64| {
        let fewest = unicast.saturating_mul(least.saturating_sub(LEFT_OUT));
        let largest = unicast.saturating_mul(most + ADDED).saturating_add(others.saturating_mul(LARGEST));
        (fewest..=largest).contains(&octets)
    };
    // Small counts may be other frames only: management, neighbours.
    if unicast < 1000 || fits(unicast, octets) {
        return None;
    }
    let turns = unicast.saturating_mul(least).saturating_sub(octets).div_ceil(WRAP).max(1);
    let wrapped = turns.checked_mul(WRAP).and_then(|whole| whole.checked_add(octets));
    let why = if octets == 0 {
        "the octets did not change: the agent answers from its cache".to_owned()
    } else if wrapped.is_some_and(|whole| fits(unicast, whole)) && octets < WRAP {
        "the octet counter has 32 bits and wraps at 4,294,967,296".to_owned()
    } else if fits(unicast, octets.saturating_mul(1024)) {
        "the agent divides the octets by 1024".to_owned()
    } else if fits(unicast.saturating_mul(1024), octets) {
        "the agent divides the frames by 1024".to_owned()
    } else {
        "the counters do not match".to_owned()
    };
    let mean = octets as f64 / unicast as f64;
    let size = if least == most { format!("{least}") } else { format!("{least} to {most}") };
    Some(format!("{unicast} frames of {size} bytes do not match {octets} octets, {mean:.1} per frame: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(unicast: u64, octets: u64) -> SideGrowth {
        SideGrowth { unicast: Some(unicast), octets: Some(octets), others: Some(0), ..SideGrowth::default() }
    }

    #[test]
    fn octets_with_and_without_fcs_tag_and_gap_are_consistent() {
        for bytes in [46, 60, 64, 68, 84, 88] {
            assert_eq!(unfit(&side(1_000_000, bytes * 1_000_000), [64, 64]), None, "{bytes}");
        }
        assert_eq!(unfit(&SideGrowth { octets: None, ..side(1_000_000, 0) }, [64, 64]), None);
        let mixed = SideGrowth { others: Some(10), ..side(1_000_000, 64_000_000 + 92_160) };
        assert_eq!(unfit(&mixed, [64, 64]), None);
    }

    #[test]
    fn impossible_octets_are_explained() {
        let says = |frames, octets| unfit(&side(frames, octets), [64, 64]).expect("unfit");
        assert_eq!(
            says(100_000_000, 6_400_000_000 - (1 << 32)),
            "100000000 frames of 64 bytes do not match 2105032704 octets, 21.1 per frame: the octet counter has 32 \
            bits and wraps at 4,294,967,296"
        );
        assert!(says(1_000_000, 62_500).ends_with("divides the octets by 1024"));
        assert!(says(10_000, 10_000 * 64 * 1024).ends_with("divides the frames by 1024"));
        assert!(says(1_000_000, 0).ends_with("the octets did not change: the agent answers from its cache"));
        // The motivating case's output column: 564,842 frames with 23,064,732 bytes.
        assert!(says(564_842, 23_064_732).contains("40.8 per frame"));
    }
}
