//! The tables of a benchmark, the same in every format.

mod books;
mod devices;
mod loss;
mod modifiers;
mod plan;
mod repeated;
mod sized;
mod throughput;
mod times;

pub(super) use books::{books, invalid, losses, not_measured};
pub(super) use devices::devices;
pub(super) use loss::loss;
pub(super) use modifiers::modifiers;
pub(super) use plan::plan;
pub(super) use repeated::{confirmation, worst_case};
pub(super) use throughput::{tester, throughput};
pub(super) use times::{back_to_back, latency, outages};
