//! Designs: which combinations of levels are measured, and what can be estimated from them.

use narrows_model::run::campaign::Design;

/// The cells of a design. The fraction is a Sylvester matrix and its fold-over (G. E. P. Box and K. B. Wilson 1951): 12 factors
/// take 32 cells.
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

#[cfg(test)]
mod tests {
    use super::*;

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
