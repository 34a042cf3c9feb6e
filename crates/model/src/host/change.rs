//! Changes of a host: what can be set, and the note of what it was before.

use crate::host::table::TableFill;
use crate::words::mac::Mac;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// One thing on a host that narrows can set and set back. Nothing else on a host is ever changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Setting {
    /// A kernel parameter below `net.`.
    Sysctl {
        /// Dotted: `net.ipv4.tcp_rmem`.
        key: String,
        /// As the file holds it, words parted by single blanks.
        value: String,
    },
    /// An offload feature of a device.
    Offload {
        /// The device's name.
        device: String,
        /// `tso`, `gso`, `gro`, `lro`, `tx-checksum`, `rx-checksum`, `scatter-gather`, as `ethtool -K` says them.
        feature: String,
        /// Wanted state.
        on: bool,
    },
    /// The MTU of a device.
    Mtu {
        /// The device's name.
        device: String,
        /// Bytes.
        mtu: u32,
    },
    /// The root queueing discipline of a device.
    RootQdisc {
        /// The device's name.
        device: String,
        /// The kind, such as `pfifo_fast`, without options; `default` lets the kernel choose.
        kind: String,
    },
    /// The Ethernet address of a neighbour, known for good: nobody asks for it.
    Neighbour {
        /// The device's name.
        device: String,
        /// The neighbour's address on that link.
        address: IpAddr,
        /// Its Ethernet address.
        mac: Mac,
    },
    /// An option of a bridge.
    Bridge {
        /// The bridge's name.
        bridge: String,
        /// `stp_state`, `ageing_time`, `mcast_snooping`, `mcast_querier`, as `ip link` says them.
        option: String,
        /// Its value in the kernel's unit: hundredths of a second of times.
        value: u32,
    },
    /// Ethernet flow control of a device: negotiated, obeyed and sent, or none of it.
    FlowControl {
        /// The device's name.
        device: String,
        /// Wanted state of all three.
        on: bool,
    },
    /// The descriptors in the rings of a device.
    Rings {
        /// The device's name.
        device: String,
        /// Of the receive rings.
        rx: u32,
        /// Of the transmit rings.
        tx: u32,
    },
    /// Entries of a table of a device under test, all of which lead to one neighbour.
    Table {
        /// How many of what.
        fill: TableFill,
        /// The device that they lead through.
        device: String,
        /// The neighbour's address.
        gateway: IpAddr,
        /// Its Ethernet address.
        mac: Mac,
    },
}

impl fmt::Display for Setting {
    /// The command that a user would type for it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl { key, value } if value.contains(' ') => {
                write!(f, "sysctl -w {key}='{value}'")
            }
            Self::Sysctl { key, value } => write!(f, "sysctl -w {key}={value}"),
            Self::Offload { device, feature, on } => {
                write!(f, "ethtool -K {device} {feature} {}", if *on { "on" } else { "off" })
            }
            Self::Mtu { device, mtu } => write!(f, "ip link set dev {device} mtu {mtu}"),
            Self::RootQdisc { device, kind } if kind == "default" => {
                write!(f, "tc qdisc del dev {device} root")
            }
            Self::RootQdisc { device, kind } => {
                write!(f, "tc qdisc replace dev {device} root {kind}")
            }
            Self::Neighbour { device, address, mac } => {
                write!(f, "ip neighbour replace {address} lladdr {mac} dev {device} nud permanent")
            }
            Self::Bridge { bridge, option, value } => {
                write!(f, "ip link set dev {bridge} type bridge {option} {value}")
            }
            Self::FlowControl { device, on } => {
                let word = if *on { "on" } else { "off" };
                write!(f, "ethtool -A {device} autoneg {word} rx {word} tx {word}")
            }
            Self::Rings { device, rx, tx } => write!(f, "ethtool -G {device} rx {rx} tx {tx}"),
            Self::Table { fill, device, gateway, .. } => write!(f, "add {fill} through {device} to {gateway}"),
        }
    }
}

/// A setting that was made, and the way back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Unique on its host.
    pub id: String,
    /// Which end it was made on.
    pub at: crate::Place,
    /// What was set.
    pub set: Setting,
    /// What was there before, exactly enough to set it back; for a queueing discipline the netlink
    /// attributes of the old one in base64.
    pub before: String,
    /// When, microseconds since the Unix epoch by the host's clock.
    pub made_unix_us: u64,
    /// Whether it is in force.
    pub in_force: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_reads_as_the_command_that_makes_it() {
        let sysctl = |key: &str, value: &str| Setting::Sysctl { key: key.into(), value: value.into() }.to_string();
        assert_eq!(
            sysctl("net.ipv4.tcp_rmem", "4096 131072 8388608"),
            "sysctl -w net.ipv4.tcp_rmem='4096 131072 8388608'"
        );
        assert_eq!(sysctl("net.ipv4.tcp_sack", "1"), "sysctl -w net.ipv4.tcp_sack=1");
        let offload = Setting::Offload { device: "eth0".into(), feature: "tso".into(), on: true };
        assert_eq!(offload.to_string(), "ethtool -K eth0 tso on");
        let device = || "eth0".to_owned();
        let neighbour = Setting::Neighbour {
            device: device(),
            address: IpAddr::from([198, 18, 0, 1]),
            mac: Mac([2, 0, 0, 0, 0, 1]),
        };
        assert_eq!(
            neighbour.to_string(),
            "ip neighbour replace 198.18.0.1 lladdr 02:00:00:00:00:01 dev eth0 nud permanent"
        );
        let bridge = Setting::Bridge { bridge: "br0".into(), option: "stp_state".into(), value: 0 };
        assert_eq!(bridge.to_string(), "ip link set dev br0 type bridge stp_state 0");
        let flow = Setting::FlowControl { device: device(), on: false };
        assert_eq!(flow.to_string(), "ethtool -A eth0 autoneg off rx off tx off");
        assert_eq!(Setting::Rings { device: device(), rx: 512, tx: 256 }.to_string(), "ethtool -G eth0 rx 512 tx 256");
    }
}
