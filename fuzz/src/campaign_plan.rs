//! The plan file of a campaign: any text is a plan whose steps can be listed, or has problems that say where they are.
use narrows_runner::campaign::{expected_ms, plan, steps};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match plan::parse(text, bytes.len().is_multiple_of(2)) {
        Ok(plan) => {
            let steps = steps(&plan);
            assert!((1..=plan::MAX_RUNS).contains(&steps.len()));
            assert!(expected_ms(&plan, &steps, &[1_000]) > 0);
            assert!(steps.iter().all(|it| !plan.words(&it.cell).is_empty()));
        }
        Err(problems) => {
            assert!((1..=plan::MAX_PROBLEMS).contains(&problems.len()));
            assert!(problems.iter().all(|problem| problem.line >= 1 && problem.column >= 1));
        }
    }
}
