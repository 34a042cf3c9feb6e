//! A reachable SNMP agent: its interfaces and their counters.

use crate::counters::{Counter, PortCounters, SideCounters, Width};
use crate::error::SnmpError;
use crate::interface::{self, InterfaceName, MAX_INTERFACES};
use crate::mib::{self, Object, Pair};
use crate::session::{REPEATS, Session};
use async_snmp::Value;
use narrows_model::host::snmp::SnmpAgent;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A reachable agent. Each call blocks for at most the timeout given to [`Agent::open`] per request: one for
/// [`Agent::counters`] (two if 64-bit counters are missing), at most twenty per column for [`Agent::interfaces`].
pub struct Agent {
    session: Session,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("address", &self.session.agent()).finish_non_exhaustive()
    }
}

impl Agent {
    /// Connects to an agent and reads its sysUpTime, so that a wrong address, community or password fails here.
    /// `timeout` is how long one request waits for its answer, two repeats included.
    pub fn open(of: &SnmpAgent, timeout: Duration) -> Result<Self, SnmpError> {
        let agent = Self { session: Session::open(of, timeout, REPEATS)? };
        agent.up_time()?;
        Ok(agent)
    }

    /// An agent that sends each request once and waits `timeout` for its answer, so that a lost one counts as lost.
    /// Sends nothing yet.
    pub fn asking_once(of: &SnmpAgent, timeout: Duration) -> Result<Self, SnmpError> {
        Ok(Self { session: Session::open(of, timeout, 0)? })
    }

    /// The values of several objects, from one answer.
    pub(crate) fn values(&self, objects: &[(Object, u32)]) -> Result<Vec<Value>, SnmpError> {
        self.session.get(objects)
    }

    /// Its address, as given.
    pub fn address(&self) -> &str {
        self.session.agent()
    }

    /// sysUpTime in hundredths of a second: a cheap check that it still answers (RFC 2544, section 11.2: one
    /// management query per second).
    pub fn up_time(&self) -> Result<u32, SnmpError> {
        let values = self.session.get(&[(mib::SYS_UP_TIME, 0)])?;
        self.ticks(values.first(), mib::SYS_UP_TIME)
    }

    /// All interfaces sorted by number, at most 4096.
    /// Errors: it does not answer, has no IF-MIB, or has more interfaces.
    pub fn interfaces(&self) -> Result<Vec<InterfaceName>, SnmpError> {
        let mut found: BTreeMap<u32, InterfaceName> = BTreeMap::new();
        for (index, value) in self.session.column(mib::IF_DESCR, MAX_INTERFACES)? {
            if let Some(bytes) = value.as_bytes() {
                let description = interface::text(bytes);
                found.insert(index, InterfaceName { index, name: description.clone(), description });
            }
        }
        for (index, value) in self.session.column(mib::IF_NAME, MAX_INTERFACES)? {
            let Some(name) = value.as_bytes().map(interface::text).filter(|name| !name.is_empty()) else { continue };
            let entry = found.entry(index);
            entry.or_insert_with(|| InterfaceName { index, name: String::new(), description: String::new() }).name =
                name;
        }
        if found.is_empty() {
            return Err(self.absent("ifTable"));
        }
        if found.len() > MAX_INTERFACES {
            let object = "ifTable".to_owned();
            return Err(SnmpError::TooMany { agent: self.address().to_owned(), object, limit: MAX_INTERFACES });
        }
        Ok(found.into_values().collect())
    }

    /// The interface that a plan names: by `#number`, name or description.
    pub fn interface(&self, wanted: &str) -> Result<InterfaceName, SnmpError> {
        let number = wanted.strip_prefix('#').and_then(|number| number.parse::<u32>().ok());
        if let Some(index) = number {
            // Without the listing, which fails on a device with too many interfaces.
            let name = self.name_of(index)?;
            return name.ok_or_else(|| SnmpError::NoInterface {
                agent: self.address().to_owned(),
                wanted: wanted.to_owned(),
                known: "none of that number".to_owned(),
            });
        }
        interface::find(self.address(), &self.interfaces()?, wanted)
    }

    fn name_of(&self, index: u32) -> Result<Option<InterfaceName>, SnmpError> {
        let values = self.session.get(&[(mib::IF_NAME, index), (mib::IF_DESCR, index)])?;
        let texts: Vec<Option<String>> = values.iter().map(|value| value.as_bytes().map(interface::text)).collect();
        Ok(match texts.as_slice() {
            [None, None] => None,
            [name, description] => {
                let description = description.clone().unwrap_or_default();
                let name = name.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| description.clone());
                Some(InterfaceName { index, name, description })
            }
            _ => None,
        })
    }

    /// Reads all counters of an interface in one answer; if 64-bit counters are missing, the 32-bit ones in a
    /// second request.
    /// Errors: it does not answer, or the interface's number now belongs to another interface. A missing counter is not
    /// an error: the counter itself carries the reason.
    pub fn counters(&self, interface: &InterfaceName) -> Result<PortCounters, SnmpError> {
        let index = interface.index;
        let named = if interface.name == interface.description { mib::IF_DESCR } else { mib::IF_NAME };
        let head = [(mib::SYS_UP_TIME, 0), (named, index), (mib::IF_DISCONTINUITY, index), (mib::IF_HIGH_SPEED, index)];
        let pairs = || mib::INPUT.iter().chain(&mib::OUTPUT);
        let first = pairs().map(|pair| (pair.wide.unwrap_or(pair.narrow), index));
        let objects: Vec<(Object, u32)> = head.into_iter().chain(first).collect();
        let values = self.session.get(&objects)?;
        let (head, body) = values.split_at(4);
        self.same(interface, &head[1])?;
        let mut counters: Vec<Counter> = pairs().zip(body).map(|(pair, value)| counter(pair, value)).collect();
        self.narrow(index, &mut counters)?;
        let mut sides = counters.into_iter();
        match (side(&mut sides), side(&mut sides)) {
            (Some(input), Some(output)) => Ok(PortCounters {
                interface: interface.clone(),
                up_time: self.ticks(head.first(), mib::SYS_UP_TIME)?,
                discontinuity: head[2].as_u32(),
                speed_mbps: head[3].as_u32(),
                input,
                output,
            }),
            _ => Err(self.absent("counters")),
        }
    }

    /// Replaces missing 64-bit counters by 32-bit ones.
    fn narrow(&self, index: u32, counters: &mut [Counter]) -> Result<(), SnmpError> {
        let pairs = mib::INPUT.iter().chain(&mib::OUTPUT);
        let missing: Vec<(usize, Object)> = pairs
            .enumerate()
            .filter(|(at, pair)| pair.wide.is_some() && counters[*at].value().is_none())
            .map(|(at, pair)| (at, pair.narrow))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let objects: Vec<(Object, u32)> = missing.iter().map(|(_, object)| (*object, index)).collect();
        for ((at, object), value) in missing.into_iter().zip(self.session.get(&objects)?) {
            if let read @ Counter::Read { .. } = reading(object, Width::Bits32, &value) {
                counters[at] = read;
            }
        }
        Ok(())
    }

    /// Checks that the number still belongs to the interface.
    fn same(&self, interface: &InterfaceName, name: &Value) -> Result<(), SnmpError> {
        let was = if interface.name == interface.description { &interface.description } else { &interface.name };
        let is = name.as_bytes().map(interface::text);
        match is {
            Some(is) if is == *was => Ok(()),
            is => Err(SnmpError::Renumbered {
                agent: self.address().to_owned(),
                number: interface.index,
                was: was.clone(),
                is: is.unwrap_or_else(|| "gone".to_owned()),
            }),
        }
    }

    pub(crate) fn ticks(&self, value: Option<&Value>, object: Object) -> Result<u32, SnmpError> {
        match value {
            Some(Value::TimeTicks(ticks)) => Ok(*ticks),
            Some(Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMibView) | None => {
                Err(self.absent(object.name))
            }
            Some(other) => Err(SnmpError::Wrong {
                agent: self.address().to_owned(),
                object: object.name.to_owned(),
                why: format!("{} instead of a time", other.kind()),
            }),
        }
    }

    fn absent(&self, object: &str) -> SnmpError {
        SnmpError::Absent { agent: self.address().to_owned(), object: object.to_owned() }
    }
}

/// Reads any bytes as what an agent may answer, for `fuzz/`: values as counters, and names of interfaces.
#[doc(hidden)]
pub fn read_any(bytes: &[u8]) -> Vec<Counter> {
    let name = interface::text(bytes);
    let known = InterfaceName { index: 1, name: name.clone(), description: name.clone() };
    let found = interface::find("agent", &[known], &name);
    debug_assert!(found.is_ok() && !name.chars().any(char::is_control));
    let value = |(bytes, pair): (&[u8; 9], &Pair)| {
        let [kind, number @ ..] = *bytes;
        let number = u64::from_le_bytes(number);
        let short = u32::try_from(number & u64::from(u32::MAX)).unwrap_or(0);
        let value = match kind % 6 {
            0 => Value::Counter64(number),
            1 => Value::Counter32(short),
            2 => Value::TimeTicks(short),
            3 => Value::NoSuchObject,
            4 => Value::EndOfMibView,
            _ => Value::Integer(short.cast_signed()),
        };
        counter(pair, &value)
    };
    bytes.as_chunks().0.iter().zip(mib::INPUT.iter().chain(&mib::OUTPUT)).map(value).collect()
}

fn counter(pair: &Pair, value: &Value) -> Counter {
    match pair.wide {
        Some(object) => reading(object, Width::Bits64, value),
        None => reading(pair.narrow, Width::Bits32, value),
    }
}

/// A counter must have the type that the MIB defines: an agent that answers a 64-bit object with 32 bits has only
/// those.
fn reading(object: Object, width: Width, value: &Value) -> Counter {
    let object = object.name;
    match (value, width) {
        (Value::Counter64(value), _) => Counter::Read { object, value: *value, width },
        (Value::Counter32(value), _) => Counter::Read { object, value: u64::from(*value), width: Width::Bits32 },
        (Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMibView, _) => {
            Counter::Absent { object, why: format!("the agent has no {object} for this interface") }
        }
        (other, _) => Counter::Absent { object, why: format!("the agent answered {object} with {}", other.kind()) },
    }
}

fn side(counters: &mut impl Iterator<Item = Counter>) -> Option<SideCounters> {
    Some(SideCounters {
        octets: counters.next()?,
        unicast: counters.next()?,
        multicast: counters.next()?,
        broadcast: counters.next()?,
        discards: counters.next()?,
        errors: counters.next()?,
    })
}
