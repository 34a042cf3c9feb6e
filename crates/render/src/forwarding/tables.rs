//! The tables of a benchmark, the same in every format.

mod books;
mod plan;
mod results;

pub(super) use books::{books, invalid, losses, not_measured};
pub(super) use plan::plan;
pub(super) use results::{back_to_back, confirmation, latency, loss, outages, tester, throughput, worst_case};
