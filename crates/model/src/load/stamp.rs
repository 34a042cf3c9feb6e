//! A STAMP session (RFC 8762): what was sent and came back, packet by packet, and its report.

use crate::load::udp::record::Distribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the report's JSON form.
pub const SCHEMA: &str = "narrows.stamp/1";

/// What a session is to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StampPlan {
    /// Packets.
    pub packets: u32,
    /// Time between two of them, µs.
    pub interval_us: u64,
    /// UDP payload of each, bytes.
    pub bytes: u32,
    /// DSCP of each, and the one that is wanted in the replies.
    pub dscp: u8,
    /// Whether packets are authenticated.
    pub authenticated: bool,
    /// Whether replies are asked for what the reflector received (RFC 8972).
    pub extensions: bool,
}

impl StampPlan {
    /// Wait for the last replies, µs.
    pub const GRACE_US: u64 = 1_000_000;
    /// The most packets of a session.
    pub const MAX_PACKETS: u32 = 10_000_000;

    /// Errors: what a session cannot have, in a sentence.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self { packets: 0, .. } => Err("a session needs at least one packet".to_owned()),
            Self { packets, .. } if *packets > Self::MAX_PACKETS => Err(format!(
                "a session of {packets} packets is too long; the most is {}: use a longer --interval or a shorter --duration",
                Self::MAX_PACKETS
            )),
            Self { interval_us, .. } if *interval_us < 50 => {
                Err("the interval between packets must be at least 50 us".to_owned())
            }
            Self { dscp, .. } if *dscp > 63 => Err("a DSCP is from 0 to 63".to_owned()),
            Self { bytes, .. } if *bytes > 65_507 => Err("a UDP payload has at most 65,507 bytes".to_owned()),
            _ => Ok(()),
        }
    }
}

/// What a clock says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct ClockBound {
    /// Whether it follows an external clock.
    pub synchronised: bool,
    /// How far it may be out, ns.
    pub bound_ns: u64,
}

/// A reply; times are ns since the Unix epoch, each by the clock of the host where it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StampReply {
    /// The reflector's sequence number.
    pub reflector_sequence: u32,
    /// Arrival of the request at the reflector.
    pub received_ns: u64,
    /// Departure of the reply.
    pub replied_ns: u64,
    /// Arrival of the reply here.
    pub arrived_ns: u64,
    /// TTL or hop limit of the request on arrival; 0: not told.
    pub request_ttl: u8,
    /// TTL or hop limit of the reply on arrival.
    pub reply_ttl: Option<u8>,
    /// Traffic class of the request on arrival, if the reflector tells it.
    pub request_class: Option<u8>,
    /// Traffic class of the reply on arrival.
    pub reply_class: Option<u8>,
}

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StampPacket {
    /// When it was sent, ns since the Unix epoch.
    pub sent_ns: u64,
    /// The first reply.
    pub reply: Option<StampReply>,
    /// The place of that reply among all, in order of arrival.
    pub arrival: Option<u32>,
    /// More replies with the same reflector's number: copies made on the way back.
    pub copies_down: u32,
    /// More replies with another number: copies of the request made on the way there.
    pub copies_up: u32,
}

/// A session, packet by packet; a packet's place is its sequence number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StampRecord {
    /// What was asked for.
    pub plan: StampPlan,
    /// The reflector as the user named it.
    pub asked: String,
    /// Its address and port.
    pub address: String,
    /// The packets that were sent.
    pub packets: Vec<StampPacket>,
    /// Whether the reflector counts by itself; unknown where nothing came back before the session.
    pub stateful: Option<bool>,
    /// This host's clock.
    pub own_clock: ClockBound,
    /// The reflector's clock, as it says.
    pub far_clock: Option<ClockBound>,
    /// Datagrams from there that were no replies, or forged.
    pub foreign: u64,
    /// ICMP *port unreachable* came back.
    pub refused: bool,
    /// Packets that this host did not send, since its queue was full.
    pub unsent: u32,
    /// The session was interrupted.
    pub interrupted: bool,
}

/// One direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct StampDirection {
    /// Packets whose fate in this direction is known.
    pub known: u64,
    /// Of them, lost.
    pub lost: Option<u64>,
    /// 95 % interval of the loss (Wilson), as shares.
    pub loss_interval: Option<[f64; 2]>,
    /// Packets that came after a later one (RFC 4737 type-P-reordered).
    pub reordered: u64,
    /// Copies that the path made.
    pub copies: u64,
    /// One-way delay above its minimum, ns (RFC 5481 PDV); it needs no synchronised clocks.
    pub variation_ns: Distribution,
    /// One-way delay, ns: minimum and median. Only where both clocks say that they are synchronised.
    pub delay_ns: Option<[i64; 2]>,
    /// How far that may be out, ns.
    pub clock_error_ns: Option<u64>,
    /// Hops, where the TTL on arrival tells: 255 less it, least and most.
    pub hops: Option<[u8; 2]>,
    /// DSCP on arrival, with how many had it.
    pub dscp: Vec<(u8, u64)>,
    /// ECN field on arrival, with how many had it.
    pub ecn: Vec<(u8, u64)>,
}

/// The packets that were sent within a part of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StampInterval {
    /// Its start, seconds from the first packet.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// Packets sent.
    pub sent: u64,
    /// Of them without a reply.
    pub lost: u64,
    /// Of them lost on the way to the reflector; `None`: unknown.
    pub lost_up: Option<u64>,
    /// Of them lost on the way back; `None`: unknown.
    pub lost_down: Option<u64>,
    /// Median round trip without the time in the reflector, µs.
    pub rtt_p50_us: Option<f64>,
    /// Longest round trip, µs.
    pub rtt_max_us: Option<f64>,
}

/// The report of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StampReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was asked for.
    pub plan: StampPlan,
    /// The reflector as the user named it.
    pub asked: String,
    /// Its address and port.
    pub address: String,
    /// Packets sent.
    pub sent: u64,
    /// Replies, copies left out.
    pub replies: u64,
    /// Packets without a reply.
    pub lost: u64,
    /// Of them, lost on a way that is not known.
    pub lost_unknown: u64,
    /// Whether the reflector counts by itself.
    pub stateful: Option<bool>,
    /// Round trip without the time in the reflector, ns.
    pub rtt_ns: Distribution,
    /// Time in the reflector, ns.
    pub reflector_ns: Distribution,
    /// From here to the reflector.
    pub up: StampDirection,
    /// Back.
    pub down: StampDirection,
    /// Over time: at most 600 intervals of a second or more.
    #[serde(default)]
    pub series: Vec<StampInterval>,
    /// What a reader must know.
    pub remarks: Vec<String>,
}
