//! Forwarding rate at maximum offered load (RFC 2285, section 3.6.2): frames at line rate, or at the highest load of the plan; the
//! receiver's rate is the result.

use super::procedure::{Known, Repeated, SetUp, max_pps};
use super::schedule::{Scheduled, fixed};
use crate::data::plan::Row;
use crate::data::{ForwardingPlan, Test};

pub(super) fn set_up(plan: &ForwardingPlan, row: Row, _: &Known) -> Option<SetUp> {
    let test = plan.tests.frmol.as_ref()?;
    Some(max_pps(plan, row).map(|pps| Repeated::set_up(Test::Frmol, pps, test.duration_ms, test.repetitions)))
}

pub(super) fn schedule(plan: &ForwardingPlan, row: Row) -> Vec<Scheduled> {
    let test = plan.tests.frmol.as_ref();
    test.map(|test| fixed(plan, Test::Frmol, row, test.repetitions, test.duration_ms)).into_iter().collect()
}
