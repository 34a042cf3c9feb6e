//! What to set on the switch, the device and the testers before a forwarding benchmark: one file a system, one entry an
//! advice. Of the Linux part some is set, and set back, by narrows itself: [`settings`].

mod cisco;
mod freebsd;
mod juniper;
mod linux;

use narrows_model::Setting;
use narrows_model::advice::{AdviceRole, AdviceSystem, Handbook};
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

/// What narrows itself can set on a Linux host in a role, with the id of the advice that it is from. `devices` are those that
/// test frames pass. Each is made and undone as any other change ([`crate::tune`]).
#[must_use]
pub fn settings(role: AdviceRole, devices: &[String]) -> Vec<(&'static str, Setting)> {
    let of_role = linux::HANDBOOK.advice.iter().filter(|advice| advice.roles.contains(&role));
    let presets = of_role.flat_map(|advice| advice.presets.iter().map(|preset| (advice.id, preset)));
    presets.flat_map(|(id, preset)| preset.settings(devices).into_iter().map(move |setting| (id, setting))).collect()
}

#[cfg(test)]
mod tests;
