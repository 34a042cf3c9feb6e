//! The sender of a STAMP session (RFC 8762 section 4.2): packets at an interval, and the replies of any reflector.

use crate::Stop;
use narrows_model::load::stamp::{ClockBound, StampPacket, StampPlan, StampRecord, StampReply};
use narrows_sys::nanos::EvenClock;
use narrows_sys::udp::{marked, socket};
use narrows_sys::{Error, clock, event, thread};
use narrows_wire::stamp::clock::{Clock, ClockError};
use narrows_wire::stamp::tlv::{self, ClassOfService, Type};
use narrows_wire::stamp::{Key, Reply, Request, base_bytes};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// Maximum time between checks of the stop flag.
const LOOK: Duration = Duration::from_millis(100);
/// First sequence number of the probe for a stateful reflector: a stateless one echoes it.
const PROBE: u32 = 7;
/// Number of probes, and how long to wait for each reply.
const PROBES: u32 = 3;
const PROBE_WAIT_NS: u64 = 300_000_000;
/// The most copies of one packet that are kept apart.
const MAX_COPIES: u32 = 1_000_000;

/// A socket with its key.
struct Sender<'a> {
    socket: UdpSocket,
    key: Option<&'a Key>,
    own: ClockError,
    /// Never signalled: fills the second slot of `wait_readable`.
    never: event::Event,
    clock: EvenClock,
    buffer: Vec<u8>,
}

/// What came: a reply with the instant of its arrival, or something else.
enum Came {
    Reply(Box<Reply>, StampMarks),
    Foreign,
    Refused,
    Nothing,
}

struct StampMarks {
    arrived_ns: u64,
    ttl: Option<u8>,
    class: Option<u8>,
    asked_class: Option<u8>,
}

impl<'a> Sender<'a> {
    fn open(peer: SocketAddr, class: u8, key: Option<&'a Key>, own: ClockError) -> Result<Self, Error> {
        let socket = socket::connect(peer)?;
        marked::ask(&socket, peer.is_ipv6())?;
        marked::set_class(&socket, peer.is_ipv6(), class)?;
        Ok(Self { socket, key, own, never: event::Event::new()?, clock: EvenClock::begin(), buffer: vec![0; 65_536] })
    }

    /// Sends a packet of that number and returns when, ns since the Unix epoch.
    fn send(&self, sequence: u32, extensions: &[u8]) -> io::Result<u64> {
        let sent_ns = self.clock.now();
        let request = Request { sequence, sent: Clock::Ntp.write(sent_ns), error: self.own.write(), session: 0 };
        self.socket.send(&request.encode(self.key, extensions)).map(|_| sent_ns)
    }

    fn take(&mut self) -> Result<Came, Error> {
        let come = match marked::receive(&self.socket, &mut self.buffer) {
            Ok(come) => come,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Came::Nothing),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(Came::Refused),
            Err(error) => return Err(Error::new("receive from", "the reflector", error)),
        };
        let arrived_ns = self.clock.stamps().at(come.marks.at_ns);
        let bytes = &self.buffer[..come.bytes.min(self.buffer.len())];
        let Ok((reply, extensions)) = Reply::decode(bytes, self.key) else { return Ok(Came::Foreign) };
        if self.key.is_some_and(|key| !tlv::is_whole(extensions, key, reply.sequence)) {
            return Ok(Came::Foreign);
        }
        let class = tlv::read(extensions)
            .find(|one| one.kind == Some(Type::ClassOfService) && one.flags == 0)
            .and_then(|one| ClassOfService::read(one.value));
        let asked_class = class.map(|class| class.dscp << 2 | class.ecn);
        let marks = StampMarks { arrived_ns, ttl: come.marks.ttl, class: come.marks.class, asked_class };
        Ok(Came::Reply(Box::new(reply), marks))
    }

    /// Records what was received; returns whether anything was.
    fn take_into(&mut self, record: &mut StampRecord, arrivals: &mut u32) -> Result<bool, Error> {
        match self.take()? {
            Came::Nothing => return Ok(false),
            Came::Refused => record.refused = true,
            Came::Foreign => record.foreign += 1,
            Came::Reply(reply, marks) => {
                let error = ClockError::read(reply.error);
                record.far_clock = Some(ClockBound { synchronised: error.synchronised, bound_ns: error.bound_ns });
                let known = note(&mut record.packets, arrivals, &reply, &marks, error.clock);
                record.foreign += u64::from(!known);
            }
        }
        Ok(true)
    }

    /// Waits until the socket is readable or the monotonic clock reaches `until_ns`, for at most [`LOOK`].
    fn wait(&self, until_ns: u64) {
        let left = Duration::from_nanos(until_ns.saturating_sub(clock::monotonic_ns()));
        // The caller checks again after an interrupted wait.
        let _ = event::wait_readable([self.socket.as_fd(), self.never.as_fd()], Some(left.min(LOOK)));
    }
}

/// Whether the reflector is stateful, from a short test session; `None`: no reply.
fn is_stateful(sender: &mut Sender<'_>, stop: &Stop) -> Result<Option<bool>, Error> {
    for _ in 0..PROBES {
        // An error here recurs in the session and is reported there.
        let _ = sender.send(PROBE, &[]);
        let until = clock::monotonic_ns() + PROBE_WAIT_NS;
        while clock::monotonic_ns() < until && !stop.is_set() {
            if let Came::Reply(reply, _) = sender.take()? {
                return Ok(Some(reply.sequence != PROBE));
            }
            sender.wait(until);
        }
    }
    Ok(None)
}

/// The extensions of a packet: the class of service where it is asked for, and padding up to the size.
fn extensions(plan: &StampPlan, key: Option<&Key>, sequence: u32) -> Vec<u8> {
    let mut all = Vec::new();
    if plan.extensions {
        let class = ClassOfService { wanted_dscp: plan.dscp, dscp: 0, ecn: 0, refused: false };
        tlv::append(&mut all, Type::ClassOfService, &class.write());
        if let Some(key) = key {
            tlv::append_code(&mut all, key, sequence);
        }
    }
    let left = (plan.bytes as usize).saturating_sub(base_bytes(key) + all.len());
    if left >= tlv::HEAD {
        tlv::append(&mut all, Type::Padding, &vec![0; left - tlv::HEAD]);
    }
    all
}

/// The packet of a session that a reply belongs to, with its place.
fn note(packets: &mut [StampPacket], arrivals: &mut u32, reply: &Reply, marks: &StampMarks, clock: Clock) -> bool {
    let Some(packet) = packets.get_mut(reply.of.sequence as usize) else { return false };
    match &packet.reply {
        Some(first) if first.reflector_sequence == reply.sequence => {
            packet.copies_down = (packet.copies_down + 1).min(MAX_COPIES);
        }
        Some(_) => packet.copies_up = (packet.copies_up + 1).min(MAX_COPIES),
        None => {
            packet.reply = Some(StampReply {
                reflector_sequence: reply.sequence,
                received_ns: clock.read(reply.received),
                replied_ns: clock.read(reply.sent),
                arrived_ns: marks.arrived_ns,
                request_ttl: reply.ttl,
                reply_ttl: marks.ttl,
                request_class: marks.asked_class,
                reply_class: marks.class,
            });
            packet.arrival = Some(*arrivals);
            *arrivals += 1;
        }
    }
    true
}

/// Runs a session. `progress` gets the packets so far, about once a second.
/// Errors: no route, or no socket. What the path does to packets is no error.
pub fn run(
    plan: &StampPlan,
    asked: &str,
    peer: SocketAddr,
    key: Option<&Key>,
    stop: &Stop,
    progress: &mut dyn FnMut(&[StampPacket]),
) -> Result<StampRecord, Error> {
    thread::exact_timers();
    let (synchronised, bound_ns) = clock::error();
    let own = ClockError { synchronised, clock: Clock::Ntp, bound_ns };
    let stateful = is_stateful(&mut Sender::open(peer, plan.dscp << 2, key, own)?, stop)?;
    let mut sender = Sender::open(peer, plan.dscp << 2, key, own)?;
    let mut record = StampRecord {
        plan: plan.clone(),
        asked: asked.to_owned(),
        address: peer.to_string(),
        packets: Vec::new(),
        stateful,
        own_clock: ClockBound { synchronised, bound_ns },
        far_clock: None,
        foreign: 0,
        refused: false,
        unsent: 0,
        interrupted: false,
    };
    let (interval_ns, start) = (plan.interval_us * 1_000, clock::monotonic_ns());
    let end = start + interval_ns * u64::from(plan.packets - 1) + StampPlan::GRACE_US * 1_000;
    let (mut arrivals, mut shown) = (0, start);
    loop {
        let now = clock::monotonic_ns();
        record.interrupted = stop.is_set();
        let all_back = arrivals == plan.packets;
        if record.interrupted || now >= end || all_back {
            return Ok(record);
        }
        let sent = u32::try_from(record.packets.len()).unwrap_or(u32::MAX);
        let due = start + interval_ns * u64::from(sent);
        if sent < plan.packets && now >= due {
            match sender.send(sent, &extensions(plan, key, sent)) {
                Ok(sent_ns) => record.packets.push(packet(sent_ns)),
                // An ICMP error for an earlier packet: this one was not sent.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => record.refused = true,
                Err(_) => {
                    record.unsent += 1;
                    record.packets.push(packet(sender.clock.now()));
                }
            }
        }
        while sender.take_into(&mut record, &mut arrivals)? {}
        if now - shown >= 1_000_000_000 {
            shown = now;
            progress(&record.packets);
        }
        let next = start + interval_ns * record.packets.len() as u64;
        sender.wait(if (record.packets.len() as u64) < u64::from(plan.packets) { next } else { end });
    }
}

const fn packet(sent_ns: u64) -> StampPacket {
    StampPacket { sent_ns, reply: None, arrival: None, copies_down: 0, copies_up: 0 }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // a reflector of plain sockets
mod tests {
    use super::*;
    use narrows_wire::stamp::reflect::{Seen, Session, reflect};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn plan(packets: u32) -> StampPlan {
        StampPlan { packets, interval_us: 2_000, bytes: 100, dscp: 46, authenticated: false, extensions: true }
    }

    /// A reflector on loopback that loses each seventh request and each fifth reply, and sends each eleventh reply twice.
    fn lossy(socket: &UdpSocket, key: Option<&Key>, stop: &AtomicBool) {
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("an option");
        let mut sessions: Vec<(SocketAddr, Session)> = Vec::new();
        let mut buffer = [0; 2048];
        while !stop.load(Ordering::Relaxed) {
            let Ok((bytes, from)) = socket.recv_from(&mut buffer) else { continue };
            let (request, _) = Request::decode(&buffer[..bytes], key).expect("a request");
            if request.sequence % 7 == 6 && bytes == 100 {
                continue;
            }
            if !sessions.iter().any(|(of, _)| *of == from) {
                sessions.push((from, Session::default()));
            }
            let session = sessions.iter_mut().find(|(of, _)| *of == from).expect("there");
            let seen = Seen { at_ns: narrows_sys::nanos::real(), ttl: 64, class: 46 << 2, may_mark: true };
            let answer =
                reflect(&buffer[..bytes], key, seen, &mut session.1, ClockError::default(), narrows_sys::nanos::real);
            let answer = answer.expect("an answer").bytes;
            let nth = session.1.sent;
            if nth % 5 == 0 && bytes == 100 {
                continue;
            }
            for _ in 0..=u8::from(nth % 11 == 0) {
                socket.send_to(&answer, from).expect("sent");
            }
        }
    }

    #[test]
    fn losses_of_each_direction_and_copies_are_told_apart() {
        for key in [None, Key::new(b"a key of 20 bytes....")] {
            let reflector = UdpSocket::bind("127.0.0.1:0").expect("loopback");
            let peer = reflector.local_addr().expect("bound");
            let stop = AtomicBool::new(false);
            let plan = StampPlan { bytes: if key.is_some() { 112 + 44 } else { 100 }, ..plan(70) };
            let record = std::thread::scope(|scope| {
                scope.spawn(|| {
                    // With a key nothing is lost: the sizes differ.
                    lossy(&reflector, key.as_ref(), &stop);
                });
                let record = run(&plan, "here", peer, key.as_ref(), &Stop::new(), &mut |_| ()).expect("a session");
                stop.store(true, Ordering::Relaxed);
                record
            });
            assert_eq!((record.packets.len(), record.stateful, record.foreign), (70, Some(true), 0));
            let back = record.packets.iter().filter(|packet| packet.reply.is_some()).count();
            let twice: u32 = record.packets.iter().map(|packet| packet.copies_down).sum();
            // 60 requests arrive; of 60 replies 12 are lost; 11, 22, 33 and 44 come twice.
            assert_eq!((back, twice), if key.is_none() { (48, 4) } else { (70, 6) });
            assert!(
                record.packets.iter().filter_map(|packet| packet.reply).all(|it| it.request_class == Some(46 << 2))
            );
        }
    }

    #[test]
    fn a_closed_port_is_refused() {
        let closed = UdpSocket::bind("127.0.0.1:0").expect("loopback").local_addr().expect("bound");
        let record = run(&plan(3), "here", closed, None, &Stop::new(), &mut |_| ()).expect("a session");
        assert!(record.refused && record.packets.iter().all(|packet| packet.reply.is_none()));
    }
}
