//! Queueing disciplines that can be set. Source: kernel `include/uapi/linux/pkt_sched.h`, `net/sched/sch_tbf.c`, `sch_htb.c`.

use crate::netlink::{Builder, find, u32_at, u64_at};

/// `TC_H_ROOT`
pub(super) const ROOT: u32 = 0xffff_ffff;
/// Nanoseconds of a scheduler tick (`PSCHED_SHIFT` 6).
const TICK_NS: u64 = 64;

/// A queueing discipline with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Qdisc {
    /// `tbf`: a shaper with a queue of bytes.
    TokenBucket {
        /// Rate including Ethernet headers, if the device has any.
        rate_bps: u64,
        burst_bytes: u32,
        limit_bytes: u32,
    },
    /// `htb` with one class of that rate, and a `pfifo` below it.
    HierarchicalTokenBucket {
        /// Rate of the class, which is also its ceiling.
        rate_bps: u64,
        burst_bytes: u32,
        limit_packets: u32,
    },
    /// `pfifo`
    PacketFifo { limit_packets: u32 },
}

/// Counters of a queueing discipline since it was added. Source: kernel `include/uapi/linux/gen_stats.h`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QdiscCounters {
    /// `tbf`, `pfifo_fast`, …
    pub kind: String,
    pub packets: u64,
    /// Packets dropped; segments if it splits super-packets (`tbf_segment` in net/sched/sch_tbf.c).
    pub drops: u32,
    pub waiting: u32,
    /// How often it delayed a packet.
    pub overlimits: u32,
}

impl QdiscCounters {
    /// From `tcmsg` and attributes; `None`: not the root of that device.
    pub(super) fn of_root(payload: &[u8], index: u32) -> Option<Self> {
        let (basic, queue, packets64) = (1, 3, 8);
        if u32_at(payload, 4)? != index || u32_at(payload, 12)? != ROOT {
            return None;
        }
        let attributes = payload.get(20..)?;
        let statistics = find(attributes, libc::TCA_STATS2)?;
        // struct gnet_stats_basic: bytes, packets; struct gnet_stats_queue: qlen, backlog, drops, requeues, overlimits.
        let packets32 = statistics.find(basic).and_then(|value| u32_at(value.payload, 8)).map(u64::from);
        let packets = statistics.find(packets64).and_then(|value| u64_at(value.payload, 0)).or(packets32);
        let queue = statistics.find(queue).map(|value| value.payload)?;
        Some(Self {
            kind: find(attributes, libc::TCA_KIND)?.text()?,
            packets: packets?,
            drops: u32_at(queue, 8)?,
            waiting: u32_at(queue, 0)?,
            overlimits: u32_at(queue, 16)?,
        })
    }
}

pub(super) struct Part {
    pub(super) kind: u16,
    pub(super) payload: Vec<u8>,
}

/// `struct tcmsg`
pub(super) fn header(index: u32, handle: u32, parent: u32) -> [u8; 20] {
    let mut header = [0; 20];
    for (at, value) in [(4, index), (8, handle), (12, parent)] {
        header[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    header
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// `struct tc_ratespec`, with `TC_LINKLAYER_ETHERNET` so that no rate table is requested.
fn rate_spec(rate_bps: u64) -> Vec<u8> {
    let bytes_per_second = u32::try_from(rate_bps / 8).unwrap_or(u32::MAX);
    [&[0, 1, 0, 0, 0, 0, 0, 0][..], &bytes_per_second.to_ne_bytes()].concat()
}

fn ticks(bytes: u32, rate_bps: u64) -> u32 {
    let nanoseconds = u64::from(bytes) * 8 * 1_000_000_000 / rate_bps.max(1);
    u32::try_from(nanoseconds / TICK_NS).unwrap_or(u32::MAX)
}

fn part(kind: u16, header: &[u8; 20], name: &str, options: impl FnOnce(&mut Builder)) -> Part {
    let mut builder = Builder::with_header(header);
    builder.text(libc::TCA_KIND, name);
    options(&mut builder);
    // Options are of fixed, small sizes: they always fit.
    Part { kind, payload: builder.finish().unwrap_or_default() }
}

impl Qdisc {
    /// The kernel's name of the kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::TokenBucket { .. } => "tbf",
            Self::HierarchicalTokenBucket { .. } => "htb",
            Self::PacketFifo { .. } => "pfifo",
        }
    }

    /// The messages that put it at the root of a device.
    pub(super) fn parts(&self, index: u32) -> Vec<Part> {
        const HANDLE: u32 = 0x1_0000;
        const CLASS: u32 = 0x1_0001;
        let root = header(index, HANDLE, ROOT);
        let new = libc::RTM_NEWQDISC;
        match *self {
            Self::TokenBucket { rate_bps, burst_bytes, limit_bytes } => {
                let (parms, rate64, burst) = (1, 4, 6);
                vec![part(new, &root, self.kind(), |builder| {
                    builder.nest(libc::TCA_OPTIONS, |options| {
                        let buffers = words(&[limit_bytes, ticks(burst_bytes, rate_bps), 0]);
                        options.bytes(parms, &[rate_spec(rate_bps), rate_spec(0), buffers].concat());
                        options.u64(rate64, rate_bps / 8).u32(burst, burst_bytes);
                    });
                })]
            }
            Self::HierarchicalTokenBucket { rate_bps, burst_bytes, limit_packets } => {
                let (parms, init, rate64, ceil64) = (1, 2, 6, 7);
                let discipline = part(new, &root, self.kind(), |builder| {
                    // struct tc_htb_glob: version 3, rate2quantum, default class, debug, direct packets
                    builder.nest(libc::TCA_OPTIONS, |options| {
                        options.bytes(init, &words(&[3, 10, 1, 0, 0]));
                    });
                });
                let class = part(libc::RTM_NEWTCLASS, &header(index, CLASS, HANDLE), self.kind(), |builder| {
                    builder.nest(libc::TCA_OPTIONS, |options| {
                        let buffer = ticks(burst_bytes, rate_bps);
                        let rest = words(&[buffer, buffer, 60_000, 0, 0]);
                        options.bytes(parms, &[rate_spec(rate_bps), rate_spec(rate_bps), rest].concat());
                        options.u64(rate64, rate_bps / 8).u64(ceil64, rate_bps / 8);
                    });
                });
                let leaf = part(new, &header(index, 2 * HANDLE, CLASS), "pfifo", |builder| {
                    builder.bytes(libc::TCA_OPTIONS, &words(&[limit_packets]));
                });
                vec![discipline, class, leaf]
            }
            Self::PacketFifo { limit_packets } => vec![part(new, &root, self.kind(), |builder| {
                builder.bytes(libc::TCA_OPTIONS, &words(&[limit_packets]));
            })],
        }
    }
}
