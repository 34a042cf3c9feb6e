//! What to set on the switch, the device and the testers before a forwarding benchmark: one file a system, one entry an
//! advice. Of the Linux part some is set, and set back, by narrows itself: [`host`].

mod cisco;
mod freebsd;
pub mod host;
mod juniper;
mod linux;

use narrows_model::forwarding::advice::{AdviceRole, AdviceSystem, Handbook};
use narrows_render::Style;

/// The advice for a system.
#[must_use]
pub const fn handbook(system: AdviceSystem) -> &'static Handbook {
    match system {
        AdviceSystem::Linux => &linux::HANDBOOK,
        AdviceSystem::Freebsd => &freebsd::HANDBOOK,
        AdviceSystem::Cisco => &cisco::HANDBOOK,
        AdviceSystem::Juniper => &juniper::HANDBOOK,
    }
}

/// What `narrows rfc2544 advise` prints: the advice for a system, of one role or of all.
#[must_use]
pub fn text(system: AdviceSystem, role: Option<AdviceRole>, style: Style) -> String {
    narrows_render::advice::text(handbook(system), role, style)
}

#[cfg(test)]
mod tests;
