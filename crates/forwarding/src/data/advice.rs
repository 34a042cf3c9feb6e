//! What to set on a switch, a device or a tester before a forwarding benchmark, so that nothing moves but the test frames.

use narrows_model::host::change::Setting;
use narrows_model::words::mac::Mac;
use narrows_model::words::words;
use serde::Deserialize;
use std::net::IpAddr;

words! {
    /// Whose commands they are.
    pub enum AdviceSystem {
        /// Linux with iproute2, ethtool and a shell.
        Linux = "linux",
        Freebsd = "freebsd",
        /// Cisco IOS and IOS XE.
        Cisco = "cisco",
        Juniper = "juniper",
    }
}

impl AdviceSystem {
    /// As its makers write it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Freebsd => "FreeBSD",
            Self::Cisco => "Cisco IOS",
            Self::Juniper => "Junos",
        }
    }
}

words! {
    /// What a host or a device does in the benchmark.
    pub enum AdviceRole {
        /// Carries frames between the others and counts them.
        Switch = "switch",
        /// The device under test, a router.
        Router = "router",
        Tester = "tester",
    }
}

/// A setting of an advice that narrows can apply and roll back.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// A kernel parameter of the whole host.
    Sysctl { key: String, value: String },
    /// A kernel parameter of each interface.
    DeviceSysctl {
        /// Dotted, with the word `DEVICE` in the place of its name.
        key: String,
        value: String,
    },
    /// An offload feature of each interface.
    Offload {
        /// Its name in `ethtool -K`.
        feature: String,
        on: bool,
    },
    /// Flow control of each interface.
    FlowControl { on: bool },
    /// The rings of each interface, at their maximum.
    Rings,
    /// An option of each bridge.
    Bridge {
        /// Its name in `ip link`.
        option: String,
        value: u32,
    },
    /// Static entries for the neighbours.
    Neighbours,
}

/// The parts of a host that take part in a benchmark: presets become settings of these.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostParts {
    /// Interfaces that test frames pass.
    pub interfaces: Vec<String>,
    /// Bridges that are switches.
    pub bridges: Vec<String>,
    /// Neighbours: interface, address, Ethernet address.
    pub neighbours: Vec<(String, IpAddr, Mac)>,
    /// Maximum ring sizes, in descriptors: interface, receiving, sending.
    pub rings: Vec<(String, u32, u32)>,
}

impl Preset {
    /// The settings for a host: one, or one for each interface, bridge or neighbour.
    pub fn settings(&self, parts: &HostParts) -> Vec<Setting> {
        let each = |make: &dyn Fn(String) -> Setting| parts.interfaces.iter().cloned().map(make).collect();
        match self {
            Self::Sysctl { key, value } => vec![Setting::Sysctl { key: key.clone(), value: value.clone() }],
            Self::DeviceSysctl { key, value } => each(&|device| {
                // As with `sysctl`, a `/` inside of a key is a `.` of the name.
                Setting::Sysctl { key: key.replace("DEVICE", &device.replace('.', "/")), value: value.clone() }
            }),
            Self::Offload { feature, on } => {
                each(&|device| Setting::Offload { device, feature: feature.clone(), on: *on })
            }
            Self::FlowControl { on } => each(&|device| Setting::FlowControl { device, on: *on }),
            Self::Rings => {
                let of =
                    |(device, rx, tx): &(String, u32, u32)| Setting::Rings { device: device.clone(), rx: *rx, tx: *tx };
                parts.rings.iter().map(of).collect()
            }
            Self::Bridge { option, value } => {
                let of =
                    |bridge: &String| Setting::Bridge { bridge: bridge.clone(), option: option.clone(), value: *value };
                parts.bridges.iter().map(of).collect()
            }
            Self::Neighbours => {
                let of = |(device, address, mac): &(String, IpAddr, Mac)| Setting::Neighbour {
                    device: device.clone(),
                    address: *address,
                    mac: *mac,
                };
                parts.neighbours.iter().map(of).collect()
            }
        }
    }
}

/// The state of a setting on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingState {
    AsAdvised,
    /// Set to another value, which this is.
    Differs(String),
    /// It cannot be set on this host, and why.
    Unavailable(String),
}

/// One thing of the advice that narrows would set on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdviceItem {
    pub advice: String,
    /// The command that would do it, or its subject where there is none.
    pub what: String,
    /// The setting, where one could be made.
    pub setting: Option<Setting>,
    pub state: SettingState,
}

/// The settings that the advice asks for on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdviceFound {
    /// The host's role in the benchmark.
    pub role: AdviceRole,
    /// Its interfaces and bridges.
    pub interfaces: Vec<String>,
    /// Settings in the order of the advice.
    pub items: Vec<AdviceItem>,
    /// The ids of the advice that narrows does not set.
    pub manual: Vec<String>,
}

impl AdviceFound {
    /// What differs from the advice and can be set.
    pub fn to_set(&self) -> Vec<Setting> {
        let differs = |item: &&AdviceItem| matches!(item.state, SettingState::Differs(_));
        self.items.iter().filter(differs).filter_map(|item| item.setting.clone()).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// Its name, the same on every system that has it.
    pub id: String,
    pub roles: Vec<AdviceRole>,
    /// One sentence: what moves or is lost without it.
    pub why: String,
    /// What to type, one command per entry; words in capitals stand for names that only the reader knows.
    pub commands: Vec<String>,
    /// What to type afterwards; empty where nothing was changed.
    #[serde(default)]
    pub undo: Vec<String>,
    /// Its source: a section of an RFC, a manual.
    pub source: String,
    /// The part of it that narrows can apply and roll back.
    #[serde(default)]
    pub presets: Vec<Preset>,
}

/// All advice for one system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handbook {
    pub system: AdviceSystem,
    /// Where its commands are typed.
    pub typed: String,
    /// The meaning of each word in capitals.
    pub words: Vec<(String, String)>,
    /// In the order in which they are best followed.
    pub advice: Vec<Advice>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_is_set_once_for_the_host_or_once_a_part() {
        let parts = HostParts {
            interfaces: vec!["eth1".to_owned(), "eth2.7".to_owned()],
            bridges: vec!["br0".to_owned()],
            neighbours: vec![("eth1".to_owned(), IpAddr::from([198, 18, 0, 1]), Mac([2, 0, 0, 0, 0, 1]))],
            rings: vec![("eth1".to_owned(), 4096, 2048)],
        };
        let lines = |preset: Preset| preset.settings(&parts).iter().map(ToString::to_string).collect::<Vec<_>>();
        let sysctl = Preset::Sysctl { key: "net.core.netdev_budget".into(), value: "600".into() };
        assert_eq!(lines(sysctl), ["sysctl -w net.core.netdev_budget=600"]);
        let of_device = Preset::DeviceSysctl { key: "net.ipv4.conf.DEVICE.rp_filter".into(), value: "0".into() };
        assert_eq!(
            lines(of_device),
            ["sysctl -w net.ipv4.conf.eth1.rp_filter=0", "sysctl -w net.ipv4.conf.eth2/7.rp_filter=0"]
        );
        let offload = Preset::Offload { feature: "gro".into(), on: false };
        assert_eq!(lines(offload), ["ethtool -K eth1 gro off", "ethtool -K eth2.7 gro off"]);
        assert_eq!(
            lines(Preset::FlowControl { on: false }),
            ["ethtool -A eth1 autoneg off rx off tx off", "ethtool -A eth2.7 autoneg off rx off tx off"]
        );
        assert_eq!(lines(Preset::Rings), ["ethtool -G eth1 rx 4096 tx 2048"]);
        let spanning_tree = Preset::Bridge { option: "stp_state".into(), value: 0 };
        assert_eq!(lines(spanning_tree), ["ip link set dev br0 type bridge stp_state 0"]);
        assert_eq!(
            lines(Preset::Neighbours),
            ["ip neighbour replace 198.18.0.1 lladdr 02:00:00:00:00:01 dev eth1 nud permanent"]
        );
    }
}
