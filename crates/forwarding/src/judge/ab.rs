//! Two configurations of a device compared row by row, from the throughputs of their runs.
//!
//! ministat's layout for its users: Student's t with a pooled deviation. It takes both configurations to vary alike, which a
//! device with 10,000 rules and one with none seldom do; so the sentence goes by Welch's interval. The unit is the run.

use crate::data::ab::{AbRow, AbRun, Difference, Side};
use narrows_stats::{LEVEL, Summary, difference, summary, t_quantile, trend};
use std::collections::BTreeMap;

/// The rows that have a result in any run, in the order of the plan: by traffic, then size, the mix last.
pub fn compare(runs: &[AbRun]) -> Vec<AbRow> {
    let mut in_time: Vec<&AbRun> = runs.iter().collect();
    in_time.sort_by_key(|run| run.at_ms);
    let mut rows: BTreeMap<(usize, bool, Option<u32>), Values> = BTreeMap::new();
    for run in in_time {
        for of in &run.throughputs {
            let values = rows.entry((of.traffic, of.size.is_none(), of.size)).or_default();
            let side = if run.side == Side::A { &mut values.a } else { &mut values.b };
            side.push(of.pps);
            values.at_least[usize::from(run.side == Side::B)] += u32::from(of.at_least);
        }
    }
    rows.into_iter().map(|((traffic, _, size), values)| values.row(traffic, size)).collect()
}

/// The throughputs of one row in the order of time.
#[derive(Debug, Default)]
struct Values {
    a: Vec<f64>,
    b: Vec<f64>,
    /// How many of each are only *at least*.
    at_least: [u32; 2],
}

impl Values {
    fn row(self, traffic: usize, size: Option<u32>) -> AbRow {
        let sides = summary(&self.a).zip(summary(&self.b));
        let pooled = sides.and_then(|(a, b)| pooled(&a, &b));
        let welch = sides.and_then(|(a, _)| {
            let estimate = difference(&self.a, &self.b, LEVEL)?;
            of_mean(estimate.value, (estimate.interval[1] - estimate.interval[0]) / 2.0, estimate.df, a.mean)
        });
        let says = says(welch.as_ref(), self.at_least);
        AbRow {
            traffic,
            size,
            pooled: pooled.map(|(difference, _)| difference),
            pooled_s: pooled.map(|(_, s)| s),
            welch,
            says,
            remarks: self.remarks(),
            a_pps: self.a,
            b_pps: self.b,
        }
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for (values, side, at_least) in [(&self.a, Side::A, self.at_least[0]), (&self.b, Side::B, self.at_least[1])] {
            let (word, n) = (side.word(), values.len());
            if at_least > 0 {
                remarks.push(format!("{at_least} of {n} throughputs of {word} are limited by the tester or the line"));
            }
            if n == 1 {
                remarks.push(format!("{word} has a single run, whose spread is not known"));
            }
            let points: Vec<(f64, f64)> = (0_u32..).map(f64::from).zip(values.iter().copied()).collect();
            if trend(&points).is_some_and(|trend| trend.is_drift()) {
                remarks.push(format!(
                    "the throughputs of {word} rise or fall over the runs: the device or the tester drifts"
                ));
            }
        }
        remarks
    }
}

/// In parts of A's mean as well; nothing where that is no rate.
fn of_mean(pps: f64, half_pps: f64, df: f64, mean: f64) -> Option<Difference> {
    (mean > 0.0).then(|| Difference { pps, half_pps, ratio: pps / mean, half_ratio: half_pps / mean, df })
}

/// Student's t as ministat computes it, B against A, and the pooled deviation: sp² = ((n1−1)·v1 + (n2−1)·v2) ÷ (n1+n2−2), half
/// width t·sp·√(1/n1 + 1/n2).
fn pooled(a: &Summary, b: &Summary) -> Option<(Difference, f64)> {
    let (n_a, n_b) = (a.n as f64, b.n as f64);
    let df = n_a + n_b - 2.0;
    let s = (((n_a - 1.0) * a.sd?.powi(2) + (n_b - 1.0) * b.sd?.powi(2)) / df).sqrt();
    let half = t_quantile(LEVEL, df)? * s * (1.0 / n_a + 1.0 / n_b).sqrt();
    Some((of_mean(b.mean - a.mean, half, df, a.mean)?, s))
}

fn says(welch: Option<&Difference>, at_least: [u32; 2]) -> String {
    let Some(of) = welch else { return "not comparable: a configuration has fewer than two results".to_owned() };
    let percent = |ratio: f64| format!("{:.2} %", ratio * 100.0);
    match (of.is_proven(), at_least) {
        (false, [0, 0]) => {
            format!(
                "no difference proven at 95 % confidence: B is {} ± {} of A",
                signed(of.ratio),
                percent(of.half_ratio)
            )
        }
        (true, [0, 0]) => {
            let word = if of.pps > 0.0 { "faster" } else { "slower" };
            format!("B is {} ± {} {word} than A", percent(of.ratio.abs()), percent(of.half_ratio))
        }
        // What is at least so much says in one direction only what it says.
        (true, [0, _]) if of.pps > 0.0 => {
            format!("B is faster than A, by {} at least", percent(of.ratio - of.half_ratio))
        }
        (true, [_, 0]) if of.pps < 0.0 => {
            format!("B is slower than A, by {} at least", percent(-of.ratio - of.half_ratio))
        }
        _ => "not comparable: the tester or the line limits what is compared".to_owned(),
    }
}

/// `+0.12 %`.
fn signed(ratio: f64) -> String {
    format!("{:+.2} %", ratio * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ab::ThroughputOfSize;
    use proptest::prelude::*;

    fn runs(a: &[f64], b: &[f64]) -> Vec<AbRun> {
        let of = |side, values: &[f64]| {
            let run = |(at_ms, pps): (u64, &f64)| AbRun {
                side,
                at_ms,
                throughputs: vec![ThroughputOfSize { traffic: 0, size: Some(64), pps: *pps, at_least: false }],
            };
            (0..).zip(values).map(run).collect::<Vec<_>>()
        };
        let mut all = of(Side::A, a);
        all.extend(of(Side::B, b));
        all
    }

    #[test]
    fn as_ministat_prints_it() {
        // a = 1..5: mean 3, v 2.5; b = 2, 4, 6, 8, 10: mean 6, v 10; sp = √6.25 = 2.5, df 8, t 2.306, √(2/5) = 0.63246: 3.646.
        let rows = compare(&runs(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 4.0, 6.0, 8.0, 10.0]));
        let pooled = rows[0].pooled.expect("five runs each");
        assert_eq!((pooled.pps, pooled.df, rows[0].pooled_s), (3.0, 8.0, Some(2.5)));
        assert!((pooled.half_pps - 3.646).abs() < 1e-3, "{}", pooled.half_pps);
        assert!((pooled.ratio - 1.0).abs() < 1e-12 && !pooled.is_proven());
        let welch = rows[0].welch.expect("five runs each");
        assert!((welch.df - 5.882_353).abs() < 1e-6 && welch.half_pps > pooled.half_pps);
        assert_eq!(rows[0].says, "no difference proven at 95 % confidence: B is +100.00 % ± 129.59 % of A");
    }

    #[test]
    fn a_difference_is_said_with_its_interval() {
        let rows = compare(&runs(&[1e6, 1.001e6, 0.999e6], &[0.8e6, 0.801e6, 0.799e6]));
        assert_eq!(rows[0].says, "B is 20.00 % ± 0.23 % slower than A");
        assert_eq!(rows[0].remarks, [""; 0]);
    }

    #[test]
    fn what_the_tester_limits_is_a_bound_or_nothing() {
        let mut of = runs(&[1e6, 1.001e6, 0.999e6], &[1.5e6, 1.501e6, 1.499e6]);
        of[3].throughputs[0].at_least = true;
        assert_eq!(compare(&of)[0].says, "B is faster than A, by 49.77 % at least");
        of[0].throughputs[0].at_least = true;
        let row = &compare(&of)[0];
        assert!(row.says.starts_with("not comparable"), "{}", row.says);
        assert_eq!(row.remarks[0], "1 of 3 throughputs of A are limited by the tester or the line");
    }

    #[test]
    fn too_few_runs_compare_nothing() {
        assert_eq!(compare(&[]), []);
        let row = &compare(&runs(&[1e6], &[2e6]))[0];
        assert_eq!((row.pooled, row.welch), (None, None));
        assert!(row.says.starts_with("not comparable"));
        assert!(compare(&runs(&[1e6, 2e6], &[]))[0].says.starts_with("not comparable"));
    }

    #[test]
    fn rows_come_in_the_order_of_the_plan() {
        let at = |traffic, size| ThroughputOfSize { traffic, size, pps: 1.0, at_least: false };
        let throughputs = vec![at(1, Some(64)), at(0, None), at(0, Some(1518)), at(0, Some(64))];
        let rows = compare(&[AbRun { side: Side::A, at_ms: 0, throughputs }]);
        let order: Vec<_> = rows.iter().map(|row| (row.traffic, row.size)).collect();
        assert_eq!(order, [(0, Some(64)), (0, Some(1518)), (0, None), (1, Some(64))]);
    }

    proptest! {
        #[test]
        fn swapping_the_sides_turns_the_difference(
            a in prop::collection::vec(1.0..1e7_f64, 2..12),
            b in prop::collection::vec(1.0..1e7_f64, 2..12),
        ) {
            let (there, back) = (compare(&runs(&a, &b)), compare(&runs(&b, &a)));
            let (there, back) = (there[0].welch.expect("two runs"), back[0].welch.expect("two runs"));
            prop_assert!((there.pps + back.pps).abs() <= 1e-6 * there.pps.abs().max(1.0));
            prop_assert_eq!(there.is_proven(), back.is_proven());
        }
    }
}
