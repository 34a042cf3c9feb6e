//! What a counter that cannot be right looks like: known ways to be wrong, so that the report can say more than that it is.
//!
//! A pattern accuses nobody. It is asked for only where counters already disagree, and its sentence says *looks like*.
//! Source of the first two: `netstat -h` of FreeBSD before 11 (r287593), which divided by 1,024 where it wrote `k`, and which
//! once cost a router lab 10,000 packets a second.

/// How near a ratio must be. Real losses of exactly this part are not to be expected.
const NEAR: f64 = 0.000_5;
/// Of fewer frames a ratio says nothing.
const FEWEST: u64 = 100_000;
/// How near it must be where rounding or the error of the counts is coarse.
const NEAR_AT_MOST: f64 = 0.01;
/// Half a turn of a 32-bit counter.
const HALF_TURN: u64 = 1 << 31;

/// What `counted` looks like if the truth is near `true_count`, which may itself be wrong by `error` frames.
pub(super) fn known_pattern(counted: u64, true_count: u64, error: u64) -> Option<String> {
    if true_count == 0 || counted == true_count {
        return None;
    }
    // Differences modulo 2^64, so that a counter that was subtracted over its wrap is seen, too.
    let missing = true_count.wrapping_sub(counted);
    let turns = missing.wrapping_add(HALF_TURN) >> 32;
    let off = missing.wrapping_sub(turns << 32);
    let off = off.min(off.wrapping_neg());
    if turns != 0 && off <= error.saturating_add(true_count / 2_000) && off < HALF_TURN / 64 {
        return Some(
            "it looks like a 32-bit counter that wrapped: it is off by a whole number of 2^32 frames".to_owned(),
        );
    }
    let ratio = counted as f64 / true_count as f64;
    // A unit of the counter is what rounding costs.
    let rounding = |of: f64| (error as f64 + 1.0) / (of * true_count as f64);
    let near = |of: f64| (ratio / of - 1.0).abs() <= NEAR.max(rounding(of)).min(NEAR_AT_MOST);
    // Of few frames a rounded 1,024th is any small number.
    if true_count < FEWEST {
        None
    } else if near(1.0 / 1024.0) {
        Some("it looks like 1/1024 of its neighbours': is it in units of 1,024?".to_owned())
    } else if near(1000.0 / 1024.0) {
        Some("it looks like 1000/1024 of its neighbours': a `k` of 1,024 was read as 1,000".to_owned())
    } else if near(2.0) {
        Some("it looks like twice its neighbours': are two interfaces, or both directions, added up?".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_figures_of_the_seed() {
        // 564,842 frames read as 551.6 k.
        assert!(known_pattern(551_600, 564_842, 0).expect("a pattern").contains("1000/1024"));
        assert!(known_pattern(551, 564_842, 0).expect("a pattern").contains("1/1024"));
    }

    #[test]
    fn wraps_of_one_and_of_more_turns() {
        let turn = 1_u64 << 32;
        for (counted, truth) in [(5_000, turn + 5_000), (5_000, 3 * turn + 5_000), (turn - 100, 2 * turn - 100)] {
            assert!(known_pattern(counted, truth, 0).expect("a pattern").contains("2^32"), "{counted} of {truth}");
        }
        // Subtracted as 64 bits over a wrap of 32: 10 − (2^32 − 990) = 1,000 − 2^32.
        assert!(known_pattern(1_000_u64.wrapping_sub(turn), 1_000, 0).expect("a pattern").contains("2^32"));
    }

    #[test]
    fn ordinary_differences_look_like_nothing() {
        for (counted, truth) in [(999, 1_000), (900_000, 1_000_000), (0, 1_000_000), (7, 7_000), (1_000, 1_000)] {
            assert_eq!(known_pattern(counted, truth, 0), None, "{counted} of {truth}");
        }
    }

    proptest! {
        #[test]
        fn any_counts_are_read(counted in any::<u64>(), truth in any::<u64>(), error in any::<u64>()) {
            let _ = known_pattern(counted, truth, error);
        }

        #[test]
        fn small_losses_look_like_nothing(truth in 1_000_u64..1_000_000_000, part in 0.98..1.0_f64) {
            let counted = (truth as f64 * part) as u64;
            prop_assert_eq!(known_pattern(counted, truth, 0), None);
        }
    }
}
