//! What all engines share: the sampler, the life of a data thread, the schedule, the limits of a trial.

pub(crate) mod awake;
pub(crate) mod connections;
pub(crate) mod counters;
pub(crate) mod engine;
pub(crate) mod error;
pub(crate) mod fill;
pub(crate) mod limits;
pub(crate) mod outcome;
pub(crate) mod placing;
pub(crate) mod sampler;
pub(crate) mod schedule;
pub(crate) mod sequence_window;
pub(crate) mod sockets;
pub(crate) mod stop;
pub(crate) mod threads;
