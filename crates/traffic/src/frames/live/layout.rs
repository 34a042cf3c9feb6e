//! The structures that the programs of `bpf/` share with this side, byte for byte.

use super::super::clock;
use super::super::pace::Share;
use super::super::tally::Counts;
use narrows_model::Family;
use narrows_model::load::frames::{BROADCAST_STREAM, Endpoints, FrameFormat, GeneratePlan, Transport, Walk};
use narrows_wire::frame::{Flows, Signature, Template, checksum};
use std::net::IpAddr;

/// `SIZES_MOST`, `HEADER_WORDS` and the size of `struct config` of `generate.c`.
const SIZES: usize = 64;
const HEADER_BYTES: usize = 12 * 8;

/// Numbers in the order in which C lays them out; each at its natural alignment, which the order of the fields gives.
#[derive(Debug, Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u64(&mut self, values: &[u64]) -> &mut Self {
        values.iter().for_each(|value| self.0.extend(value.to_ne_bytes()));
        self
    }

    fn u32(&mut self, values: &[u32]) -> &mut Self {
        values.iter().for_each(|value| self.0.extend(value.to_ne_bytes()));
        self
    }

    fn u16(&mut self, values: &[u16]) -> &mut Self {
        values.iter().for_each(|value| self.0.extend(value.to_ne_bytes()));
        self
    }

    fn bytes(&mut self, values: &[u8]) -> &mut Self {
        self.0.extend_from_slice(values);
        self
    }
}

/// From this stride on, the upper half of the IPv6 address varies.
const HALF_BITS: u8 = 64;

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// The parts of a side's first address that are written anew, the last 8 bytes and the first 8, and the sum of what is not.
fn halves(side: &Endpoints) -> (u64, u64, u32) {
    let first = number(side.addresses[0]);
    let (high, low) = ((first >> 64) as u64, first as u64);
    if side.stride_bits >= HALF_BITS { (low, high, 0) } else { (low, 0, checksum::partial(&high.to_be_bytes())) }
}

fn addresses(side: &Endpoints) -> Result<u32, String> {
    let [first, last] = side.addresses.map(number);
    if side.stride_bits < HALF_BITS && first >> 64 != last >> 64 {
        return Err("a range of IPv6 addresses exceeds the last 64 bits".to_owned());
    }
    u32::try_from(((last - first) >> side.stride_bits) + 1)
        .map_err(|_| "a range has more than 2^32 addresses".to_owned())
}

const fn ports(side: &Endpoints) -> u32 {
    side.ports[1] as u32 - side.ports[0] as u32 + 1
}

/// Where each wheel of the odometer stands at the flow of that number.
fn wheels(format: &FrameFormat, index: u64) -> Result<[u32; 4], String> {
    let sizes = [
        ports(&format.source),
        addresses(&format.source)?,
        ports(&format.destination),
        addresses(&format.destination)?,
    ];
    let mut left = index;
    Ok(sizes.map(|size| {
        let wheel = left % u64::from(size);
        left /= u64::from(size);
        u32::try_from(wheel).unwrap_or(0)
    }))
}

/// `struct config` of `generate.c`.
pub(super) fn config(plan: &GeneratePlan, share: &Share) -> Result<Vec<u8>, String> {
    let format = &plan.format;
    let templates: Vec<Template> = format.sizes.iter().map(|size| Template::build(format, *size)).collect();
    let template = Template::build(format, format.largest());
    let (source, source_high, source_rest) = halves(&format.source);
    let (destination, destination_high, destination_rest) = halves(&format.destination);
    let signature = Signature { stream: share.stream, clock: clock::id(), sequence: 0, time: 0 };
    let head = checksum::partial(&signature.encode()[..4]);
    let mut header = [0_u8; HEADER_BYTES];
    let length = template.payload_offset + 4;
    header[..template.payload_offset].copy_from_slice(&template.bytes[..template.payload_offset]);
    header[template.payload_offset..length].copy_from_slice(&signature.encode()[..4]);
    let offset = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
    let (random, seed) = match format.walk {
        Walk::Odometer => (0, 0),
        Walk::Random { seed } => (1, seed),
    };
    let flows = if random == 1 { Flows::of(format).count() } else { share.flows.1 };
    let mut out = Bytes::default();
    out.u64(&[share.interval, share.catch_up, share.max_behind, share.limit, seed, flows])
        .u64(&[source, destination, source_high, destination_high])
        .u32(&[addresses(&format.source)?, addresses(&format.destination)?])
        .u32(&[ports(&format.source), ports(&format.destination)])
        .u32(&[format.source.stride_bits.into(), format.destination.stride_bits.into()])
        .u32(&wheels(format, share.flows.0)?)
        .u16(&[format.source.ports[0], format.destination.ports[0]])
        .u32(&[share.burst, plan.stamp_every, offset(templates.len())])
        .bytes(&[
            u8::from(format.family == Family::Ipv6),
            u8::from(format.transport == Transport::TcpSyn),
            random,
            u8::from(templates.len() > 1),
        ])
        .u32(&[template.ip_offset, template.transport_offset, template.payload_offset].map(offset))
        .u32(&[plan.broadcast_every, BROADCAST_STREAM.saturating_sub(share.stream).into()])
        .bytes(&header);
    for template in &templates {
        let sum = template.transport_sum + source_rest + destination_rest + head;
        let word = |at: usize| u16::from_be_bytes([template.bytes[at], template.bytes[at + 1]]);
        let ip = template.ip_offset + if format.family == Family::Ipv6 { 4 } else { 2 };
        out.u32(&[offset(template.bytes.len()), template.ip_sum, u32::from(checksum::fold(sum))])
            .u16(&[word(ip), word(template.transport_offset + 4)]);
    }
    out.bytes(&vec![0; (SIZES - templates.len()) * 16]);
    Ok(out.0)
}

/// `struct state` of `generate.c` before the start. The ranges are those that [`config`] found to be sound.
pub(super) fn state(plan: &GeneratePlan, share: &Share, start_ns: u64) -> Vec<u8> {
    let mut out = Bytes::default();
    out.u64(&[start_ns, start_ns + share.duration_ns, 0, 0, share.phase, 0, 0])
        .u64(&[0, share.flows.1.max(1), 0, 0])
        .u32(&[0, 0])
        .u32(&wheels(&plan.format, share.flows.0).unwrap_or_default())
        .u32(&[0, 0])
        .u32(&[plan.broadcast_every, 0])
        .u64(&[0]);
    out.0
}

/// The first numbers of a structure; 0 where it ends early.
fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
    std::array::from_fn(|_| words.next().unwrap_or(0))
}

/// The contents of `struct state`.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    pub(super) counts: Counts,
    /// Nothing is left to send.
    pub(super) done: bool,
    /// The program runs and waits for the start.
    pub(super) ready: bool,
}

impl State {
    pub(super) fn read(state: &[u8]) -> Self {
        let [_, _, handed, skipped, _, first_ns, last_ns, done, _, _, ready] = words(state);
        let counts = Counts { handed, skipped, first_ns, last_ns, bounced: 0 };
        Self { counts, done: done != 0, ready: ready != 0 }
    }
}

/// `struct stream` of `receive.c`, of one CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StreamState {
    pub(super) next: u64,
    pub(super) duplicates: u64,
    pub(super) received: u64,
    pub(super) reordered: u64,
    pub(super) starts: u64,
}

impl StreamState {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let [next, duplicates, received, reordered, starts] = words(bytes);
        Self { next, duplicates, received, reordered, starts }
    }
}

/// `struct totals` of `receive.c`, of one CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) frames: u64,
    pub(super) foreign: u64,
    pub(super) bytes: u64,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) flows_left_out: u64,
    /// A bit for each stream that arrived.
    pub(super) streams: u64,
    pub(super) other_clocks: u64,
}

impl Totals {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let [frames, foreign, bytes, first_ns, last_ns, flows_left_out, streams, other_clocks] = words(bytes);
        Self { frames, foreign, bytes, first_ns, last_ns, flows_left_out, streams, other_clocks }
    }
}

/// `struct flow_count` of `receive.c` as of one CPU: received, next, gap, duplicates, reordered.
pub(super) fn flow_count(bytes: &[u8]) -> [u64; 5] {
    let u32_at = |at: usize| bytes.get(at..at + 4).and_then(|it| it.try_into().ok()).map_or(0, u32::from_ne_bytes);
    let [received, next, gap] = words(bytes);
    [received, next, gap, u32_at(24).into(), u32_at(28).into()]
}

/// `struct histogram` of `receive.c`, of one CPU.
#[derive(Debug, Clone, Default)]
pub(super) struct Buckets {
    pub(super) count: u64,
    pub(super) sum: u64,
    pub(super) least: u64,
    pub(super) most: u64,
    /// Upper bound and count of each that holds any.
    pub(super) held: Vec<(u64, u64)>,
}

impl Buckets {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let [count, sum, least, most] = words(bytes);
        let buckets = bytes.chunks_exact(8).skip(4).map(|bucket| bucket.try_into().map_or(0, u64::from_ne_bytes));
        let bounded = (0..).zip(buckets).map(|(bucket, count)| (upper_bound(bucket), count));
        Self { count, sum, least, most, held: bounded.filter(|(_, count)| *count > 0).collect() }
    }
}

/// The largest value that `note` of `receive.c` puts into that bucket.
const fn upper_bound(bucket: u64) -> u64 {
    if bucket < 256 {
        return bucket;
    }
    let shift = bucket / 128 - 1;
    ((bucket - shift * 128 + 1) << shift) - 1
}

/// `struct config` of `receive.c`.
pub(super) fn receive_config(gaps: bool, per_flow: bool, end_ns: u64) -> Vec<u8> {
    let mut out = Bytes::default();
    out.u32(&[u32::from(gaps), u32::from(per_flow)]).u64(&[end_ns]).u32(&[clock::id().into(), 0]);
    out.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lies_in_its_bucket() {
        // As `note` of receive.c puts it.
        let bucket = |ns: u64| if ns < 128 { ns } else { u64::from(ns.ilog2() - 7) * 128 + (ns >> (ns.ilog2() - 7)) };
        for ns in (0..4096).chain([65_535, 65_536, 1_000_000, 123_456_789, 1 << 36]) {
            let bound = upper_bound(bucket(ns));
            assert!(bound >= ns && bound as f64 <= ns as f64 * 1.008 + 1.0, "{ns} in a bucket up to {bound}");
            assert!(bucket(ns) == 0 || upper_bound(bucket(ns) - 1) < ns, "{ns}");
        }
    }
}
