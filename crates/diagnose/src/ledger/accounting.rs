//! What both ends counted of one flow, added up over its streams.

use super::reasons::{self, Counts};
use crate::layers::layers;
use narrows_model::load::udp::record::{UdpEndRecord, UdpStreamRecord, Unsent};
use narrows_model::load::udp::{DatagramSizes, UdpTrial};
use narrows_model::{Direction, FactKey, Flow, Place, Snapshot, keys};

/// The raw figures of a ledger.
#[derive(Debug, Clone, Default)]
pub(crate) struct Accounting {
    pub(crate) flow: Flow,
    /// Handed over, refused ones included, less what the receiver did not count any more.
    pub(crate) offered: u64,
    /// Sent when the receiver may have stopped counting.
    pub(crate) uncounted: u64,
    /// Whether the sender does not report what its socket refused.
    pub(super) refusals_unknown: bool,
    /// Of them, those that the socket took.
    pub(crate) accepted: u64,
    pub(crate) unsent: Unsent,
    pub(crate) delivered: u64,
    pub(crate) duplicated: u64,
    /// What the receiving sockets dropped; `None` where one does not tell.
    pub(crate) socket_drops: Option<u64>,
    /// Whether the sender hands batches down as one.
    pub(crate) segmented: bool,
    /// Whether the receiving socket takes batches as one.
    pub(crate) coalesced: bool,
    /// Datagrams of the largest batch that the kernel makes.
    pub(crate) batch_most: u64,
    /// Payload of every datagram, where they are all of one size.
    pub(crate) payload: Option<u64>,
    /// Whether segments of TCP are counted, and not datagrams.
    pub(crate) tcp: bool,
    /// Whether the addresses are IPv6.
    pub(crate) ipv6: bool,
    /// Whether the trial loads the other way, too.
    pub(crate) both_ways: bool,
    /// Whether both ends are hosts of one kernel, as in a lab.
    pub(crate) one_kernel: bool,
    /// The lowest interface of the sender, where others are above it.
    pub(crate) lowest: Option<String>,
    pub(super) sender: Counts,
    pub(super) receiver: Counts,
}

/// `UDP_MAX_SEGMENTS` (include/linux/udp.h, since Linux 6.9; 64 before).
const BATCH_MOST: u64 = 128;
/// Bytes of the largest packet that the kernel holds as one.
const PACKET_MOST: u64 = 65_535;

/// The mark of the running kernel, from the snapshots of a trial.
fn kernel(after: &Snapshot) -> Option<&str> {
    after.text(keys::HOST_BOOT)
}

/// See [`Accounting::lowest`].
pub(super) fn lowest(after: &Snapshot) -> Option<String> {
    layers(after).pop().map(|layer| layer.name.to_owned())
}

fn streams(end: &UdpEndRecord, flow: Flow) -> impl Iterator<Item = &UdpStreamRecord> {
    end.streams.iter().filter(move |stream| stream.flow == flow)
}

impl Accounting {
    /// The figures of a flow; `None` where the trial does not have it.
    pub(crate) fn of(trial: UdpTrial<'_>, flow: Flow) -> Option<Self> {
        let (sending, receiving) = (trial.end(flow.sender())?, trial.end(flow.receiver())?);
        let mut accounting = Self {
            flow,
            sender: sending.after.counts_since(&sending.before),
            receiver: receiving.after.counts_since(&receiving.before),
            both_ways: trial.plan.direction == Direction::Both,
            lowest: lowest(&sending.after),
            one_kernel: kernel(&sending.after).is_some_and(|mark| kernel(&receiving.after) == Some(mark)),
            ..Self::empty(flow)
        };
        let (mut smallest, mut largest) = (u64::MAX, 0);
        for stream in streams(sending, flow) {
            let Some(sent) = &stream.sent else { continue };
            accounting.accepted = accounting.accepted.saturating_add(sent.datagrams);
            accounting.offered = accounting.offered.saturating_add(sent.datagrams).saturating_add(sent.unsent.total());
            accounting.unsent = accounting.unsent.plus(sent.unsent);
            accounting.refusals_unknown |= !sent.counts_calls() && sent.unsent.total() == 0;
            accounting.segmented |= stream.method.contains("segment");
            accounting.ipv6 |= stream.remote.starts_with('[');
            smallest = smallest.min(u64::from(stream.datagram_bytes).max(1));
            largest = largest.max(u64::from(stream.datagram_bytes));
        }
        let mut drops = Some(0_u64);
        for stream in streams(receiving, flow) {
            let Some(got) = &stream.received else { continue };
            accounting.delivered = accounting.delivered.saturating_add(got.distinct);
            accounting.duplicated = accounting.duplicated.saturating_add(got.duplicates);
            accounting.uncounted = accounting.uncounted.saturating_add(got.uncounted);
            accounting.coalesced |= stream.method.contains("gro");
            // A socket tells of its drops with a later datagram: the last ones may be in the samples alone.
            let sampled = stream
                .samples
                .last()
                .and_then(|sample| sample.socket_drops.max(sample.memory.map(|memory| u64::from(memory.drops))));
            drops = drops.zip(got.socket_drops.max(sampled)).map(|(sum, n)| sum.saturating_add(n));
        }
        accounting.accepted = accounting.accepted.saturating_sub(accounting.uncounted);
        accounting.offered = accounting.offered.saturating_sub(accounting.uncounted);
        accounting.socket_drops = drops.filter(|_| streams(receiving, flow).next().is_some());
        let one_size = match &trial.plan.sizes {
            DatagramSizes::Largest => true,
            DatagramSizes::Sequence(sizes) => sizes.iter().all(|size| Some(size) == sizes.first()),
        };
        accounting.payload = (one_size && smallest == largest).then_some(largest);
        accounting.batch_most = (PACKET_MOST / smallest).clamp(1, BATCH_MOST);
        streams(sending, flow).any(|stream| stream.sent.is_some()).then_some(accounting)
    }

    /// Nothing sent, nothing counted.
    pub(super) fn empty(flow: Flow) -> Self {
        Self { flow, batch_most: 1, ..Self::default() }
    }

    /// By how much a counter of the sending host grew.
    pub(crate) fn sent(&self, key: impl AsRef<str>) -> Option<u64> {
        self.sender.get(key.as_ref()).copied()
    }

    /// By how much a counter of each interface below that of the route grew, on the sending host.
    pub(crate) fn sent_below(&self, family: FactKey) -> impl Iterator<Item = u64> {
        let below = self.sender.iter().filter(move |(key, _)| family.covers(key) && !key.ends_with(".0"));
        below.map(|(_, count)| *count)
    }

    /// By how much a counter of the receiving host grew.
    pub(crate) fn got(&self, key: impl AsRef<str>) -> Option<u64> {
        self.receiver.get(key.as_ref()).copied()
    }

    /// Whether an end gave no counters at all.
    pub(crate) fn silent(&self, place: Place) -> bool {
        if place == self.flow.sender() { self.sender.is_empty() } else { self.receiver.is_empty() }
    }

    /// Datagrams that one packet of the sender may be.
    pub(crate) const fn batch_sent(&self) -> u64 {
        if self.segmented { self.batch_most } else { 1 }
    }

    /// Datagrams that one packet may be on its way through the receiver.
    pub(super) const fn batch_got(&self) -> u64 {
        if self.segmented || self.coalesced { self.batch_most } else { 1 }
    }

    /// Headers of IP and of what it carries in front of the payload of each packet; of TCP with timestamps, which nearly all connections have.
    pub(super) const fn header_bytes(&self) -> u64 {
        (if self.ipv6 { 40 } else { 20 }) + (if self.tcp { 32 } else { 8 })
    }

    /// A counter of IP's fragments of the sender or the receiver, by family.
    pub(crate) fn fragments(&self, sender: bool, name: &str) -> Option<u64> {
        let key = if self.ipv6 { format!("snmp6.Ip6{name}") } else { format!("snmp.Ip.{name}") };
        if sender { self.sent(&key) } else { self.got(&key) }
    }

    /// Fragments that a datagram was sent in; 1 where none were.
    pub(crate) fn fragments_each(&self) -> u64 {
        let (whole, parts) = (self.fragments(true, "FragOKs"), self.fragments(true, "FragCreates"));
        match (whole, parts) {
            // A few fragmented packets are other traffic's.
            (Some(whole), Some(parts)) if whole.saturating_mul(2) > self.accepted && whole > 0 => {
                parts.div_ceil(whole).max(1)
            }
            _ => 1,
        }
    }

    /// Datagrams of UDP that reached IP of the receiver, each segment of a batch counted: by their marks of ECN, less what
    /// TCP and ICMP took.
    pub(crate) fn arrivals(&self) -> Option<u64> {
        if self.tcp {
            return None;
        }
        let sum = ["NoECTPkts", "ECT0Pkts", "ECT1Pkts", "CEPkts"].iter().try_fold(0_u64, |sum, name| {
            let key = if self.ipv6 { format!("snmp6.Ip6In{name}") } else { format!("netstat.IpExt.In{name}") };
            Some(sum.saturating_add(self.got(&key)?))
        })?;
        let icmp = if self.ipv6 { keys::SNMP6_ICMP6_IN_MSGS } else { keys::SNMP_ICMP_IN_MSGS };
        let arrivals =
            sum.saturating_sub(self.got(keys::SNMP_TCP_IN_SEGS)?).saturating_sub(self.got(icmp).unwrap_or(0));
        // A batch that came from a TUN device or a hypervisor does not know its number of segments, and is counted once.
        (arrivals >= self.delivered).then_some(arrivals)
    }

    /// A counter of UDP of the receiver, by family. `MemErrors` of IPv6 has its own name as well.
    pub(super) fn udp(&self, name: &str) -> Option<u64> {
        if self.ipv6 { self.got(format!("snmp6.Udp6{name}")) } else { self.got(format!("snmp.Udp.{name}")) }
    }

    /// What an end dropped by a reason of its drop watch; 0 where the watch saw none, `None` as of [`reasons::own`].
    pub(crate) fn reason(&self, at_sender: bool, name: &str) -> Option<u64> {
        reasons::own(if at_sender { &self.sender } else { &self.receiver }, name)
    }

    /// Packets that IP of the receiver received and its filter dropped, by what is missing; `None` where that is not known.
    pub(super) fn received_and_dropped(&self) -> Option<u64> {
        reasons::received_and_dropped(&self.receiver)
    }

    /// Packets that a filter of the sender kept from being sent; `None` where that is not known.
    pub(super) fn unsent_by_filter(&self) -> Option<u64> {
        reasons::unsent_by_filter(&self.sender, self.ipv6)
    }

    /// Packets that the receiver's backlog refused; `None` where that cannot be read.
    pub(super) fn backlog(&self) -> Option<u64> {
        reasons::backlog(&self.receiver)
    }
}
