//! A campaign with planted effects.

use super::*;
use crate::history::of_campaign;

/// Two levels a factor; the figure of a step is what `of` says of its cell.
pub(crate) fn planned(names: &[&str], design: Design, blocks: usize) -> Planned {
    let levels = ["off", "on"].map(str::to_owned).to_vec();
    let factors: Vec<_> =
        names.iter().map(|name| CampaignFactor { name: (*name).to_owned(), levels: levels.clone() }).collect();
    let cells = cells(design, &vec![2; names.len()]);
    let steps = (0..blocks * cells.len()).map(|at| Step {
        number: at + 1,
        block: at / cells.len() + 1,
        host: 0,
        cell: cells[at % cells.len()].clone(),
    });
    Planned {
        name: "planted".to_owned(),
        tag: "campaign:0a".to_owned(),
        hosts: vec!["server".to_owned()],
        factors,
        design,
        blocks,
        steps: steps.collect(),
        better: None,
    }
}

fn measured(planned: &Planned, of: impl Fn(&Step) -> f64) -> BTreeMap<usize, Observed> {
    let run = |step: &Step| Observed {
        id: format!("run-{}", step.number),
        started_unix_us: 0,
        figure: Ok(Headline::new("goodput up", of(step), Unit::BitsPerSecond)),
    };
    planned.steps.iter().map(|step| (step.number, run(step))).collect()
}

fn noise(step: &Step) -> f64 {
    (step.number * 7919 % 101) as f64 / 50.0 - 1.0
}

/// The verdict on each effect, by its factors.
fn verdicts(report: &CampaignReport) -> Vec<(String, EffectVerdict)> {
    let name = |terms: &[CampaignTerm]| terms.iter().map(|it| it.factor.as_str()).collect::<Vec<_>>().join(" × ");
    report.effects.iter().map(|it| (name(&it.terms), it.verdict)).collect()
}

#[test]
fn planted_effects_are_found_and_idle_factors_named() {
    let plan = planned(&["window", "offload", "idle"], Design::Full, 4);
    let on = |step: &Step, at: usize| f64::from(u8::from(step.cell[at] == 1));
    let runs = measured(&plan, |step| {
        1000.0 + 200.0 * on(step, 0) - 100.0 * on(step, 1) + 50.0 * on(step, 0) * on(step, 1) + noise(step)
    });
    let report = report(&plan, &runs, 0.01);
    use EffectVerdict::{Lowers, Nothing, Raises};
    let expected = [
        ("window", Raises),
        ("offload", Lowers),
        ("idle", Nothing),
        ("window × offload", Raises),
        ("window × idle", Nothing),
        ("offload × idle", Nothing),
    ];
    assert_eq!(verdicts(&report), expected.map(|(name, verdict)| (name.to_owned(), verdict)));
    // 200 and half of the interaction.
    assert!((report.effects[0].effect.unwrap() - 225.0).abs() < 1.0, "{:?}", report.effects[0]);
    assert_eq!((report.idle.clone(), report.runs.len()), (vec!["idle".to_owned()], 32));
    let listed = of_campaign(&report);
    assert_eq!((listed.server.as_str(), listed.verdict.as_str()), ("server", "effect: 2 of 3 factors"));
    let names: Vec<&str> = listed.figures.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((names, listed.figures[0].unit), (vec!["goodput up mean", "goodput up best"], Unit::BitsPerSecond));
    assert_eq!(Some(listed.figures[0].value), report.mean);
    let best = report.best.expect("a best one");
    assert_eq!(&best.levels[..2], ["on", "off"]);
    assert!((best.gain.unwrap() - 0.2).abs() < 0.01 && best.gain_interval.unwrap()[0] > 0.19, "{best:?}");
}

#[test]
fn a_time_is_better_where_it_is_lower_and_a_failed_run_is_left_out() {
    let plan = planned(&["poll"], Design::Full, 3);
    let mut runs = measured(&plan, |step| 100.0 - 20.0 * f64::from(u8::from(step.cell == [1])) + noise(step));
    for it in runs.values_mut() {
        it.figure = it.figure.clone().map(|it| Headline { unit: Unit::Microseconds, ..it });
    }
    runs.get_mut(&2).unwrap().figure = Err("no match".to_owned());
    let all = report(&plan, &runs, 0.01);
    assert_eq!((all.better, all.best.unwrap().levels), (Better::Lower, vec!["on".to_owned()]));
    assert_eq!((all.cells[1].runs, all.runs[1].failed.as_deref()), (2, Some("no match")));
    assert_eq!(all.warnings, ["1 run failed; they are left out"]);
    runs.remove(&6);
    let part = report(&plan, &runs, 0.01);
    assert_eq!(
        (part.warnings[1].as_str(), of_campaign(&part).verdict),
        ("5 of 6 runs are made", "ended early".to_owned())
    );
}

#[test]
fn nothing_measured_has_no_effects() {
    let plan = planned(&["a", "b"], Design::Full, 1);
    let nothing = report(&plan, &BTreeMap::new(), 0.01);
    assert_eq!((nothing.mean, nothing.effects.len(), &nothing.best), (None, 0, &None));
    assert_eq!(nothing.cells.len(), 4);
    let mut failed = measured(&plan, noise);
    failed.values_mut().for_each(|it| it.figure = Err("no match".to_owned()));
    let listed = of_campaign(&report(&plan, &failed, 0.01));
    assert_eq!((listed.verdict.as_str(), listed.figures), ("nothing measured", Vec::new()));
    let same = report(&plan, &measured(&plan, |_| 1.0), 0.01);
    assert_eq!(of_campaign(&same).verdict, "no effect found");
}
