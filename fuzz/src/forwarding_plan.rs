//! The plan file of a forwarding benchmark: any text is a plan, or has problems that say where they are.
use narrows_forwarding::plan_file::{Problems, parse};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse(text) {
        Ok(file) => {
            assert!(!file.plan.rows().is_empty());
            assert!(file.plan.rows().into_iter().all(|row| file.plan.max_pps(row).is_some_and(|pps| pps > 0.0)));
        }
        Err(problems) => {
            assert!((1..=Problems::MOST).contains(&problems.problems.len()));
            assert!(problems.problems.iter().all(|problem| problem.line >= 1 && problem.column >= 1));
            assert!(!problems.to_string().is_empty());
        }
    }
}
