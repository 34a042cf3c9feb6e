//! The commands: one file each, with its flags and the call that does it.

pub(crate) mod audit;
pub(crate) mod diagnose;
pub(crate) mod lab;
pub(crate) mod list;
pub(crate) mod load;
pub(crate) mod measure;
pub(crate) mod remote;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod snapshot;
pub(crate) mod tune;
