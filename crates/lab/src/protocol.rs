//! Messages between the process that holds a lab and its clients: one line of JSON each way.

use crate::agent::AgentStatus;
use crate::host::PortStatus;
use crate::{ActiveFault, Lab, LabSpec, Site, Topology};
use narrows_model::lab::{HostCounters, Impairment, PathCounters};
use narrows_model::{Direction, Family, Flow};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The longest line, in bytes.
pub const LINE_MAX: u64 = 1 << 20;

/// The order that the holder reads from its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Where to write the lab's state.
    pub directory: std::path::PathBuf,
    /// Whether to become root of a user namespace first.
    pub user_namespace: bool,
    pub spec: LabSpec,
}

/// The state file of a lab that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub name: String,
    /// The process that holds it.
    pub pid: u32,
    /// When that process began, in clock ticks since boot: an id alone may have been reused.
    pub started: u64,
    pub hosts: Vec<HostState>,
}

/// How to enter a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostState {
    pub name: String,
    /// The holder's descriptors of its namespaces: network, UTS, mount.
    pub descriptors: [i32; 3],
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Request {
    Status,
    /// Replaces the path in these directions.
    Set {
        direction: Direction,
        /// The path without its faults.
        impairment: Impairment,
    },
    Fault {
        id: String,
        at: Site,
        /// As text; absent: the default.
        value: Option<String>,
        /// For a fault of the path: its direction.
        #[serde(default = "both")]
        direction: Direction,
    },
    /// Removes a fault, or `all` of them.
    Unfault {
        id: String,
        at: Option<Site>,
    },
    Down,
}

const fn both() -> Direction {
    Direction::Both
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Reply {
    /// To `status`, `set`, and when the lab is up.
    Status(Box<Status>),
    /// To `fault` and `unfault`: the faults that were injected or removed.
    Faults {
        faults: Vec<ActiveFault>,
    },
    /// To `down`: the lab ends.
    Gone,
    Error {
        text: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub name: String,
    /// The process that holds it.
    pub pid: u32,
    pub topology: Topology,
    /// Its hosts, from the client to the server.
    pub hosts: Vec<HostStatus>,
    /// The path from the client to the server, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<DirectionStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<DirectionStatus>,
    /// The SNMP agents of its hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentStatus>,
    /// The faults in force.
    pub faults: Vec<ActiveFault>,
    /// Restrictions and problems, one sentence each.
    pub cautions: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    pub name: String,
    /// The device towards the path.
    pub device: String,
    pub addresses: Vec<IpAddr>,
    /// Its packet counters; absent if the kernel does not provide them, in which case a caution says why.
    #[serde(default)]
    pub counters: Option<HostCounters>,
    /// All its interfaces, if it has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortStatus>,
}

/// One direction of the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DirectionStatus {
    /// Its impairment, faults included.
    pub impairment: Impairment,
    pub counters: PathCounters,
}

impl Status {
    /// The status of a lab in this process.
    pub fn of(lab: &Lab) -> Self {
        let mut silent = Vec::new();
        let mut counters = |host: &crate::Host| match host.counters() {
            Ok(counters) => Some(counters),
            Err(error) => {
                silent.push(format!("the drops of {} are unknown: {error}", host.name()));
                None
            }
        };
        let hosts = lab.hosts().iter().map(|host| (host, counters(host))).collect::<Vec<_>>();
        let has_path = lab.spec().topology.has_path();
        let direction =
            |flow| has_path.then(|| DirectionStatus { impairment: lab.impairment(flow), counters: lab.counters(flow) });
        let mut cautions: Vec<String> = lab.hosts().iter().flat_map(|host| host.cautions().to_vec()).collect();
        cautions.append(&mut silent);
        cautions.extend(lab.failure().map(|failure| format!("the path has stopped: {failure}")));
        Self {
            name: lab.spec().name.clone(),
            pid: std::process::id(),
            topology: lab.spec().topology,
            hosts: hosts
                .into_iter()
                .map(|(host, counters)| HostStatus {
                    counters,
                    // If the counters of the first are not available, a caution says so.
                    ports: host.ports().unwrap_or_default(),
                    name: host.name().to_owned(),
                    device: host.device().to_owned(),
                    addresses: [Family::Ipv4, Family::Ipv6]
                        .into_iter()
                        .filter_map(|family| host.address(family))
                        .collect(),
                })
                .collect(),
            up: direction(Flow::Up),
            down: direction(Flow::Down),
            agents: lab.agents().iter().map(|agent| agent.status().clone()).collect(),
            faults: lab.faults(),
            cautions,
        }
    }
}
