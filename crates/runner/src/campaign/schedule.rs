//! The order of a campaign: blocks of all cells, each in a random order that its seed determines, so that a resumed campaign goes
//! on with exactly the steps that are left.

use serde::Serialize;

/// Which combinations of levels are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Design {
    /// All.
    #[default]
    Full,
    /// Two levels each, resolution IV: main effects are clear of two-way interactions, which are aliased with each other.
    Fractional,
    /// The baseline, and each other level alone.
    OneAtATime,
}

/// One run of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// From 1, in the order of the schedule.
    pub number: usize,
    /// The repetition, from 1: each block has every cell once for each host.
    pub block: usize,
    /// Index of the host.
    pub host: usize,
    /// Index of the level of each factor.
    pub cell: Vec<usize>,
}

/// All steps. `levels`: how many each factor has.
#[must_use]
pub fn steps(design: Design, levels: &[usize], hosts: usize, repetitions: usize, seed: u64) -> Vec<Step> {
    let cells = cells(design, levels);
    let mut steps = Vec::new();
    let mut state = seed;
    for block in 1..=repetitions {
        let mut order: Vec<usize> = (0..hosts).collect();
        shuffle(&mut order, &mut state);
        for host in order {
            let mut cells = cells.clone();
            shuffle(&mut cells, &mut state);
            for cell in cells {
                steps.push(Step { number: steps.len() + 1, block, host, cell });
            }
        }
    }
    steps
}

/// The cells of a design. The fraction is a Sylvester matrix and its fold-over (G. E. P. Box and K. B. Wilson 1951): 12 factors
/// take 32 cells.
#[must_use]
pub fn cells(design: Design, levels: &[usize]) -> Vec<Vec<usize>> {
    match design {
        Design::Full => full(levels),
        Design::Fractional => {
            let half = levels.len().next_power_of_two();
            let level = |run: usize, factor: usize| (((run % half) & factor).count_ones() as usize + run / half) % 2;
            (0..2 * half).map(|run| (0..levels.len()).map(|factor| level(run, factor)).collect()).collect()
        }
        Design::OneAtATime => {
            let baseline = vec![0; levels.len()];
            let others = levels.iter().enumerate().flat_map(|(at, count)| (1..*count).map(move |level| (at, level)));
            let alone =
                others.map(|(at, level)| (0..levels.len()).map(|it| if it == at { level } else { 0 }).collect());
            [baseline].into_iter().chain(alone).collect()
        }
    }
}

/// Every combination of levels.
fn full(levels: &[usize]) -> Vec<Vec<usize>> {
    levels.iter().fold(vec![Vec::new()], |cells, count| {
        cells.iter().flat_map(|cell| (0..*count).map(|level| [cell.as_slice(), &[level]].concat())).collect()
    })
}

/// Fisher and Yates, with SplitMix64.
fn shuffle<T>(items: &mut [T], state: &mut u64) {
    for last in (1..items.len()).rev() {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        #[allow(clippy::cast_possible_truncation)]
        items.swap(last, (z % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_each_cell_once_and_the_seed_determines_the_order() {
        let of = |seed| steps(Design::Full, &[2, 3], 1, 4, seed);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        for block in 1..=4 {
            let mut cells: Vec<_> = of(1).into_iter().filter(|it| it.block == block).map(|it| it.cell).collect();
            cells.sort();
            assert_eq!(cells, full(&[2, 3]));
        }
    }

    #[test]
    fn a_fraction_is_balanced_and_main_effects_are_clear_of_interactions() {
        for factors in 1..=16_usize {
            let cells = cells(Design::Fractional, &vec![2; factors]);
            assert!(cells.len() <= (4 * factors).max(2), "{factors} factors take {} cells", cells.len());
            let sign = |cell: &Vec<usize>, at: usize| if cell[at] == 1 { 1 } else { -1 };
            let sum =
                |of: &[usize]| cells.iter().map(|it| of.iter().map(|at| sign(it, *at)).product::<i32>()).sum::<i32>();
            for a in 0..factors {
                assert_eq!(sum(&[a]), 0);
                for b in 0..a {
                    assert_eq!(sum(&[a, b]), 0);
                    (0..b).for_each(|c| assert_eq!(sum(&[a, b, c]), 0));
                }
            }
        }
    }

    #[test]
    fn one_at_a_time_has_the_baseline_and_each_other_level() {
        assert_eq!(cells(Design::OneAtATime, &[2, 3]), [[0, 0], [1, 0], [0, 1], [0, 2]]);
    }
}
