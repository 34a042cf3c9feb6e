//! A host of the lab: a network, a host name and a view of `/sys` of its own, held by this process alone.

use crate::bench;
use crate::emulator::reserved::Reserved;
use crate::topology::{HostPlan, InterfacePlan, Role, Topology, Wire};
use crate::{Error, Result};
use narrows_model::lab::HostCounters;
use narrows_model::{Family, Place};
use narrows_sys::ethtool::{Device, LinkChange};
use narrows_sys::netns::Namespaces;
use narrows_sys::rtnl::Links;
use narrows_sys::tun::Tun;
use narrows_sys::{clock, files, mount, nftables, process, sysctl};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Queue length of a TUN: it must never drop packets before the emulator sees them.
const TX_QUEUE_PACKETS: u32 = 10_000;

/// Time limit for the kernel to add the routes of its addresses; without them the lab still works over IPv4.
const ADDRESSES: Duration = Duration::from_secs(5);

/// What is mounted below `/sys` and must be visible in a host as well.
const SYS_MOUNTS: &[&str] = &["fs/cgroup", "fs/bpf", "kernel/tracing", "kernel/debug", "kernel/security"];

/// The nf_tables tables of a host whose drops count in [`Host::counters`].
pub(crate) const INPUT_FILTER: &str = "narrows-lab-input";
pub(crate) const OUTPUT_FILTER: &str = "narrows-lab-output";
pub(crate) const FORWARD_FILTER: &str = "narrows-lab-forward-drop";

#[derive(Debug)]
pub struct Host {
    plan: HostPlan,
    topology: Topology,
    namespaces: Namespaces,
    tun: Option<Arc<Tun>>,
    reserved: Arc<Reserved>,
    /// Whether it ever had a filter: querying without one would make the kernel load its module.
    filtered: AtomicBool,
    cautions: Vec<String>,
}

/// An interface of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStatus {
    pub device: String,
    pub addresses: Vec<IpAddr>,
    pub rx_packets: u64,
    pub rx_dropped: u64,
    pub tx_packets: u64,
    /// Dropped by the interface instead of sent.
    pub tx_dropped: u64,
    /// Dropped by the queueing discipline at its root, since that was set.
    pub qdisc_drops: u64,
}

impl Host {
    /// Creates the host and its end of the path, without addresses.
    pub(crate) fn create(plan: HostPlan, topology: Topology, reserved: &Arc<Reserved>) -> Result<Self> {
        let prepare = || -> Result<(Option<Arc<Tun>>, Vec<String>)> {
            let mut cautions = Vec::new();
            if let Err(error) = mount::fresh_sysfs(SYS_MOUNTS) {
                cautions.push(format!("cannot mount /sys for {}: {error}", plan.name));
            }
            if let Err(error) = mount::replace_file(Path::new("/etc/hosts"), topology.hosts_file().as_bytes()) {
                cautions.push(format!("cannot write /etc/hosts of {}: {error}", plan.name));
            }
            let end = plan.interfaces.iter().find(|plan| matches!(plan.wire, Wire::PathNear | Wire::PathFar));
            let tun = end.map(|interface| Tun::open(interface.name, true)).transpose().map_err(explain_tun)?;
            Ok((tun.map(Arc::new), cautions))
        };
        let (namespaces, (tun, cautions)) = Namespaces::create(plan.name, prepare)?;
        let (reserved, filtered) = (Arc::clone(reserved), AtomicBool::new(false));
        Ok(Self { plan, topology, namespaces, tun, reserved, filtered, cautions })
    }

    /// Sets MTU and addresses of the interfaces and sets them up.
    pub(crate) fn configure(&self, mtu: u32) -> Result<()> {
        if self.is_in_bench() {
            return self.run(|| bench::configure(&self.plan, mtu))?;
        }
        self.run(|| -> Result<()> {
            // Runs must not inherit path metrics of earlier ones.
            sysctl::write("net.ipv4.tcp_no_metrics_save", "1")?;
            for interface in self.plan.interfaces {
                let set = |key: &str, value: &str| {
                    let key = format!("net.ipv6.conf.{}.{key}", interface.name);
                    // Absent if IPv6 is disabled.
                    if sysctl::exists(&key) { sysctl::write(&key, value) } else { Ok(()) }
                };
                // No packets that nobody sent: no router solicitation, no link-local address. A veth
                // needs its link-local address for neighbour discovery, and without delay.
                set("router_solicitations", "0")?;
                match interface.wire {
                    Wire::PathNear | Wire::PathFar => set("addr_gen_mode", "1")?,
                    Wire::Near(_) | Wire::Far(_) => set("accept_dad", "0")?,
                }
            }
            if self.plan.role == Role::Router {
                sysctl::write("net.ipv4.ip_forward", "1")?;
                sysctl::write("net.ipv6.conf.all.forwarding", "1")?;
            }
            let mut links = Links::open()?;
            links.set_up("lo", true)?;
            for interface in self.plan.interfaces {
                links.set_mtu(interface.name, mtu)?;
                if matches!(interface.wire, Wire::PathNear | Wire::PathFar) {
                    links.set_tx_queue_length(interface.name, TX_QUEUE_PACKETS)?;
                }
                if let Some(addresses) = interface.addresses {
                    links.add_address(interface.name, addresses.v4.into(), addresses.v4_bits)?;
                    links.add_address(interface.name, addresses.v6.into(), 64)?;
                }
                links.set_up(interface.name, true)?;
            }
            Ok(())
        })?
    }

    /// Sets the default routes, once every interface of the lab is up.
    pub(crate) fn route(&self) -> Result<()> {
        use crate::topology::DefaultRoute;
        use std::net::{Ipv4Addr, Ipv6Addr};
        if self.is_in_bench() {
            return self.run(|| bench::route(&self.plan, self.topology))?;
        }
        self.run(|| -> Result<()> {
            let mut links = Links::open()?;
            for interface in self.plan.interfaces {
                let gateways = match interface.default_route {
                    DefaultRoute::None => continue,
                    DefaultRoute::Direct => (None, None),
                    DefaultRoute::By(v4, v6) => (Some(v4.into()), Some(v6.into())),
                };
                links.add_route(interface.name, Ipv4Addr::UNSPECIFIED.into(), 0, gateways.0)?;
                links.add_route(interface.name, Ipv6Addr::UNSPECIFIED.into(), 0, gateways.1)?;
            }
            Ok(())
        })?
    }

    /// Waits until the kernel delivers packets to the IPv6 addresses: a work queue adds their routes
    /// (`addrconf_dad_work` in net/ipv6/addrconf.c), on a busy machine after the call that added the addresses has
    /// returned.
    pub(crate) fn await_addresses(&self) -> Result<()> {
        let routes = Path::new("/proc/thread-self/net/ipv6_route");
        self.run(|| {
            let missing = || {
                // Absent if IPv6 is disabled.
                let routes = files::read_text(routes).ok()?;
                let is_local = |octets: [u8; 16]| {
                    let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
                    routes.lines().any(|line| line.starts_with(&format!("{digits} 80 ")))
                };
                let mut addresses = self.plan.interfaces.iter().filter_map(|interface| interface.addresses);
                addresses.find(|addresses| !is_local(addresses.v6.octets()))
            };
            let began = clock::now();
            while missing().is_some() && began.elapsed() < ADDRESSES {
                clock::sleep(Duration::from_millis(1));
            }
        })
    }

    /// Waits until a host of a forwarding bench sends no start-up packets any more.
    pub(crate) fn await_silence(&self) -> Result<()> {
        if self.is_in_bench() { self.run(|| bench::await_silence(&self.plan))? } else { Ok(()) }
    }

    const fn is_in_bench(&self) -> bool {
        matches!(self.plan.role, Role::Tester | Role::Device | Role::Switch)
    }

    pub const fn plan(&self) -> &HostPlan {
        &self.plan
    }

    /// The interface that is plugged in there.
    pub(crate) fn interface(&self, wire: Wire) -> Option<&'static InterfacePlan> {
        self.plan.interfaces.iter().find(|plan| plan.wire == wire)
    }

    pub(crate) fn has_wire(&self, wire: Wire) -> bool {
        self.interface(wire).is_some()
    }

    pub(crate) const fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    pub(crate) const fn tun(&self) -> Option<&Arc<Tun>> {
        self.tun.as_ref()
    }

    /// The cores that the path does not use.
    pub(crate) fn reserved(&self) -> &Reserved {
        &self.reserved
    }

    /// Records that the lab added a filter.
    pub(crate) fn note_filter(&self) {
        self.filtered.store(true, Ordering::Relaxed);
    }

    /// Its name: `client`, `router`, `server`; `tester`, `switch`.
    pub const fn name(&self) -> &'static str {
        self.plan.name
    }

    /// Which end of the measured path it is; `None` for a router.
    pub fn place(&self) -> Option<Place> {
        match self.plan.name {
            "client" => Some(Place::Client),
            "server" => Some(Place::Server),
            _ => None,
        }
    }

    /// The device towards the path.
    pub fn device(&self) -> &'static str {
        self.plan.interfaces.first().map_or("lo", |interface| interface.name)
    }

    /// The address under which the other hosts know it.
    pub fn address(&self, family: Family) -> Option<IpAddr> {
        self.plan.address(family)
    }

    /// What this host lacks because the machine did not permit it.
    pub fn cautions(&self) -> &[String] {
        &self.cautions
    }

    /// Runs `work` on a thread inside the host, and returns its result. Threads and processes that it starts are
    /// inside, too.
    /// Errors: the host cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        Ok(self.namespaces.run(work)?)
    }

    /// A command whose process runs inside the host, and is killed when the thread that starts it ends.
    ///
    /// Set its working directory first, if it differs from this process's; start it while the host exists.
    pub fn command(&self, program: &str) -> Command {
        let mut command = process::bound_command(program);
        self.namespaces.apply(&mut command);
        command
    }

    /// Its counters of packets that the path does not see, so far.
    /// Errors: the host cannot be entered, or the kernel does not provide a counter.
    pub fn counters(&self) -> Result<HostCounters> {
        self.run(|| {
            let mut links = Links::open()?;
            let link = links.get(self.device())?;
            let qdisc = links.root_qdisc(self.device())?;
            let dropped_by = |table| match self.filtered.load(Ordering::Relaxed) {
                true => Ok::<_, Error>(nftables::counted(table)?.map(|counted| counted.packets)),
                false => Ok(None),
            };
            Ok(HostCounters {
                rx_packets: link.rx_packets,
                rx_dropped: link.rx_dropped,
                tx_packets: link.tx_packets,
                tx_dropped: link.tx_dropped,
                qdisc_drops: qdisc.as_ref().map_or(0, |qdisc| u64::from(qdisc.drops)),
                qdisc: qdisc.map(|qdisc| qdisc.kind),
                filter_input_drops: dropped_by(INPUT_FILTER)?,
                filter_output_drops: dropped_by(OUTPUT_FILTER)?,
                filter_forward_drops: dropped_by(FORWARD_FILTER)?,
            })
        })?
    }

    /// Its interfaces with their counters, if it has several.
    /// Errors: the host cannot be entered, or the kernel does not provide a counter.
    pub fn ports(&self) -> Result<Vec<PortStatus>> {
        let several = self.plan.interfaces.len() > 1;
        self.run(|| {
            let mut links = Links::open()?;
            let of = |interface: &InterfacePlan| -> Result<PortStatus> {
                let link = links.get(interface.name)?;
                let qdisc = links.root_qdisc(interface.name)?;
                let addresses = interface.addresses;
                Ok(PortStatus {
                    device: interface.name.to_owned(),
                    addresses: addresses.map(|it| vec![it.v4.into(), it.v6.into()]).unwrap_or_default(),
                    rx_packets: link.rx_packets,
                    rx_dropped: link.rx_dropped,
                    tx_packets: link.tx_packets,
                    tx_dropped: link.tx_dropped,
                    qdisc_drops: qdisc.map_or(0, |qdisc| u64::from(qdisc.drops)),
                })
            };
            self.plan.interfaces.iter().filter(|_| several).map(of).collect()
        })?
    }

    /// Sets the speed that the interface towards the path reports, in Mbit/s; returns the previous one.
    /// Errors: the interface does not support it: a veth does not.
    pub fn set_link_speed(&self, mbps: u32) -> Result<Option<u32>> {
        self.run(|| {
            let device = Device::open(self.device())?;
            let before = device.link()?.speed_mbps;
            device.set_link(LinkChange { speed_mbps: Some(mbps), ..LinkChange::default() })?;
            Ok(before)
        })?
    }
}

/// The error with what to do, if the device file is closed to this user.
fn explain_tun(error: narrows_sys::Error) -> Error {
    use std::io::ErrorKind::PermissionDenied;
    if error.object == "/dev/net/tun" && error.source.kind() == PermissionDenied {
        return Error::CannotRun(
            "no permission for /dev/net/tun; run as root, or give the user read and write access to that \
            file"
                .to_owned(),
        );
    }
    error.into()
}

/// The host with that name.
pub(crate) fn find<'a>(hosts: &'a [Host], name: &str) -> Result<&'a Host> {
    hosts.iter().find(|host| host.name() == name).ok_or_else(|| Error::UnknownHost {
        name: name.to_owned(),
        known: hosts.iter().map(Host::name).collect::<Vec<_>>().join(", "),
    })
}
