//! The counters and the state of the hops, read right before and right after each load.

mod narrows;

use crate::hosts::HostAccess;
use narrows::Served;
use narrows_collect::{Missing, device_state, networks_known};
use narrows_forwarding::data::{CounterSource, HopPlan};
use narrows_forwarding::rip;
use narrows_lab::Labs;
use narrows_model::host::device_state::DeviceState;
use narrows_model::host::hop::{DropCount, HopCount};
#[cfg(feature = "snmp")]
use narrows_model::host::snmp::SnmpAgent;
use narrows_runner::port::counters;
use narrows_sys::{clock, netns};
use narrows_wire::api::frames::{LinkPackets, LinksAnswer};
#[cfg(feature = "snmp")]
use std::time::Duration;
use std::time::Instant;

/// Packets of its own that a hop may count besides: ARP, neighbour discovery, spanning tree.
const OWN_PACKETS: u64 = 8;
/// Packets a second of a session with a hop, where they pass the devices that are read: heartbeats of both sides, pings and
/// acknowledgements.
const SESSION_PACKETS_A_SECOND: u64 = 50;

/// A hop whose counters can be read.
#[derive(Debug)]
pub(super) struct Hop {
    plan: HopPlan,
    reader: Reader,
    before: Option<Reading>,
    began: Instant,
}

#[derive(Debug)]
enum Reader {
    /// A network namespace of this host, by its file.
    Network(String),
    /// A host of a lab that is up.
    Lab { lab: String, host: String },
    /// A host that runs `narrows serve`.
    Served(Box<Served>),
    #[cfg(feature = "snmp")]
    Snmp { agent: Box<narrows_snmp::Agent>, input: narrows_snmp::InterfaceName, output: narrows_snmp::InterfaceName },
    /// Why it cannot be read.
    Silent(String),
}

/// One reading of the counters.
#[derive(Debug, Clone)]
enum Reading {
    Links {
        input: LinkPackets,
        output: LinkPackets,
        drops: Vec<DropCount>,
        /// Whether the packets of the reading itself are among them.
        counts_itself: bool,
    },
    #[cfg(feature = "snmp")]
    Snmp { input: Box<narrows_snmp::PortCounters>, output: Box<narrows_snmp::PortCounters> },
}

impl Reading {
    fn of(answer: LinksAnswer) -> Result<Self, String> {
        match answer {
            LinksAnswer::Read { input, output, drops, counts_itself, .. } => {
                Ok(Self::Links { input, output, drops, counts_itself })
            }
            LinksAnswer::Missing { why } => Err(why),
        }
    }
}

/// What is known to have passed a hop, for agents that answer from memory.
#[derive(Debug, Clone, Copy, Default)]
#[cfg_attr(not(feature = "snmp"), allow(dead_code))]
pub(super) struct Passed {
    /// Frames that the receiver got, forth and back.
    pub(super) received: [u64; 2],
    /// The smallest and the largest frame with FCS.
    pub(super) bytes: [u32; 2],
}

impl Reader {
    fn of(hop: &HopPlan, hosts: &HostAccess) -> Self {
        match &hop.source {
            CounterSource::Namespace { name } => match (name.strip_prefix("pid:"), name.strip_prefix("lab:")) {
                (Some(pid), _) => Self::Network(format!("/proc/{pid}/ns/net")),
                (None, Some(lab)) => match lab.split_once('/') {
                    Some((lab, host)) => Self::Lab { lab: lab.to_owned(), host: host.to_owned() },
                    None => Self::Silent(format!("invalid lab host `{name}`; write lab:NAME/HOST")),
                },
                (None, None) if name.starts_with('/') => Self::Network(name.clone()),
                (None, None) => Self::Network(format!("/run/netns/{name}")),
            },
            CounterSource::Narrows { host, token_file } => {
                Self::Served(Box::new(Served::open(host, token_file.as_deref(), hosts)))
            }
            #[cfg(feature = "snmp")]
            CounterSource::Snmp(agent) => Self::snmp(agent, hop),
            #[cfg(not(feature = "snmp"))]
            CounterSource::Snmp(_) => Self::Silent("this build lacks the feature snmp".to_owned()),
        }
    }

    #[cfg(feature = "snmp")]
    fn snmp(of: &SnmpAgent, hop: &HopPlan) -> Self {
        use narrows_snmp::Agent;
        let open = || {
            let agent = Agent::open(of, Duration::from_secs(2))?;
            let (input, output) = (agent.interface(&hop.input)?, agent.interface(&hop.output)?);
            Ok::<_, narrows_snmp::SnmpError>(Self::Snmp { agent: Box::new(agent), input, output })
        };
        open().unwrap_or_else(|error| Self::Silent(error.to_string()))
    }

    /// What the counters are of.
    fn words(&self) -> String {
        match self {
            #[cfg(feature = "snmp")]
            Self::Snmp { agent, .. } => format!("IF-MIB of {}", agent.address()),
            Self::Silent(_) => String::new(),
            _ => format!("counters of {}", self.state_words()),
        }
    }

    /// What the state is of.
    fn state_words(&self) -> String {
        match self {
            Self::Network(path) => format!("the kernel ({path})"),
            Self::Lab { lab, host } => format!("the kernel ({host} of the lab {lab})"),
            Self::Served(served) => format!("the kernel of {}, through narrows", served.host()),
            #[cfg(feature = "snmp")]
            Self::Snmp { agent, .. } => format!("sysUpTime and ifLastChange of {}", agent.address()),
            Self::Silent(_) => String::new(),
        }
    }

    /// Runs `read` in the hop's own network, where that is of this host.
    fn within<T: Send>(&self, read: impl FnOnce() -> Result<T, Missing> + Send) -> Result<T, String> {
        let read = match self {
            Self::Network(path) => {
                netns::in_network_at(path, || Ok::<_, narrows_sys::Error>(read())).map_err(|error| error.to_string())?
            }
            Self::Lab { lab, host } => Labs::of_user().within(lab, host, read).map_err(|error| error.to_string())?,
            _ => return Err("its network is not on this host".to_owned()),
        };
        read.map_err(|missing| missing.to_string())
    }
}

/// How much each reason grew, those that did not left out.
fn grown(before: &[DropCount], after: &[DropCount]) -> Vec<DropCount> {
    let of = |reason: &str| before.iter().find(|drop| drop.reason == reason).map_or(0, |drop| drop.frames);
    let grew = |drop: &DropCount| DropCount {
        reason: drop.reason.clone(),
        frames: drop.frames.saturating_sub(of(&drop.reason)),
    };
    after.iter().map(grew).filter(|drop| drop.frames > 0).collect()
}

impl Hop {
    pub(super) fn of(plan: &HopPlan, hosts: &HostAccess) -> Self {
        Self { plan: plan.clone(), reader: Reader::of(plan, hosts), before: None, began: clock::now() }
    }

    pub(super) fn name(&self) -> &str {
        &self.plan.name
    }

    pub(super) fn output(&self) -> &str {
        &self.plan.output
    }

    /// Runs `work` in its network, where that is of this machine.
    pub(super) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, String> {
        self.reader.within(|| Ok(work()))
    }

    pub(super) const fn is_under_test(&self) -> bool {
        self.plan.under_test
    }

    /// What its state is read from.
    pub(super) fn state_words(&self) -> String {
        self.reader.state_words()
    }

    /// Its state now, or why it is not known.
    pub(super) fn state(&mut self) -> Result<DeviceState, String> {
        let (input, output) = (self.plan.input.as_str(), self.plan.output.as_str());
        match &mut self.reader {
            #[cfg(feature = "snmp")]
            Reader::Snmp { agent, input, output } => {
                agent.device_state(&[input, output]).map_err(|error| error.to_string())
            }
            Reader::Served(served) => served.state(input, output),
            Reader::Silent(why) => Err(why.clone()),
            kernel => kernel.within(|| device_state(&[input, output])),
        }
    }

    /// How many of the networks of a routing update its kernel has routes to; `None`: its kernel cannot be read.
    pub(super) fn networks_known(&self, count: u32) -> Option<Result<u64, String>> {
        let networks: Vec<_> = rip::networks(count).collect();
        matches!(self.reader, Reader::Network(_) | Reader::Lab { .. })
            .then(|| self.reader.within(|| networks_known(&networks, rip::PREFIX_BITS)))
    }

    fn read(&mut self) -> Result<Reading, String> {
        let (input, output) = (self.plan.input.as_str(), self.plan.output.as_str());
        match &mut self.reader {
            #[cfg(feature = "snmp")]
            Reader::Snmp { agent, input, output } => {
                let read = |interface| agent.counters(interface).map(Box::new).map_err(|error| error.to_string());
                Ok(Reading::Snmp { input: read(input)?, output: read(output)? })
            }
            Reader::Served(served) => Reading::of(served.ask(input, output, false)?),
            Reader::Silent(why) => Err(why.clone()),
            kernel => kernel.within(|| counters(input, output, false, None)).and_then(Reading::of),
        }
    }

    pub(super) fn begin(&mut self) {
        self.before = self.read().ok();
        self.began = clock::now();
    }

    /// After it: one entry for each direction.
    pub(super) fn end(&mut self, directions: usize, passed: &Passed) -> Vec<HopCount> {
        let counted = match self.before.take() {
            Some(before) => {
                let settled = self.settled(&before, passed);
                settled.and_then(|after| self.counts(&before, &after, passed))
            }
            None => Err(match self.read() {
                Err(why) => why,
                Ok(_) => "its counters were not read before the load".to_owned(),
            }),
        };
        let mut counts = counted.unwrap_or_else(|why| vec![self.silent(&why), self.silent(&why)]);
        counts.truncate(directions);
        counts
    }

    fn silent(&self, why: &str) -> HopCount {
        HopCount {
            hop: self.plan.name.clone(),
            input: None,
            output: None,
            drops: Vec::new(),
            uncertainty: 0,
            source: self.reader.words(),
            silent: Some(why.to_owned()),
            anomaly: None,
        }
    }

    #[cfg(not(feature = "snmp"))]
    fn settled(&mut self, _: &Reading, _: &Passed) -> Result<Reading, String> {
        self.read()
    }

    /// Agents answer from memory for seconds: they are asked until they have seen what passed.
    #[cfg(feature = "snmp")]
    fn settled(&mut self, before: &Reading, passed: &Passed) -> Result<Reading, String> {
        use narrows_snmp::Settling;
        let (Reader::Snmp { agent, input, output }, Reading::Snmp { input: first, output: second }) =
            (&self.reader, before)
        else {
            return self.read();
        };
        let settle = |interface, before: &narrows_snmp::PortCounters, min_in, min_out| {
            let settling = Settling {
                before: before.clone(),
                min_in,
                min_out,
                every: Duration::from_millis(250),
                wait: Duration::from_secs(16),
            };
            agent.settle(interface, &settling).map(Box::new).map_err(|error| error.to_string())
        };
        let [forth, back] = passed.received;
        Ok(Reading::Snmp { input: settle(input, first, forth, back)?, output: settle(output, second, back, forth)? })
    }

    #[cfg_attr(not(feature = "snmp"), allow(unused_variables, irrefutable_let_patterns))]
    fn counts(&mut self, before: &Reading, after: &Reading, passed: &Passed) -> Result<Vec<HopCount>, String> {
        Ok(match (before, after) {
            (
                Reading::Links { input, output, drops, counts_itself },
                Reading::Links { input: input_after, output: output_after, drops: drops_after, .. },
            ) => {
                let own =
                    if *counts_itself { SESSION_PACKETS_A_SECOND * (self.began.elapsed().as_secs() + 1) } else { 0 };
                let grew = |before: u64, after: u64| {
                    after.checked_sub(before).ok_or("its counters decreased: it or its interfaces were recreated")
                };
                let count = |input: u64, output: u64| HopCount {
                    hop: self.plan.name.clone(),
                    input: Some(input),
                    output: Some(output),
                    drops: grown(drops, drops_after),
                    uncertainty: OWN_PACKETS + own,
                    source: self.reader.words(),
                    silent: None,
                    anomaly: None,
                };
                vec![
                    count(
                        grew(input.rx_packets, input_after.rx_packets)?,
                        grew(output.tx_packets, output_after.tx_packets)?,
                    ),
                    count(
                        grew(output.rx_packets, output_after.rx_packets)?,
                        grew(input.tx_packets, input_after.tx_packets)?,
                    ),
                ]
            }
            #[cfg(feature = "snmp")]
            (Reading::Snmp { input, output }, Reading::Snmp { input: input_after, output: output_after }) => {
                use narrows_snmp::{Growth, hop_count, sizes};
                let (first, second) = (Growth::between(input, input_after), Growth::between(output, output_after));
                let agent = self.reader.words();
                let mut counts = vec![
                    hop_count(&self.plan.name, &agent, &first, &second),
                    hop_count(&self.plan.name, &agent, &second, &first),
                ];
                // Frames and octets of one interface that do not go together: one of the two is no count of frames.
                let unfit =
                    [(&first, &first.input), (&second, &second.output)].into_iter().find_map(|(growth, side)| {
                        Some(format!("{}: {}", growth.interface, sizes::unfit(side, passed.bytes)?))
                    });
                if let (Some(why), Some(count)) = (unfit, counts.first_mut())
                    && count.silent.is_none()
                {
                    count.source = format!("{} ({why})", count.source);
                }
                counts
            }
            #[cfg(feature = "snmp")]
            _ => vec![self.silent("its counters come from two sources"); 2],
        })
    }
}
