//! What follows from a run: accounts, the packet ledger, the verdict.

pub mod account;
pub mod ledger;
pub mod verdict;
