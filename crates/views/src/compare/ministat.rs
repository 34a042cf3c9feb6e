//! The sets of ministat, each against the first.

use narrows_model::run::ministat::{MinistatDifference, MinistatReport, MinistatSet};
use narrows_stats::ministat::Set;

/// The comparison; else the name of the first set with too few numbers.
/// Errors: the name of a set with fewer than three numbers.
pub fn ministat(sets: Vec<(String, Vec<f64>)>, level_percent: f64) -> Result<MinistatReport, String> {
    let sets: Vec<(String, Set)> = sets
        .into_iter()
        .map(|(name, values)| Set::new(&values).map(|set| (name.clone(), set)).ok_or(name))
        .collect::<Result<_, _>>()?;
    let first = sets.first().map(|it| it.1.clone());
    let of = |(name, set): (String, Set)| {
        let difference = first.as_ref().and_then(|first| set.against(first, level_percent));
        let difference = difference.map(|it| MinistatDifference { by: it.by, half: it.half, pooled: it.pooled });
        MinistatSet { name, median: set.median, mean: set.mean, sd: set.sd(), difference, sorted: set.sorted }
    };
    Ok(MinistatReport { level_percent, sets: sets.into_iter().map(of).collect() })
}
