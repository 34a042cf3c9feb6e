//! What to set on a switch, a device or a tester before a forwarding benchmark, so that nothing moves but the test frames.

use crate::host::change::Setting;
use crate::words::mac::Mac;
use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;

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
    /// A kernel parameter of each device on the way.
    DeviceSysctl {
        /// Dotted, with the word `DEVICE` in the place of its name.
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
    /// Flow control of each device on the way.
    FlowControl {
        /// Wanted state.
        on: bool,
    },
    /// The rings of each device on the way, as long as its hardware can.
    Rings,
    /// An option of each bridge.
    Bridge {
        /// By the word of `ip link`.
        option: &'static str,
        /// Its value.
        value: u32,
    },
    /// The neighbours on the way, known for good.
    Neighbours,
}

/// What of a host takes part in a benchmark: what presets are made into settings for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seat {
    /// Devices that test frames pass.
    pub devices: Vec<String>,
    /// Bridges that are switches.
    pub bridges: Vec<String>,
    /// Who is on the other end of a device: device, address, Ethernet address.
    pub neighbours: Vec<(String, IpAddr, Mac)>,
    /// How many descriptors the rings of a device take at most: device, receiving, sending.
    pub rings: Vec<(String, u32, u32)>,
}

impl Preset {
    /// The settings for a seat: one for the host, or one for each device, bridge or neighbour.
    #[must_use]
    pub fn settings(self, seat: &Seat) -> Vec<Setting> {
        let each = |make: &dyn Fn(String) -> Setting| seat.devices.iter().cloned().map(make).collect();
        match self {
            Self::Sysctl { key, value } => vec![Setting::Sysctl { key: key.to_owned(), value: value.to_owned() }],
            Self::DeviceSysctl { key, value } => each(&|device| {
                // As with `sysctl`, a `/` inside of a key is a `.` of the name.
                Setting::Sysctl { key: key.replace("DEVICE", &device.replace('.', "/")), value: value.to_owned() }
            }),
            Self::Offload { feature, on } => {
                each(&|device| Setting::Offload { device, feature: feature.to_owned(), on })
            }
            Self::FlowControl { on } => each(&|device| Setting::FlowControl { device, on }),
            Self::Rings => {
                let of =
                    |(device, rx, tx): &(String, u32, u32)| Setting::Rings { device: device.clone(), rx: *rx, tx: *tx };
                seat.rings.iter().map(of).collect()
            }
            Self::Bridge { option, value } => {
                let of = |bridge: &String| Setting::Bridge { bridge: bridge.clone(), option: option.to_owned(), value };
                seat.bridges.iter().map(of).collect()
            }
            Self::Neighbours => {
                let of = |(device, address, mac): &(String, IpAddr, Mac)| Setting::Neighbour {
                    device: device.clone(),
                    address: *address,
                    mac: *mac,
                };
                seat.neighbours.iter().map(of).collect()
            }
        }
    }
}

/// Where a setting stands on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is so already.
    Already,
    /// It would be changed; what is there now.
    Differs(String),
    /// It cannot be set here, and why.
    NotHere(String),
}

/// One thing of the advice that narrows would set on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdviceItem {
    /// The advice's id.
    pub advice: &'static str,
    /// The command that would do it; what it is about where there is none.
    pub what: String,
    /// The setting, where it could be made up.
    pub setting: Option<Setting>,
    /// Where it stands.
    pub standing: Standing,
}

/// What of the advice narrows found to set on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdviceFound {
    /// What the host is in the benchmark.
    pub role: AdviceRole,
    /// The devices and bridges that it is about.
    pub seat: Vec<String>,
    /// What narrows can set here or cannot, in the order of the advice.
    pub items: Vec<AdviceItem>,
    /// The ids of the advice that narrows does not set.
    pub left: Vec<&'static str>,
}

impl AdviceFound {
    /// What differs from the advice and can be set.
    #[must_use]
    pub fn to_set(&self) -> Vec<Setting> {
        let differs = |item: &&AdviceItem| matches!(item.standing, Standing::Differs(_));
        self.items.iter().filter(differs).filter_map(|item| item.setting.clone()).collect()
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
    fn a_preset_is_set_once_for_the_host_or_once_a_part() {
        let seat = Seat {
            devices: vec!["eth1".to_owned(), "eth2.7".to_owned()],
            bridges: vec!["br0".to_owned()],
            neighbours: vec![("eth1".to_owned(), IpAddr::from([198, 18, 0, 1]), Mac([2, 0, 0, 0, 0, 1]))],
            rings: vec![("eth1".to_owned(), 4096, 2048)],
        };
        let lines = |preset: Preset| preset.settings(&seat).iter().map(ToString::to_string).collect::<Vec<_>>();
        let sysctl = Preset::Sysctl { key: "net.core.netdev_budget", value: "600" };
        assert_eq!(lines(sysctl), ["sysctl -w net.core.netdev_budget=600"]);
        let of_device = Preset::DeviceSysctl { key: "net.ipv4.conf.DEVICE.rp_filter", value: "0" };
        assert_eq!(
            lines(of_device),
            ["sysctl -w net.ipv4.conf.eth1.rp_filter=0", "sysctl -w net.ipv4.conf.eth2/7.rp_filter=0"]
        );
        let offload = Preset::Offload { feature: "gro", on: false };
        assert_eq!(lines(offload), ["ethtool -K eth1 gro off", "ethtool -K eth2.7 gro off"]);
        assert_eq!(
            lines(Preset::FlowControl { on: false }),
            ["ethtool -A eth1 autoneg off rx off tx off", "ethtool -A eth2.7 autoneg off rx off tx off"]
        );
        assert_eq!(lines(Preset::Rings), ["ethtool -G eth1 rx 4096 tx 2048"]);
        let spanning_tree = Preset::Bridge { option: "stp_state", value: 0 };
        assert_eq!(lines(spanning_tree), ["ip link set dev br0 type bridge stp_state 0"]);
        assert_eq!(
            lines(Preset::Neighbours),
            ["ip neighbour replace 198.18.0.1 lladdr 02:00:00:00:00:01 dev eth1 nud permanent"]
        );
    }
}
