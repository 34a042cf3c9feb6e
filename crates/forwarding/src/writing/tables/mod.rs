//! The tables that are of no procedure, the same in every format.

mod accounts;
mod dut;
mod modifiers;
mod plan;
mod tester;

pub(super) use accounts::{account, invalid, losses, not_measured};
pub(super) use dut::dut;
pub(super) use modifiers::modifiers;
pub(super) use plan::plan;
pub(super) use tester::tester;
