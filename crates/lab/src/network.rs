//! A lab that runs in this process: its hosts, the path between them, the active faults. All of it ends when it is dropped.

use crate::agent::{self, Agent};
use crate::emulator::Path;
use crate::emulator::reserved::Reserved;
use crate::faults::{self, ActiveFault, Fault, Undo, Value, Way};
use crate::host::{self, Host};
use crate::site::Site;
use crate::spec::{LabSpec, check_impairment};
use crate::topology::{InterfacePlan, Topology, Wire};
use crate::{Error, Result, bench};
use narrows_model::lab::{Impairment, PathCounters};
use narrows_model::{Direction, Family, Flow};
use narrows_sys::rtnl::{Links, VethEnd};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub struct Lab {
    spec: LabSpec,
    // Before the hosts: the agents end and the path stops before the interfaces are removed.
    agents: Vec<Agent>,
    path: Option<Path>,
    hosts: Vec<Host>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The path without faults: up, down.
    base: [Impairment; 2],
    faults: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    fault: &'static Fault,
    in_force: ActiveFault,
    value: Value,
    undo: Option<Undo>,
}

const fn index(flow: Flow) -> usize {
    match flow {
        Flow::Up => 0,
        Flow::Down => 1,
    }
}

impl Lab {
    /// Builds the network and starts to carry packets.
    /// Errors: an invalid spec; no privilege, no `/dev/net/tun`; what the kernel refused.
    pub fn up(spec: &LabSpec) -> Result<Self> {
        spec.check()?;
        can_run(spec.topology)?;
        let reserved = Arc::new(Reserved::default());
        let mut hosts = Vec::new();
        for plan in spec.topology.hosts() {
            hosts.push(Host::create(*plan, spec.topology, &reserved)?);
        }
        connect(&hosts)?;
        for host in &hosts {
            host.configure(spec.mtu)?;
        }
        for host in &hosts {
            host.route()?;
        }
        for host in &hosts {
            host.await_addresses()?;
        }
        let path = if spec.topology.has_path() { Some(start_path(spec, &hosts, &reserved)?) } else { None };
        let agents = agent::start_all(spec, &hosts)?;
        for host in &hosts {
            host.await_silence()?;
        }
        let state = State { base: [spec.up.clone(), spec.down.clone()], faults: Vec::new() };
        Ok(Self { spec: spec.clone(), agents, path, hosts, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The spec it was built from.
    pub const fn spec(&self) -> &LabSpec {
        &self.spec
    }

    /// Its hosts, from the client to the server.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// A host by its name.
    /// Errors: no host has that name; the message lists all names.
    pub fn host(&self, name: &str) -> Result<&Host> {
        host::find(&self.hosts, name)
    }

    /// The address of a host.
    pub fn address_of(&self, host: &str, family: Family) -> Option<IpAddr> {
        self.spec.topology.address_of(host, family)
    }

    /// The SNMP agents of its hosts.
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// The impairment of one direction, faults included; nothing if there is no path.
    pub fn impairment(&self, flow: Flow) -> Impairment {
        self.path.as_ref().map(|path| path.impairment(flow)).unwrap_or_default()
    }

    /// Replaces the base impairment of one direction; active faults stay.
    /// Errors: an invalid impairment; a lab without a path.
    pub fn set(&self, flow: Flow, impairment: Impairment) -> Result<()> {
        self.path()?;
        check_impairment(&impairment)?;
        let mut state = self.state();
        if let Some(base) = state.base.get_mut(index(flow)) {
            *base = impairment;
        }
        self.apply(&state);
        Ok(())
    }

    /// The counters of one direction so far.
    pub fn counters(&self, flow: Flow) -> PathCounters {
        self.path.as_ref().map(|path| path.counters(flow)).unwrap_or_default()
    }

    /// Why the path stopped by itself, if it did.
    pub fn failure(&self) -> Option<String> {
        self.path.as_ref()?.failure()
    }

    fn path(&self) -> Result<&Path> {
        self.path.as_ref().ok_or_else(|| Error::NoPath { name: self.spec.name.clone() })
    }

    /// Sets the path to its base impairment plus the active faults.
    fn apply(&self, state: &State) {
        let Some(path) = &self.path else { return };
        for flow in [Flow::Up, Flow::Down] {
            let Some(base) = state.base.get(index(flow)) else { continue };
            let mut impairment = base.clone();
            for entry in &state.faults {
                if let Some(change) = entry.fault.path.filter(|_| entry.in_force.direction.flows().contains(&flow)) {
                    change(&mut impairment, &entry.value, Way { at: entry.in_force.at, flow });
                }
            }
            if impairment != path.impairment(flow) {
                path.set(flow, impairment);
            }
        }
    }

    /// Injects a fault by its id, at a place, with the given value or its default. A fault of the path applies to
    /// the given direction.
    /// Errors: no such fault, wrong place, invalid value, already active; what the kernel refused.
    pub fn fault(
        &self,
        id: &str,
        site: impl Into<Site>,
        value: Option<&str>,
        direction: Direction,
    ) -> Result<ActiveFault> {
        let (fault, place) = (faults::find(id)?, site.into());
        let value = fault.value(place, value)?;
        let mut state = self.state();
        if state.faults.iter().any(|entry| entry.fault.id == fault.id && entry.in_force.at == place) {
            return Err(Error::AlreadyActive { id: fault.id, place });
        }
        let undo = match fault.host.filter(|_| place != Site::Path) {
            Some(inject) => Some(inject(self.host(place.word())?, &value)?),
            None => self.path().map(|_| None)?,
        };
        let in_force = ActiveFault {
            id: fault.id.to_owned(),
            at: place,
            value: value.to_string(),
            direction,
            about: fault.about.to_owned(),
        };
        state.faults.push(Entry { fault, in_force: in_force.clone(), value, undo });
        self.apply(&state);
        Ok(in_force)
    }

    /// Removes a fault, everywhere or at one place. The id `all` means all of them. Returns the removed ones.
    /// Errors: it is not active; what the kernel refused, in which case the others are removed all the same.
    pub fn unfault(&self, id: &str, place: Option<Site>) -> Result<Vec<ActiveFault>> {
        let mut state = self.state();
        let meant = |entry: &Entry| {
            (id == "all" || entry.fault.id == id) && place.is_none_or(|place| entry.in_force.at == place)
        };
        let (gone, kept): (Vec<_>, Vec<_>) = state.faults.drain(..).partition(meant);
        state.faults = kept;
        self.apply(&state);
        if gone.is_empty() && id != "all" {
            let place = place.map(|place| format!(" at {place}")).unwrap_or_default();
            return Err(Error::NotActive { id: id.to_owned(), place });
        }
        let mut failed = None;
        let mut taken_back = Vec::new();
        // The last one first: its previous state is what an earlier one had set.
        for entry in gone.into_iter().rev() {
            let host = self.host(entry.in_force.at.word());
            if let (Some(undo), Ok(host)) = (entry.undo, host)
                && let Err(error) = undo.take_back(host)
            {
                failed = failed.or(Some(error));
            }
            taken_back.push(entry.in_force);
        }
        failed.map_or(Ok(taken_back), Err)
    }

    /// The active faults, the oldest first.
    pub fn faults(&self) -> Vec<ActiveFault> {
        self.state().faults.iter().map(|entry| entry.in_force.clone()).collect()
    }

    /// Takes it down: the same as dropping it.
    pub fn down(self) {}
}

/// Starts the emulated path between its two ends.
fn start_path(spec: &LabSpec, hosts: &[Host], reserved: &Arc<Reserved>) -> Result<Path> {
    let end = |wire| {
        let host = hosts.iter().find(|host| host.has_wire(wire));
        host.and_then(Host::tun).ok_or_else(|| Error::CannotRun("the path has no second end".to_owned()))
    };
    let (near, far) = (end(Wire::PathNear)?, end(Wire::PathFar)?);
    let path = Path::start(near, far, spec.up.clone(), spec.down.clone(), spec.seed, reserved)?;
    for host in hosts.iter().filter(|host| host.tun().is_some()) {
        host.set_link_speed(spec.link_speed_mbps())?;
    }
    Ok(path)
}

/// The plain veth pairs.
fn connect(hosts: &[Host]) -> Result<()> {
    for near in hosts {
        for interface in near.plan().interfaces {
            let Wire::Near(cable) = interface.wire else { continue };
            let far = hosts.iter().find_map(|host| Some((host, host.interface(Wire::Far(cable))?)));
            let Some((far, other)) = far else { continue };
            let namespace = far.namespaces().network();
            near.run(|| -> Result<()> {
                let mut links = Links::open()?;
                if interface.mac.is_none() {
                    return Ok(links.add_veth(interface.name, other.name, namespace)?);
                }
                let end = |plan: &InterfacePlan| VethEnd { name: plan.name, mac: plan.mac, queues: bench::queues() };
                Ok(links.add_veth_pair(end(interface), end(other), namespace)?)
            })??;
        }
    }
    Ok(())
}

/// Lets this process build labs without root: it becomes root of a user namespace of its own. As root it does nothing.
///
/// Call it first, while the process has one thread. `Labs::up` does not need it: its holder does it.
/// Errors: user namespaces are disabled, or there are several threads already.
pub fn enter_user_namespace() -> Result<()> {
    if narrows_sys::process::is_root() {
        return Ok(());
    }
    narrows_sys::netns::become_root_of_user_namespace()
        .map_err(|error| Error::CannotRun(format!("no user namespace: {error}; run it as root")))
}

/// Whether this process can build a lab of that shape.
pub fn can_run(topology: Topology) -> Result<()> {
    let no = |text: &str| Err(Error::CannotRun(text.to_owned()));
    if topology.has_path() && !narrows_sys::files::exists(std::path::Path::new("/dev/net/tun")) {
        return no("/dev/net/tun is missing; load the module with `modprobe tun`, or use a kernel with CONFIG_TUN");
    }
    if !narrows_sys::process::is_root() {
        return no("no permission to create network namespaces; run it as root, or use `narrows lab up`");
    }
    Ok(())
}
