//! The words of the emulated network: what a path does to packets, per direction.

use serde::{Deserialize, Serialize};

/// What an emulated path does to the packets of one direction. All at their defaults: nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Impairment {
    /// Bits per second on the wire, `overhead_bytes` counted with each packet; 0 = not limited.
    pub rate_bps: u64,
    /// Bytes counted with each packet beyond its IP length: 38 is Ethernet's header, FCS, preamble and gap.
    pub overhead_bytes: u32,
    /// Depth of the token bucket in front of the rate: this many bytes pass at once after a silence (a shaper); 0 = a plain link.
    pub burst_bytes: u64,
    pub delay_us: u64,
    /// Random addition to the delay, even from 0 to this; packets keep their order unless `reorder` says otherwise.
    pub jitter_us: u64,
    /// Probability that a packet is lost, independent of the others.
    pub loss: f64,
    /// Gilbert–Elliott: probability per packet to go from the good to the bad state.
    pub burst_loss_enter: f64,
    /// Gilbert–Elliott: probability per packet to go back.
    pub burst_loss_leave: f64,
    /// Gilbert–Elliott: probability of loss in the bad state.
    pub burst_loss: f64,
    /// Probability that a packet skips the delay and so overtakes others.
    pub reorder: f64,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Queue in front of the rate, in bytes, `overhead_bytes` included; 0 = as `queue_packets` says.
    pub queue_bytes: u64,
    /// Queue in front of the rate, in packets (of wire size); 0 = not limited in packets. Both 0 with a rate: 1000 packets.
    pub queue_packets: u64,
    /// A policer: packets above this rate are dropped, none is queued; 0 = none.
    pub police_bps: u64,
    pub police_burst_bytes: u64,
    /// Packets above this IP length are dropped (and, with `mtu_icmp`, answered with *too big*); 0 = no limit.
    pub mtu: u32,
    /// Whether a packet that is too big is answered with ICMP.
    pub mtu_icmp: bool,
    /// Probability that a packet arrives with a bit of it flipped, so that its transport checksum is wrong.
    pub corrupt: f64,
    /// Packets are gathered and leave together, once in so many microseconds, as from a device that coalesces its
    /// interrupts for long or a guest that is not scheduled; 0 = each leaves when it is due.
    pub gather_us: u64,
    /// Whether the queue in front of the rate is a CoDel (RFC 8289: 5 ms in 100 ms).
    pub codel: bool,
    /// Nothing passes for so long …
    pub outage_us: u64,
    /// … once in so many microseconds; 0 = never.
    pub outage_each_us: u64,
    /// Whether each packet is handed over by itself, and never as part of a super-packet.
    pub single_packets: bool,
}

impl Impairment {
    /// The limit of a queue in front of a rate where none is given.
    pub const DEFAULT_QUEUE_PACKETS: u64 = 1000;
}

impl Default for Impairment {
    fn default() -> Self {
        Self {
            rate_bps: 0,
            overhead_bytes: 38,
            burst_bytes: 0,
            delay_us: 0,
            jitter_us: 0,
            loss: 0.0,
            burst_loss_enter: 0.0,
            burst_loss_leave: 0.0,
            burst_loss: 0.0,
            reorder: 0.0,
            duplicate: 0.0,
            queue_bytes: 0,
            queue_packets: 0,
            police_bps: 0,
            police_burst_bytes: 0,
            mtu: 0,
            mtu_icmp: true,
            corrupt: 0.0,
            gather_us: 0,
            codel: false,
            outage_us: 0,
            outage_each_us: 0,
            single_packets: false,
        }
    }
}

/// What the emulator did in one direction: the ground truth of the lab. `taken = delivered + every drop + waiting` for
/// packets of wire size (duplicates counted apart).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct PathCounters {
    /// Packets taken from the sending host.
    pub taken_packets: u64,
    /// Their IP bytes.
    pub taken_bytes: u64,
    /// Packets given to the receiving host, duplicates left out.
    pub delivered_packets: u64,
    /// Their IP bytes.
    pub delivered_bytes: u64,
    pub dropped_loss: u64,
    /// Dropped since the queue was full.
    pub dropped_queue: u64,
    pub dropped_policer: u64,
    /// Dropped since they were too big.
    pub dropped_mtu: u64,
    /// Refused by the receiving host's device.
    pub dropped_device: u64,
    /// Delivered a second time.
    pub duplicated: u64,
    /// Delivered before an earlier one.
    pub reordered: u64,
    /// Delivered with a flipped bit, second deliveries included.
    #[serde(default)]
    pub corrupted: u64,
    /// In the queue or under way at this instant.
    pub waiting_packets: u64,
    /// The deepest that the queue was, in bytes.
    pub queue_bytes_max: u64,
}

/// What a host of the lab did to packets where the path does not see it: the ground truth of the faults at a host, since the
/// host was made. What the kernel hands on as one super-packet counts as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct HostCounters {
    /// Packets that the device towards the path received.
    pub rx_packets: u64,
    /// Of these, dropped before a protocol saw them: the softnet backlog was full (`rx_dropped`).
    pub rx_dropped: u64,
    /// Packets that the device sent.
    pub tx_packets: u64,
    /// Dropped by the device for want of room in its ring (`tx_dropped`).
    pub tx_dropped: u64,
    /// The queueing discipline at the root of the device, where there is one.
    pub qdisc: Option<String>,
    /// Packets that it dropped since it was put there, each segment counted where it cuts super-packets.
    pub qdisc_drops: u64,
    /// Packets that the lab's own rule dropped on their way in, since it was put there; `None`: there is no such rule.
    pub filter_input_drops: Option<u64>,
    /// On their way out.
    pub filter_output_drops: Option<u64>,
    /// On their way through a host that forwards.
    pub filter_forward_drops: Option<u64>,
}
