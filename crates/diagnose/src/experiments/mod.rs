//! The experiments that a diagnosis can make: one definition each, one line each in the table of its protocol.

pub mod paced;
pub mod ports;
pub mod profile;
pub mod tcp;
pub mod udp;

use crate::judge::Experiment;

/// Those of a diagnosis of TCP, most useful first.
pub static TCP: &[&Experiment] = &[
    &profile::PATH_PROFILE,
    &profile::REVERSE_PROFILE,
    &ports::MANY_PORTS,
    &tcp::SMALL_SEGMENTS,
    &tcp::FITTING_SEGMENTS,
    &tcp::UNDERLAY,
    &tcp::MORE_STREAMS,
    &tcp::OTHER_DIRECTION,
    &tcp::LARGER_BUFFER,
    &tcp::LARGER_WRITES,
    &tcp::NO_DELAY,
    &tcp::OTHER_CONGESTION_CONTROL,
    &tcp::AGAIN,
    &tcp::PACED_HALF,
    &paced::PACED_UDP,
    &tcp::AWAKE_CORES,
    &tcp::LOOPBACK,
];

/// Those of a diagnosis of UDP, most useful first.
pub static UDP: &[&Experiment] = &[
    &profile::PATH_PROFILE,
    &ports::MANY_PORTS,
    &paced::PACED_UDP,
    &udp::LARGER_DATAGRAMS,
    &udp::UNFRAGMENTED,
    &udp::MORE_FLOWS,
];

/// The experiment of that id, or the part of one.
pub fn by_id(id: &str) -> Option<&'static Experiment> {
    let mut all = TCP.iter().chain(UDP).flat_map(|experiment| std::iter::once(*experiment).chain(experiment.trials()));
    all.find(|experiment| experiment.id == id)
}
