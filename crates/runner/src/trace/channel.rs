//! The sockets of a trace: one for each flow, or one for each TCP connection; which probe an answer is for.

use super::error::TraceError;
use narrows_model::{AnswerKind, Family, TraceAnswer, TracePlan, TraceProtocol};
use narrows_search::trace::{Order, Planner};
use narrows_sys::Error;
use narrows_sys::nanos::EvenClock;
use narrows_sys::probe::{Handshake, ProbeSocket, Received, Sent, wait};
use narrows_wire::icmp;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// The begin of each UDP probe; its number follows.
const MAGIC: [u8; 4] = *b"nrw1";
/// Messages that are read of a socket before the next probe.
const BATCH: usize = 64;

pub(super) struct Channel {
    clock: EvenClock,
    protocol: TraceProtocol,
    target: SocketAddr,
    header_bytes: u32,
    flows: BTreeMap<u16, ProbeSocket>,
    /// TCP: connections that have begun, with the number of their probe, and the port of each flow.
    begun: Vec<(u64, u16, ProbeSocket)>,
    ports: BTreeMap<u16, u16>,
    /// UDP: source and destination port of each flow, where they are given.
    given: Vec<[u16; 2]>,
    newest: u64,
}

impl Channel {
    /// With the socket of the first flow: what this user may not do fails here.
    pub(super) fn open(plan: &TracePlan, clock: EvenClock) -> Result<Self, TraceError> {
        let mut channel = Self {
            clock,
            protocol: plan.protocol,
            target: SocketAddr::new(plan.target, plan.port),
            header_bytes: plan.protocol.header_bytes(Family::of(&plan.target)),
            flows: BTreeMap::new(),
            begun: Vec::new(),
            ports: BTreeMap::new(),
            given: plan.ports.clone(),
            newest: 0,
        };
        match plan.protocol {
            TraceProtocol::Udp => channel.flow(0)?,
            TraceProtocol::Icmp => channel.flow(0).map_err(TraceError::Echo)?,
            TraceProtocol::Tcp => {}
        }
        Ok(channel)
    }

    fn flow(&mut self, flow: u16) -> Result<(), Error> {
        if !self.flows.contains_key(&flow) {
            let socket = match self.protocol {
                TraceProtocol::Icmp => ProbeSocket::echo(self.target.ip())?,
                TraceProtocol::Udp | TraceProtocol::Tcp => {
                    let [source, destination] =
                        self.given.get(usize::from(flow)).copied().unwrap_or([0, self.target.port()]);
                    ProbeSocket::udp(source, SocketAddr::new(self.target.ip(), destination))?
                }
            };
            self.flows.insert(flow, socket);
        }
        Ok(())
    }

    pub(super) fn send(&mut self, order: &Order) -> Result<Sent, Error> {
        self.newest = order.id;
        if self.protocol == TraceProtocol::Tcp {
            return self.connect(order);
        }
        match self.flow(order.flow) {
            // Another program took the port since.
            Err(_) if !self.given.is_empty() => return Ok(Sent::Refused),
            opened => opened?,
        }
        let room = usize::try_from(order.bytes.saturating_sub(self.header_bytes)).unwrap_or(0);
        let bytes = match self.protocol {
            TraceProtocol::Icmp => echo(self.target.is_ipv4(), order.id, room),
            _ => datagram(order.id, room),
        };
        self.flows.get(&order.flow).map_or(Ok(Sent::Refused), |socket| socket.send(order.ttl, &bytes))
    }

    /// One connection of a flow at a time: they have the same ports.
    fn connect(&mut self, order: &Order) -> Result<Sent, Error> {
        self.begun.retain(|(_, flow, _)| *flow != order.flow);
        let port = self.ports.get(&order.flow).copied().unwrap_or(0);
        let socket = ProbeSocket::tcp(port, self.target, order.ttl)?;
        self.ports.insert(order.flow, socket.port()?);
        self.begun.push((order.id, order.flow, socket));
        Ok(Sent::Gone)
    }

    pub(super) fn wait(&self, time: Duration) -> Result<(), Error> {
        wait(self.flows.values().chain(self.begun.iter().map(|it| &it.2)), time)
    }

    /// Hands all answers to the planner.
    pub(super) fn answers(&mut self, planner: &mut Planner) {
        for (flow, socket) in &self.flows {
            for received in std::iter::from_fn(|| socket.receive()).take(BATCH) {
                let Some(answer) = self.answer(&received) else { continue };
                match self.number(&received) {
                    Some(id) => planner.answer(id, answer),
                    None => planner.answer_of_flow(*flow, answer),
                }
            }
        }
        let target = self.target.ip();
        let (protocol_headers, mut answered, mut given_up) = (self.header_bytes, Vec::new(), Vec::new());
        for (id, _, socket) in &self.begun {
            let error = std::iter::from_fn(|| socket.receive())
                .take(BATCH)
                .find_map(|it| answer(&it, protocol_headers, self.clock));
            let by_target = || {
                let end = socket.handshake()?;
                if end == Handshake::Failed {
                    given_up.push(*id);
                }
                (end != Handshake::Failed).then(|| TraceAnswer {
                    at_us: self.clock.now() / 1_000,
                    from: target,
                    kind: AnswerKind::Reached,
                    reply_ttl: None,
                    mtu: None,
                    mpls: Vec::new(),
                    refused: end == Handshake::Refused,
                })
            };
            answered.extend(error.or_else(by_target).map(|answer| (*id, answer)));
        }
        // The kernel's own error is read once: a socket that it gave up looks connected from then on.
        self.begun.retain(|(id, _, _)| !given_up.contains(id) && !answered.iter().any(|(other, _)| other == id));
        answered.into_iter().for_each(|(id, it)| planner.answer(id, it));
    }

    fn answer(&self, received: &Received) -> Option<TraceAnswer> {
        let control = &received.control;
        if control.error.is_some() || control.local_mtu.is_some() {
            return answer(received, self.header_bytes, self.clock);
        }
        let reply = if self.target.is_ipv4() { 0 } else { 129 };
        if self.protocol == TraceProtocol::Icmp && received.bytes.first() != Some(&reply) {
            return None;
        }
        Some(TraceAnswer {
            at_us: arrived_us(self.clock, received),
            from: self.target.ip(),
            kind: AnswerKind::Reached,
            reply_ttl: control.ttl,
            mtu: None,
            mpls: Vec::new(),
            refused: false,
        })
    }

    /// The probe that a message quotes.
    fn number(&self, received: &Received) -> Option<u64> {
        let bytes = &received.bytes;
        match self.protocol {
            TraceProtocol::Icmp => {
                let low = u64::from(u16::from_be_bytes(*bytes.get(6..)?.first_chunk()?));
                Some(newest_with(self.newest, low, 1 << 16))
            }
            _ => {
                let low = u64::from(u32::from_be_bytes(*bytes.strip_prefix(&MAGIC)?.first_chunk()?));
                Some(newest_with(self.newest, low, 1 << 32))
            }
        }
    }
}

/// The newest number up to `newest` with these low bits.
const fn newest_with(newest: u64, low: u64, modulus: u64) -> u64 {
    let same = newest - newest % modulus + low;
    if same <= newest { same } else { same.wrapping_sub(modulus) }
}

/// When an answer arrived, microseconds on the trace's clock.
fn arrived_us(clock: EvenClock, received: &Received) -> u64 {
    clock.stamps().at(received.control.stamp_ns) / 1_000
}

fn answer(received: &Received, header_bytes: u32, clock: EvenClock) -> Option<TraceAnswer> {
    let control = &received.control;
    let error = control.error?;
    let kind = icmp::kind(error.ipv4, error.kind, error.code)?;
    let headers = usize::try_from(header_bytes).unwrap_or(0);
    Some(TraceAnswer {
        at_us: arrived_us(clock, received),
        from: error.from.to_canonical(),
        kind,
        reply_ttl: control.ttl,
        mtu: (kind == AnswerKind::TooBig && error.info > 0).then_some(error.info),
        mpls: icmp::mpls(&received.bytes, error.extension_at, headers),
        refused: false,
    })
}

fn datagram(id: u64, room: usize) -> Vec<u8> {
    let [_, _, _, _, number @ ..] = id.to_be_bytes();
    let mut bytes = [MAGIC, number].concat();
    bytes.resize(room.max(8), 0);
    bytes
}

/// An echo request. The kernel sets its identifier and checksum; the two bytes behind the header keep the checksum the same for all
/// probes of a flow, because routers may choose the path by it.
fn echo(ipv4: bool, id: u64, room: usize) -> Vec<u8> {
    let [.., s0, s1] = id.to_be_bytes();
    let mut bytes = vec![if ipv4 { 8 } else { 128 }, 0, 0, 0, 0, 0, s0, s1, !s0, !s1];
    bytes.resize(room.max(2) + 8, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_few_bits_is_the_newest_that_fits() {
        assert_eq!([newest_with(70_000, 4_464, 1 << 16), newest_with(70_000, 4_465, 1 << 16)], [70_000, 4_465]);
        assert_eq!(newest_with(5, 5, 1 << 32), 5);
    }

    #[test]
    fn probes_have_their_size_and_their_number() {
        assert_eq!((datagram(7, 36).len(), &datagram(7, 36)[..8]), (36, &b"nrw1\0\0\0\x07"[..]));
        assert_eq!((echo(true, 258, 36).len(), &echo(true, 258, 36)[6..10]), (44, &[1, 2, 254, 253][..]));
    }
}
