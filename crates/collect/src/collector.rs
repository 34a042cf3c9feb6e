//! What a collector is, and its input: the context of one run and a sink for its facts.

use crate::kernel::{Ethtool, Link, Route};
use crate::{Host, Missing, layers};
use narrows_model::{Absent, Fact, FactKey, Snapshot, Unit, Value};
use std::cell::OnceCell;
use std::net::IpAddr;

/// When a collector runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Before a test: values that do not change under load, at any cost that a user does not notice.
    Inventory,
    /// Right before and after each trial: running counters, cheap.
    Counters,
    Both,
}

impl Class {
    /// Whether a collector of this class runs in `run`.
    pub fn runs_in(self, run: Self) -> bool {
        self == Self::Both || self == run
    }
}

/// One subject of the host: one file below `collectors/`, one line in the table.
#[derive(Debug)]
pub struct Collector {
    pub id: &'static str,
    /// What it reads, in a few words.
    pub about: &'static str,
    /// Every key that it may provide, with its unit.
    pub provides: &'static [FactKey],
    pub class: Class,
    /// Checks whether it can run here; otherwise why not.
    pub can_run: fn(&Context<'_>) -> Result<(), Missing>,
    pub collect: fn(&Context<'_>, &mut Sink<'_>) -> Result<(), Missing>,
}

/// For [`Collector::can_run`]: whether it can run shows only when it runs.
pub const fn always(_: &Context<'_>) -> Result<(), Missing> {
    Ok(())
}

/// For [`Collector::can_run`] of everything about the network interface: there must be one.
/// Errors: why the interface is not known.
pub fn with_device(context: &Context<'_>) -> Result<(), Missing> {
    context.link().map(|_| ())
}

/// The host at the other end of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    pub address: IpAddr,
}

/// What the collectors of one run share: each query is made once.
pub struct Context<'a> {
    /// Where facts come from.
    pub host: &'a dyn Host,
    /// The other end of the path, if there is one.
    pub peer: Option<Peer>,
    route: OnceCell<Result<Route, Missing>>,
    link: OnceCell<Result<Link, Missing>>,
    layers: OnceCell<Result<Layers, Missing>>,
    ethtool: OnceCell<Result<Ethtool, Missing>>,
}

/// The interfaces from the one on the route down, and why the last one is not the end.
type Layers = (Vec<Link>, Option<Missing>);

fn shared<T>(cell: &OnceCell<Result<T, Missing>>, ask: impl FnOnce() -> Result<T, Missing>) -> Result<&T, Missing> {
    cell.get_or_init(ask).as_ref().map_err(Clone::clone)
}

impl<'a> Context<'a> {
    pub(crate) fn new(host: &'a dyn Host, peer: Option<IpAddr>) -> Self {
        Self {
            host,
            peer: peer.or_else(|| host.peer()).map(|address| Peer { address }),
            route: OnceCell::new(),
            link: OnceCell::new(),
            layers: OnceCell::new(),
            ethtool: OnceCell::new(),
        }
    }

    /// The route to the peer, or the default route without a peer.
    pub fn route(&self) -> Result<&Route, Missing> {
        shared(&self.route, || self.host.route(self.peer.map(|peer| peer.address)))
    }

    /// The interface on that route.
    pub fn link(&self) -> Result<&Link, Missing> {
        shared(&self.link, || self.host.link(&self.route()?.device))
    }

    /// That interface and those below it, in the order that a packet passes them; why there must be more that this host does
    /// not show.
    pub fn layers(&self) -> Result<(&[Link], Option<&Missing>), Missing> {
        let (links, hidden) = shared(&self.layers, || {
            Ok(layers::below(self.host, self.link()?, self.route()?, self.peer.map(|peer| peer.address)))
        })?;
        Ok((links, hidden.as_ref()))
    }

    /// The lowest of them: the one with a driver, rings and interrupts.
    pub fn hardware(&self) -> Result<&Link, Missing> {
        Ok(self.layers()?.0.last().unwrap_or(self.link()?))
    }

    /// The driver's answer for [`Context::hardware`].
    pub fn ethtool(&self) -> Result<&Ethtool, Missing> {
        shared(&self.ethtool, || self.host.ethtool(&self.hardware()?.name))
    }

    /// The directory of the NIC's PCI function below `/sys`.
    ///
    /// Found by the address that the driver reports and not below `/sys/class/net`, which shows the network
    /// namespace that it was mounted in and not that of this thread.
    pub fn pci(&self) -> Result<String, Missing> {
        let link = self.hardware()?;
        if link.loopback || link.kind.is_some() {
            return Err(Missing::because(format!("{} is no hardware", link.name)));
        }
        let bus = &self.ethtool()?.driver.get()?.bus;
        if is_pci_address(bus) {
            Ok(format!("/sys/bus/pci/devices/{bus}"))
        } else {
            Err(Missing::because(format!("{} is not on a PCI bus (its bus address is `{bus}`)", link.name)))
        }
    }
}

/// `0000:03:00.0`
fn is_pci_address(bus: &str) -> bool {
    let is_hex = |word: &str, digits: std::ops::RangeInclusive<usize>| {
        digits.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let mut parts = bus.split([':', '.']);
    let (domain, bus_number, device, function) = (parts.next(), parts.next(), parts.next(), parts.next());
    parts.next().is_none()
        && domain.is_some_and(|word| is_hex(word, 4..=8))
        && bus_number.is_some_and(|word| is_hex(word, 2..=2))
        && device.is_some_and(|word| is_hex(word, 2..=2))
        && function.is_some_and(|word| is_hex(word, 1..=1))
}

/// Receives the facts of one collector. Units come from the keys that the collector provides.
pub struct Sink<'a> {
    collector: &'static Collector,
    snapshot: &'a mut Snapshot,
    facts: u32,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(collector: &'static Collector, snapshot: &'a mut Snapshot) -> Self {
        Self { collector, snapshot, facts: 0 }
    }

    pub(crate) fn facts(&self) -> u32 {
        self.facts
    }

    /// Adds a fact. A key that the collector does not provide becomes an absence that says so.
    pub fn fact(&mut self, key: impl Into<String>, value: impl Into<Value>, source: impl Into<String>) {
        let key = key.into();
        match self.unit(&key) {
            Some(unit) => {
                self.snapshot.facts.push(Fact { key, value: value.into(), unit, source: source.into() });
                self.facts += 1;
            }
            None => self.absent(key, &Missing::because("the collector gave a fact that it does not declare")),
        }
    }

    /// Adds a fact, or why it is missing.
    pub fn put<T: Into<Value>>(
        &mut self,
        key: impl Into<String>,
        value: Result<T, Missing>,
        source: impl Into<String>,
    ) {
        match value {
            Ok(value) => self.fact(key, value, source),
            Err(why) => self.absent(key, &why),
        }
    }

    /// Records a key or a family of keys that is missing, and why.
    pub fn absent(&mut self, what: impl Into<String>, why: &Missing) {
        self.snapshot.absent.push(Absent {
            collector: self.collector.id.to_owned(),
            what: what.into(),
            why: why.to_string(),
        });
    }

    fn unit(&self, key: &str) -> Option<Unit> {
        let keys = self.collector.provides;
        let exact = keys.iter().find(|provided| provided.name == key);
        exact.or_else(|| keys.iter().find(|provided| provided.covers(key))).map(|provided| provided.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pci_addresses_are_pci_addresses() {
        for good in ["0000:03:00.0", "10000:e1:00.1", "0000:af:1f.7"] {
            assert!(is_pci_address(good), "{good}");
        }
        for bad in ["", "tap", "usb-0000:00:14.0-1", "0000:03:00", "../../..:00:00.0", "0000:03:00.0.1", "vio.1"] {
            assert!(!is_pci_address(bad), "{bad}");
        }
    }
}
