//! What to set on the switch, the device and the testers before a forwarding benchmark: one file of `advice/` per system, one
//! entry per advice. Some of the Linux part narrows can apply and roll back itself: [`host`].

pub mod host;

use narrows_forwarding::data::advice::{AdviceSystem, Handbook};

/// The advice for a system.
pub fn handbook(system: AdviceSystem) -> Result<Handbook, toml::de::Error> {
    toml::from_str(match system {
        AdviceSystem::Linux => include_str!("../../advice/linux.toml"),
        AdviceSystem::Freebsd => include_str!("../../advice/freebsd.toml"),
        AdviceSystem::Cisco => include_str!("../../advice/cisco.toml"),
        AdviceSystem::Juniper => include_str!("../../advice/juniper.toml"),
    })
}

#[cfg(test)]
mod tests;
