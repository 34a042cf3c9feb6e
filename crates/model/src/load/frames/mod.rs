//! Raw frames: what a generator is to send, and what generator and receiver saw. Frame sizes are bytes of the whole Ethernet
//! frame with its FCS, as RFC 1242 and RFC 2544 count them; on the wire each takes [`OVERHEAD_BYTES`] more.

mod records;

use crate::load::kind::{within, within_if};
pub use crate::words::mac::Mac;
use crate::words::place::Family;
use crate::words::words;
pub use records::{
    FlowGot, FrameInterval, FrameTrial, GenerateRecord, GotSoFar, ReceiveRecord, SentSoFar, StampClock, StreamGot,
    StreamSent,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The stream whose number frames to the hardware broadcast address carry, whichever worker sent them.
pub const BROADCAST_STREAM: u16 = 63;

/// Preamble, start of frame and inter-frame gap (IEEE 802.3): on the wire beside each frame.
pub const OVERHEAD_BYTES: u32 = 20;
/// The frame check sequence, which the device adds and no program sees.
pub const FCS_BYTES: u32 = 4;
/// The smallest Ethernet frame.
pub const MIN_FRAME_BYTES: u32 = 64;
/// The largest frame that is sent: the common jumbo frame.
pub const MAX_FRAME_BYTES: u32 = 9216;
/// What each frame carries so that its receiver knows it: mark, stream, sequence, time.
pub const SIGNATURE_BYTES: u32 = 16;

/// One side of the flows: a range of addresses and a range of ports, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Endpoints {
    /// The first and the last address, of one family.
    pub addresses: [IpAddr; 2],
    /// The first and the last port.
    pub ports: [u16; 2],
    /// The addresses are 2^n apart: 0 for every one of the range, 8 for one of each network of 24 bits (IPv4), 64 for one of
    /// each network of 64 bits (IPv6).
    #[serde(default, skip_serializing_if = "Endpoints::is_every")]
    pub stride_bits: u8,
}

impl Endpoints {
    /// A single address, with a range of ports.
    pub const fn one(address: IpAddr, ports: [u16; 2]) -> Self {
        Self { addresses: [address; 2], ports, stride_bits: 0 }
    }

    /// One address of each of so many networks in a row, of 24 bits in IPv4 and of 64 bits in IPv6 (RFC 2544, section 12; RFC
    /// 5180, section 7), from that address on; `None` where the family has not so many.
    pub fn networks(first: IpAddr, networks: u32, ports: [u16; 2]) -> Option<Self> {
        let more = networks.saturating_sub(1);
        let (stride_bits, last) = match first {
            IpAddr::V4(first) => {
                let more = more.checked_mul(1 << 8)?;
                (8, IpAddr::from(Ipv4Addr::from_bits(first.to_bits().checked_add(more)?)))
            }
            IpAddr::V6(first) => {
                let more = u128::from(more) << 64;
                (64, IpAddr::from(Ipv6Addr::from_bits(first.to_bits().checked_add(more)?)))
            }
        };
        Some(Self { addresses: [first, last], ports, stride_bits: if more == 0 { 0 } else { stride_bits } })
    }

    const fn is_every(bits: &u8) -> bool {
        *bits == 0
    }
}

/// In which order the flows take turns, frame by frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Walk {
    /// Source port, then source address, then destination port, then destination address, like the wheels of an odometer.
    #[default]
    Odometer,
    /// Pseudo-randomly, each frame by itself (RFC 4814, section 4).
    Random {
        /// The same seed gives the same walk.
        seed: u64,
    },
}

/// What follows IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A UDP datagram.
    #[default]
    Udp,
    /// A TCP segment with SYN, whose signature is payload.
    TcpSyn,
}

impl Transport {
    /// Length of its header.
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::Udp => 8,
            Self::TcpSyn => 20,
        }
    }
}

/// What the frames are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrameFormat {
    /// The generator's device, or who it pretends to be.
    pub source_mac: Mac,
    /// Where the frames go first: the device under test, or the receiver.
    pub destination_mac: Mac,
    /// VLAN of an 802.1Q tag, 0 to 4095; `None`: no tag.
    pub vlan: Option<u16>,
    /// Of IP.
    pub family: Family,
    /// What follows IP.
    pub transport: Transport,
    /// Who seems to send.
    pub source: Endpoints,
    /// Who shall get it.
    pub destination: Endpoints,
    /// The order of the flows.
    pub walk: Walk,
    /// Sizes with FCS, one after another and again from the start: one size, a list, a mix.
    pub sizes: Vec<u32>,
    /// Time to live, or hop limit.
    pub ttl: u8,
}

/// The smallest frame with FCS that holds the headers and the signature.
pub const fn min_frame_bytes(family: Family, transport: Transport, tagged: bool) -> u32 {
    let tag = if tagged { 4 } else { 0 };
    let ip = match family {
        Family::Ipv4 => 20,
        Family::Ipv6 => 40,
    };
    let bytes = 14 + tag + ip + transport.header_bytes() + SIGNATURE_BYTES + FCS_BYTES;
    if bytes > MIN_FRAME_BYTES { bytes } else { MIN_FRAME_BYTES }
}

impl FrameFormat {
    /// The longest list of sizes.
    pub const MAX_SIZES: usize = 64;

    /// The smallest frame with FCS that holds the headers and the signature: 64 for IPv4 and UDP, 82 for IPv6 and UDP.
    pub const fn least_bytes(&self) -> u32 {
        min_frame_bytes(self.family, self.transport, self.vlan.is_some())
    }

    /// The largest of the sizes.
    pub fn largest(&self) -> u32 {
        self.sizes.iter().copied().max().unwrap_or(MIN_FRAME_BYTES)
    }

    /// The mean size over one turn of the sizes.
    pub fn mean_bytes(&self) -> f64 {
        let sum: u64 = self.sizes.iter().map(|size| u64::from(*size)).sum();
        sum as f64 / self.sizes.len().max(1) as f64
    }

    /// What is wrong with it, if anything.
    /// Errors: one sentence that names the field, its value and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        for (name, side) in [("source", &self.source), ("destination", &self.destination)] {
            if side.addresses.iter().any(|address| Family::of(address) != self.family) {
                return Err(format!("the {name} addresses and the family of the frames differ"));
            }
            if side.addresses[0] > side.addresses[1] || side.ports[0] > side.ports[1] {
                return Err(format!("the {name} range is reversed"));
            }
            let bits = if self.family == Family::Ipv4 { 31 } else { 127 };
            within(&format!("stride of the {name} addresses in bits"), side.stride_bits, 0, bits)?;
        }
        within_if("VLAN", self.vlan, 0, 4095)?;
        within("number of frame sizes", self.sizes.len(), 1, Self::MAX_SIZES)?;
        for size in &self.sizes {
            if *size < self.least_bytes() {
                return Err(format!(
                    "a frame of {size} bytes is too small: {} with signature needs {} bytes with FCS",
                    match self.family {
                        Family::Ipv4 => "IPv4",
                        Family::Ipv6 => "IPv6",
                    },
                    self.least_bytes()
                ));
            }
            within("frame size", *size, MIN_FRAME_BYTES, MAX_FRAME_BYTES)?;
        }
        within("time to live", self.ttl, 1, 255)
    }
}

/// The load that the generator is to offer, over all its workers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FrameLoad {
    /// Frames a second, evenly spaced.
    FramesPerSecond(f64),
    /// As fast as the mode can.
    Max,
}

words! {
    /// How frames reach the device.
    pub enum SendMode {
        /// Made inside the kernel by an XDP program (`BPF_PROG_TEST_RUN` with live frames, Linux 5.18).
        LiveFrames = "live-frames",
        /// `AF_XDP` rings.
        AfXdp = "af-xdp",
        /// A packet socket.
        AfPacket = "af-packet",
    }
}

words! {
    /// How frames are counted.
    pub enum ReceiveMode {
        /// An XDP program in the driver.
        XdpNative = "xdp-native",
        /// An XDP program behind the driver.
        XdpGeneric = "xdp-generic",
        /// A packet socket.
        AfPacket = "af-packet",
    }
}

/// What `narrows generate` does, resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratePlan {
    /// The device that sends.
    pub device: String,
    /// `None`: the best that works here.
    pub mode: Option<SendMode>,
    /// The frames.
    pub format: FrameFormat,
    /// How many of them.
    pub load: FrameLoad,
    /// The most frames that leave a worker back to back.
    pub burst: u32,
    /// How long a worker may have stalled for the frames that were due meanwhile to be sent nevertheless, at no more than
    /// [`Self::CATCH_UP`] times the load; what is further behind is given up. 0: only what a burst makes up for.
    #[serde(rename = "make_up_us", default)]
    pub catch_up_us: u32,
    /// How long they are sent.
    pub duration_ms: u64,
    /// After so many the generator ends, over all workers; `None`: when the time is over.
    pub count: Option<u64>,
    /// One CPU and one stream each.
    pub workers: u32,
    /// Why there are fewer workers than the load needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers_note: Option<String>,
    /// The first stream's number; the others follow.
    pub first_stream: u16,
    /// One of so many frames carries the time of its departure; 0: none.
    pub stamp_every: u32,
    /// Every so-manyth frame goes to the hardware broadcast address, as one of the stream [`BROADCAST_STREAM`]; 0: none.
    #[serde(default)]
    pub broadcast_every: u32,
    /// How often counters are read.
    pub interval_ms: u64,
}

impl GeneratePlan {
    /// The most workers, and streams of one receiver.
    pub const MAX_STREAMS: u32 = 64;
    /// The longest trial: a worker counts time in 2^-20 ns, of which 64 bits hold not five hours.
    pub const LONGEST_MS: u64 = 4 * 3600 * 1000;

    /// How much faster than the load a worker sends while it makes up for a stall: what comes behind it has little more to
    /// take than the load, and no burst.
    pub const CATCH_UP: f64 = 1.25;
    /// The longest stall that may be made up for.
    pub const MAX_CATCH_UP_US: u32 = 1_000_000;

    /// The burst for a load where nobody names one: what falls due on a worker in 100 us, at least 64 frames.
    pub fn usual_burst(load: FrameLoad, workers: u32) -> u32 {
        let FrameLoad::FramesPerSecond(pps) = load else { return 64 };

        (pps / f64::from(workers.max(1)) * 1e-4).clamp(64.0, 65_536.0) as u32
    }

    /// What is wrong with the plan, if anything.
    /// Errors: one sentence that names the field, its value and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        self.format.check()?;
        if let FrameLoad::FramesPerSecond(pps) = self.load
            && !(pps.is_finite() && (0.01..=1e9).contains(&pps))
        {
            return Err(format!("load is {pps} frames/s, but must be from 0.01 to 10^9"));
        }
        within("burst in frames", self.burst, 1, 65_536)?;
        within("maximum catch-up in us", self.catch_up_us, 0, Self::MAX_CATCH_UP_US)?;
        within("duration in ms", self.duration_ms, 10, Self::LONGEST_MS)?;
        within("workers", self.workers, 1, Self::MAX_STREAMS)?;
        // The stream of frames to all is not a worker's.
        let streams = if self.broadcast_every > 0 { BROADCAST_STREAM.into() } else { Self::MAX_STREAMS.into() };
        within("last stream", u64::from(self.first_stream) + u64::from(self.workers), 1, streams)?;
        if self.broadcast_every == 1 {
            return Err("every frame would go to the broadcast MAC address; some must go to the DUT".to_owned());
        }
        within("interval in ms", self.interval_ms, 10, 3_600_000)
    }
}

/// What `narrows receive` does, resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivePlan {
    /// The device that is watched.
    pub device: String,
    /// `None`: the best that works here.
    pub mode: Option<ReceiveMode>,
    /// The longest time; frames that come later are not counted.
    pub duration_ms: u64,
    /// Ends after such a silence, once frames came; `None`: only when the time is over.
    pub idle_ms: Option<u64>,
    /// Whether frames are counted per flow.
    pub per_flow: bool,
    /// Whether times between arrivals are sampled.
    pub gaps: bool,
    /// How often counters are read.
    pub interval_ms: u64,
}

impl ReceivePlan {
    /// What is wrong with the plan, if anything.
    /// Errors: one sentence that names the field, its value and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        within("duration in ms", self.duration_ms, 10, 24 * 3600 * 1000)?;
        within("interval in ms", self.interval_ms, 10, 3_600_000)?;
        within_if("idle time in ms", self.idle_ms, 10, 3_600_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format() -> FrameFormat {
        let side = |host| Endpoints::one(IpAddr::from([198, 18, 0, host]), [2000, 2001]);
        FrameFormat {
            source_mac: Mac([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac([2, 0, 0, 0, 0, 2]),
            vlan: None,
            family: Family::Ipv4,
            transport: Transport::Udp,
            source: side(1),
            destination: side(2),
            walk: Walk::Odometer,
            sizes: vec![64],
            ttl: 64,
        }
    }

    #[test]
    fn the_smallest_frame_is_computed() {
        let with = |family, transport, vlan| FrameFormat { family, transport, vlan, ..format() }.least_bytes();
        assert_eq!(with(Family::Ipv4, Transport::Udp, None), 64);
        assert_eq!(with(Family::Ipv4, Transport::Udp, Some(7)), 66);
        assert_eq!(with(Family::Ipv6, Transport::Udp, None), 82);
        assert_eq!(with(Family::Ipv4, Transport::TcpSyn, None), 74);
    }

    #[test]
    fn networks_are_as_many_as_asked_for() {
        let last = |first: &str, networks| {
            let range = Endpoints::networks(first.parse().expect("an address"), networks, [1, 1])?;
            Some((range.addresses[1].to_string(), range.stride_bits))
        };
        assert_eq!(last("198.19.0.2", 1), Some(("198.19.0.2".to_owned(), 0)));
        assert_eq!(last("198.19.0.2", 256), Some(("198.19.255.2".to_owned(), 8)));
        assert_eq!(last("2001:2:0:200::2", 256), Some(("2001:2:0:2ff::2".to_owned(), 64)));
        assert_eq!(last("255.255.255.1", 2), None);
        assert_eq!(last("ffff:ffff:ffff:ffff::1", 2), None);
    }

    #[test]
    fn a_range_without_a_stride_is_read_as_of_old() {
        let old = r#"{"addresses":["198.18.0.1","198.18.0.9"],"ports":[1,2]}"#;
        let range: Endpoints = serde_json::from_str(old).expect("a range");
        assert_eq!(range.stride_bits, 0);
        assert_eq!(serde_json::to_string(&range).expect("json"), old);
    }

    #[test]
    fn what_no_frame_can_be_is_named() {
        assert_eq!(format().check(), Ok(()));
        let refused = |format: FrameFormat| format.check().expect_err("refused");
        assert!(refused(FrameFormat { sizes: vec![63], ..format() }).contains("needs 64 bytes with FCS"));
        assert!(refused(FrameFormat { sizes: vec![9217], ..format() }).contains("9217"));
        assert!(refused(FrameFormat { vlan: Some(4096), ..format() }).contains("4096"));
        assert!(refused(FrameFormat { family: Family::Ipv6, ..format() }).contains("family"));
        let backwards = Endpoints { ports: [2, 1], ..format().source };
        assert!(refused(FrameFormat { source: backwards, ..format() }).contains("source range"));
        let wide = Endpoints { stride_bits: 32, ..format().destination };
        assert!(refused(FrameFormat { destination: wide, ..format() }).contains("stride of the destination"));
    }
}
