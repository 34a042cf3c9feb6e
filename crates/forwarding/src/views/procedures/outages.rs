//! Recoveries and resets of a row.

use super::super::size::{Of, spread};
use super::entry::Entry;
use crate::data::{OutageOfSize, Test};
use narrows_model::run::sweep::Spread;
use narrows_model::words::figures::{float, nanos};

pub(super) const RECOVERY: Entry = Entry::new(
    Test::Recovery,
    |of, it, _| (it.recovery.time_ns, it.recovery.notes) = outages(of, Test::Recovery),
    |it| it.recovery.time_ns.is_some() || !it.recovery.notes.is_empty(),
    true,
);

pub(super) const RESET: Entry = Entry::new(
    Test::Reset,
    |of, it, _| (it.reset.outage_ns, it.reset.notes) = outages(of, Test::Reset),
    |it| it.reset.outage_ns.is_some() || !it.reset.notes.is_empty(),
    true,
);

/// The durations, and what must be known of them.
fn outages(of: &Of<'_>, test: Test) -> (Option<Spread>, Vec<String>) {
    let own = |it: &&OutageOfSize| it.test == test && of.is(it.traffic, it.size);
    let all: Vec<&OutageOfSize> = of.record.outages.iter().filter(own).collect();
    (spread(all.iter().filter_map(|it| it.outage_ns).map(float)), outage_notes(&all))
}

/// What must be known of the recoveries or resets of a size.
fn outage_notes(of: &[&OutageOfSize]) -> Vec<String> {
    let mut notes = Vec::new();
    let between: Vec<[u64; 2]> = of.iter().filter_map(|it| it.between_ns).collect();
    match between.as_slice() {
        [] => {}
        [[least, most]] => {
            notes.push(format!("between {} and {} by the receiver's samples", nanos(*least), nanos(*most)));
        }
        all => {
            let apart = all.iter().map(|[least, most]| most.saturating_sub(*least)).max().unwrap_or(0);
            notes.push(format!("within {}, the receiver's sample interval", nanos(apart)));
        }
    }
    let mut told: Vec<(&str, usize)> = Vec::new();
    for remark in of.iter().flat_map(|it| &it.remarks) {
        match told.iter_mut().find(|(other, _)| other == remark) {
            Some((_, times)) => *times += 1,
            None => told.push((remark, 1)),
        }
    }
    notes.extend(told.into_iter().map(|(remark, times)| match of.len() {
        1 => remark.to_owned(),
        all => format!("{times} of {all}: {remark}"),
    }));
    notes
}
