//! What to set on a switch, a device or a tester before a forwarding benchmark, so that nothing moves but the test frames.

use crate::change::Setting;
use schemars::JsonSchema;
use serde::Serialize;

/// Whose commands they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdviceSystem {
    /// Linux with iproute2, ethtool and a shell.
    Linux,
    /// FreeBSD.
    Freebsd,
    /// Cisco IOS and IOS XE.
    Cisco,
    /// Junos.
    Juniper,
}

impl AdviceSystem {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Linux, Self::Freebsd, Self::Cisco, Self::Juniper];

    /// The word of the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Freebsd => "freebsd",
            Self::Cisco => "cisco",
            Self::Juniper => "juniper",
        }
    }

    /// As its makers write it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Freebsd => "FreeBSD",
            Self::Cisco => "Cisco IOS",
            Self::Juniper => "Junos",
        }
    }
}

/// What a host or a device does in the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdviceRole {
    /// Carries frames between the others and counts them.
    Switch,
    /// The device under test, a router.
    Router,
    /// Generates or receives.
    Tester,
}

impl AdviceRole {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Switch, Self::Router, Self::Tester];

    /// The word of the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Router => "router",
            Self::Tester => "tester",
        }
    }
}

/// What narrows itself can set, and set back, of an advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// A kernel parameter of the whole host.
    Sysctl {
        /// Dotted.
        key: &'static str,
        /// Its value.
        value: &'static str,
    },
    /// An offload feature of each device on the way.
    Offload {
        /// By the word of `ethtool -K`.
        feature: &'static str,
        /// Wanted state.
        on: bool,
    },
}

impl Preset {
    /// The settings for the devices on the way: one for the host, or one for each of them.
    #[must_use]
    pub fn settings(self, devices: &[String]) -> Vec<Setting> {
        match self {
            Self::Sysctl { key, value } => vec![Setting::Sysctl { key: key.to_owned(), value: value.to_owned() }],
            Self::Offload { feature, on } => {
                let each =
                    |device: &String| Setting::Offload { device: device.clone(), feature: feature.to_owned(), on };
                devices.iter().map(each).collect()
            }
        }
    }
}

/// One advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Advice {
    /// Its name, the same on every system that has it.
    pub id: &'static str,
    /// Whom it is for.
    pub roles: &'static [AdviceRole],
    /// One sentence: what moves or is lost without it.
    pub why: &'static str,
    /// What to type, a line each; words in capitals stand for what only the reader knows.
    pub commands: &'static [&'static str],
    /// What to type afterwards; empty where nothing was changed.
    pub undo: &'static [&'static str],
    /// Where it comes from: a section, a manual.
    pub source: &'static str,
    /// What of it narrows sets by itself and sets back.
    pub presets: &'static [Preset],
}

/// All advice for one system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Handbook {
    /// Whose commands.
    pub system: AdviceSystem,
    /// Where they are typed.
    pub typed: &'static str,
    /// What the words in capitals stand for.
    pub words: &'static [(&'static str, &'static str)],
    /// In the order in which they are best followed.
    pub advice: &'static [Advice],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_is_set_once_for_the_host_or_once_a_device() {
        let devices = ["eth1".to_owned(), "eth2".to_owned()];
        let lines = |preset: Preset| preset.settings(&devices).iter().map(ToString::to_string).collect::<Vec<_>>();
        let sysctl = Preset::Sysctl { key: "net.core.netdev_budget", value: "600" };
        assert_eq!(lines(sysctl), ["sysctl -w net.core.netdev_budget=600"]);
        let offload = Preset::Offload { feature: "gro", on: false };
        assert_eq!(lines(offload), ["ethtool -K eth1 gro off", "ethtool -K eth2 gro off"]);
    }
}
