//! The order of a campaign: blocks of all cells, each in a random order that its seed determines, so that a resumed campaign goes
//! on with exactly the steps that are left.

pub use narrows_model::run::campaign::{Design, Step};
pub use narrows_views::campaign::cells;

/// All steps. `levels`: how many each factor has.
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

/// Fisher and Yates, with SplitMix64.
fn shuffle<T>(items: &mut [T], state: &mut u64) {
    for last in (1..items.len()).rev() {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
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
            assert_eq!(cells, super::cells(Design::Full, &[2, 3]));
        }
    }
}
