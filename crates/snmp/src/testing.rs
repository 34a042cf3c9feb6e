//! An SNMP v2c agent for tests and for the demonstration: it answers GET, GETNEXT and GETBULK of sysUpTime and IF-MIB with
//! values from a closure, which may be wrong on purpose.

use crate::mib::{self, Object};
use async_snmp::message::CommunityMessage;
use async_snmp::pdu::{PduBody, PduType};
use async_snmp::{DecodeConfig, Oid, ResponsePdu, Value, VarBind, Version};
use bytes::Bytes;
use narrows_sys::event::{Event, wait_readable};
use narrows_sys::udp::UdpListener;
use narrows_sys::{Error, Result, clock};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Bound;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// One direction of a port: all its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub octets: u64,
    pub unicast: u64,
    pub multicast: u64,
    pub broadcast: u64,
    pub discards: u64,
    pub errors: u64,
}

impl Counts {
    const fn values(&self) -> [u64; 6] {
        [self.octets, self.unicast, self.multicast, self.broadcast, self.discards, self.errors]
    }

    fn map(self, change: impl Fn(u64) -> u64) -> Self {
        let [octets, unicast, multicast, broadcast, discards, errors] = self.values().map(change);
        Self { octets, unicast, multicast, broadcast, discards, errors }
    }
}

/// A port of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    pub index: u32,
    /// ifName; empty: not provided.
    pub name: String,
    pub description: String,
    pub input: Counts,
    pub output: Counts,
    /// Whether it has 64-bit counters.
    pub wide: bool,
}

/// A way to count wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miscount {
    /// 32 bits, declared as 64.
    Wrapped,
    /// In units of 1024.
    Divided,
}

impl Port {
    /// A port whose name and description are the same, as on Linux, with 64-bit counters.
    pub fn new(index: u32, name: &str, input: Counts, output: Counts) -> Self {
        Self { index, name: name.to_owned(), description: name.to_owned(), input, output, wide: true }
    }

    /// The port with wrong counts.
    pub fn miscounting(self, miscount: Miscount) -> Self {
        let change = match miscount {
            Miscount::Wrapped => |value: u64| value % (1 << 32),
            Miscount::Divided => |value: u64| value / 1024,
        };
        Self { input: self.input.map(change), output: self.output.map(change), ..self }
    }
}

/// Changes an answer before it is sent.
pub type Change = Box<dyn FnOnce(Vec<u8>) -> Vec<u8> + Send>;

/// How the agent handles one request.
pub enum Behaviour {
    /// Answers with these ports.
    Answer(Vec<Port>),
    Silent,
    /// Makes a correct answer, and sends a modified copy: truncated, overwritten, something else.
    Changed(Vec<Port>, Change),
}

/// An agent that runs on a thread of its own until it is dropped, in the network namespace of the thread that started
/// it.
#[derive(Debug)]
pub struct TestAgent {
    address: SocketAddr,
    stop: Arc<Event>,
    thread: Option<JoinHandle<()>>,
}

impl TestAgent {
    /// Starts an agent at an address (port 0 takes a free one). It answers requests with the right community;
    /// `behave` is called for each of them.
    pub fn start(
        at: SocketAddr,
        community: &str,
        mut behave: impl FnMut() -> Behaviour + Send + 'static,
    ) -> Result<Self> {
        let listener = UdpListener::bind_at(at)?;
        let socket = listener.watched().map_err(|error| Error::new("share", at.to_string(), error))?;
        let address = SocketAddr::new(at.ip(), listener.port());
        let stop = Arc::new(Event::new()?);
        let stopped = Arc::clone(&stop);
        let community = community.as_bytes().to_vec();
        let start = clock::now();
        let serve = move || {
            let mut buffer = [0; 65_536];
            // An error of the socket ends it: then it is silent, which the client sees.
            while let Ok([asked, false]) = wait_readable([listener.as_fd(), stopped.as_fd()], None) {
                let Ok(arrival) = listener.receive(&mut buffer) else { return };
                let Some(arrival) = arrival.filter(|_| asked) else { continue };
                let question = buffer.get(..arrival.bytes).unwrap_or_default();
                if let Some(answer) = answer(question, &community, start, &mut behave) {
                    // The client may be gone.
                    let _ = socket.send_to(&answer, arrival.source);
                }
            }
        };
        let thread = std::thread::Builder::new().name("snmp-agent".to_owned()).spawn(serve);
        let thread = thread.map_err(|error| Error::new("start", "the test agent", error))?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for TestAgent {
    fn drop(&mut self) {
        self.stop.signal();
        if let Some(thread) = self.thread.take() {
            // A panic of `behave` is the test's, which has reported it.
            let _ = thread.join();
        }
    }
}

/// The maximum number of values in one answer.
const MAX_VALUES: usize = 256;

fn answer(
    question: &[u8],
    community: &[u8],
    start: Instant,
    behave: &mut impl FnMut() -> Behaviour,
) -> Option<Vec<u8>> {
    let message = CommunityMessage::decode(Bytes::copy_from_slice(question), DecodeConfig::default()).ok()?.value;
    let (version, given, pdu) = message.into_parts();
    if version != Version::V2c || given.as_bytes() != community {
        return None;
    }
    let pdu = pdu.standard()?.clone();
    let (ports, change): (Vec<Port>, Change) = match behave() {
        Behaviour::Answer(ports) => (ports, Box::new(|bytes| bytes)),
        Behaviour::Changed(ports, change) => (ports, change),
        Behaviour::Silent => return None,
    };
    let table = table(&ports, start);
    let (kind, id, body) = (pdu.pdu_type(), pdu.request_id(), pdu.raw_body().clone());
    let names: Vec<Oid> = pdu.into_varbinds().into_iter().map(|bound| bound.oid).collect();
    let values = match (kind, body) {
        (PduType::GetRequest, _) => names.into_iter().map(|oid| exactly(&table, oid)).collect(),
        (PduType::GetNextRequest, _) => names.into_iter().map(|oid| next(&table, oid)).collect(),
        (_, PduBody::GetBulk { non_repeaters, max_repetitions }) => {
            bulk(&table, &names, non_repeaters, max_repetitions)
        }
        _ => return None,
    };
    let response = ResponsePdu::success(Version::V2c, id, values).ok()?;
    let message = CommunityMessage::v2c(community, response).ok()?;
    Some(change(message.encode().ok()?.to_vec()))
}

fn exactly(table: &BTreeMap<Oid, Value>, oid: Oid) -> VarBind {
    let value = table.get(&oid).cloned().unwrap_or(Value::NoSuchInstance);
    VarBind::new(oid, value)
}

fn next(table: &BTreeMap<Oid, Value>, oid: Oid) -> VarBind {
    match table.range((Bound::Excluded(&oid), Bound::Unbounded)).next() {
        Some((name, value)) => VarBind::new(name.clone(), value.clone()),
        None => VarBind::new(oid, Value::EndOfMibView),
    }
}

fn bulk(table: &BTreeMap<Oid, Value>, names: &[Oid], single: u32, repetitions: u32) -> Vec<VarBind> {
    let single = usize::try_from(single).unwrap_or(usize::MAX).min(names.len());
    let mut found: Vec<VarBind> = names[..single].iter().map(|oid| next(table, oid.clone())).collect();
    let mut row: Vec<Oid> = names[single..].to_vec();
    for _ in 0..repetitions {
        if row.is_empty() || found.len() + row.len() > MAX_VALUES {
            break;
        }
        let values: Vec<VarBind> = row.into_iter().map(|oid| next(table, oid)).collect();
        row = values.iter().map(|bound| bound.oid.clone()).collect();
        found.extend(values);
    }
    found
}

/// All instances, in MIB order.
fn table(ports: &[Port], start: Instant) -> BTreeMap<Oid, Value> {
    let hundredths = u32::try_from(clock::micros_since(start) / 10_000).unwrap_or(u32::MAX);
    let mut table = BTreeMap::from([(mib::SYS_UP_TIME.of(0), Value::TimeTicks(hundredths))]);
    for port in ports {
        let mut put = |object: Object, value: Value| table.insert(object.of(port.index), value);
        let text = |text: &str| Value::OctetString(Bytes::copy_from_slice(text.as_bytes()));
        put(mib::IF_DESCR, text(&port.description));
        if !port.name.is_empty() {
            put(mib::IF_NAME, text(&port.name));
        }
        if port.wide {
            put(mib::IF_HIGH_SPEED, Value::Gauge32(10_000));
            put(mib::IF_DISCONTINUITY, Value::TimeTicks(0));
            put(mib::IF_LAST_CHANGE, Value::TimeTicks(port.index));
        }
        for (pairs, counts) in [(&mib::INPUT, port.input), (&mib::OUTPUT, port.output)] {
            for (pair, value) in pairs.iter().zip(counts.values()) {
                if let Some(object) = pair.wide.filter(|_| port.wide) {
                    put(object, Value::Counter64(value));
                }
                put(pair.narrow, Value::Counter32(value as u32));
            }
        }
    }
    table
}
