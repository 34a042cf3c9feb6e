//! Watches the TCP connections of this host: reads their counters at an interval and passes on what limits each. No load is made.

use crate::remote::{Remote, RemoteError, Session};
use crate::watch::repeat;
pub use narrows_collect::control_groups;
use narrows_collect::{Connections, Missing};
use narrows_model::{ConnectionSample, ConnectionsReading, ConnectionsView, Others, Owner};
use narrows_sys::{clock, process};
use narrows_traffic::Stop;
use narrows_views::connections::{Accumulator, join};
use narrows_wire::api::MAX_CONNECTIONS;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Which connections are watched; a filter that is not set lets all pass.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Those of a process with this id or command name.
    pub process: Option<String>,
    /// Those with this port at either end.
    pub port: Option<u16>,
    /// Those with a peer in one of these networks: an address and the length of its prefix.
    pub peers: Vec<(IpAddr, u8)>,
    /// Those of the control groups with these inodes.
    pub control_groups: Option<HashSet<u64>>,
    /// Without those of this process.
    pub others_only: bool,
}

impl Filter {
    /// Whether all filters but that of the process let it pass.
    fn passes(&self, sample: &ConnectionSample) -> bool {
        self.port.is_none_or(|port| sample.local.port() == port || sample.remote.port() == port)
            && (self.peers.is_empty() || self.peers.iter().any(|(to, prefix)| within(sample.remote.ip(), *to, *prefix)))
            && self.control_groups.as_ref().is_none_or(|groups| sample.cgroup.is_some_and(|id| groups.contains(&id)))
    }

    fn passes_process(&self, owner: Option<&Owner>) -> bool {
        if self.others_only && owner.is_some_and(|owner| owner.pid == std::process::id()) {
            return false;
        }
        let Some(wanted) = &self.process else { return true };
        owner.is_some_and(|owner| owner.name == *wanted || owner.pid.to_string() == *wanted)
    }
}

/// Whether an address is in a network.
pub(crate) fn within(address: IpAddr, network: IpAddr, prefix: u8) -> bool {
    let bits = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => (u128::from(u32::from(ip)) << 96, 32),
        IpAddr::V6(ip) => (u128::from(ip), 128),
    };
    let ((a, family), (b, of)) = (bits(address), bits(network));
    let mask = u128::MAX.checked_shl(128 - u32::from(prefix).min(128)).unwrap_or(0);
    family == of && a & mask == b & mask
}

/// Looking for the processes of new sockets reads a link for each descriptor of the host, so not more often than this, and for a
/// hundredth of the time at most.
const OWNERS_EVERY: Duration = Duration::from_secs(5);
const OWNERS_PART: u32 = 100;

/// The connections of this host.
#[derive(Debug)]
pub struct Watched {
    filter: Filter,
    sockets: Connections,
    seen: Accumulator,
    owners: HashMap<u64, Owner>,
    /// Inodes of sockets whose process was not looked for so far.
    new: HashSet<u64>,
    /// Inodes whose process is not visible.
    unowned: HashSet<u64>,
    look_at: Option<Instant>,
}

impl Watched {
    /// Nothing read yet.
    /// Errors: the kernel does not answer.
    pub fn new(filter: Filter) -> Result<Self, Missing> {
        let (sockets, seen) = (Connections::open()?, Accumulator::new(&process::host_name()));
        Ok(Self {
            filter,
            sockets,
            seen,
            owners: HashMap::new(),
            new: HashSet::new(),
            unowned: HashSet::new(),
            look_at: None,
        })
    }

    /// Reads all connections once.
    /// Errors: the kernel does not answer.
    pub fn read(&mut self) -> Result<(), Missing> {
        // The kernel passes over those with other peers.
        let one_peer = match self.filter.peers[..] {
            [(peer, prefix)] if prefix >= if peer.is_ipv6() { 128 } else { 32 } => Some(peer),
            _ => None,
        };
        let mut reading = self.sockets.read(one_peer)?;
        // Of sockets that are gone, mostly; those that are not are looked for again.
        if self.owners.len() + self.unowned.len() > 2 * self.sockets.count() + 1000 {
            (self.owners, self.unowned) = (HashMap::new(), HashSet::new());
            self.sockets.forget();
        }
        reading.changed.retain(|sample| self.filter.passes(sample));
        self.find_owners(&reading.changed);
        let passes = |it: &mut ConnectionSample| self.filter.passes_process(self.owners.get(&it.inode));
        let others: Vec<u64> = reading.changed.extract_if(.., |it| !passes(it)).map(|it| it.id).collect();
        if let Others::Quiet(gone) = &mut reading.others {
            gone.extend(others); // their process was not known before
        }
        self.seen.push(reading);
        Ok(())
    }

    fn find_owners(&mut self, changed: &[ConnectionSample]) {
        let inodes = changed.iter().map(|it| it.inode).filter(|inode| *inode > 0);
        self.new.extend(inodes.filter(|inode| !self.owners.contains_key(inode) && !self.unowned.contains(inode)));
        let begin = clock::now();
        if self.new.is_empty() || self.look_at.is_some_and(|at| begin < at) {
            return;
        }
        self.owners.extend(narrows_collect::owners(&self.new));
        self.unowned.extend(self.new.drain().filter(|inode| !self.owners.contains_key(inode)));
        self.look_at = Some(clock::now() + OWNERS_EVERY.max(begin.elapsed() * OWNERS_PART));
        if self.filter.process.is_some() || self.filter.others_only {
            // What was passed over for want of its process is judged again.
            self.sockets.forget();
        }
    }

    /// What limits each connection; rates are since the reading before. Without `all`, those that carried no data so far are
    /// counted only.
    pub fn view(&mut self, all: bool) -> ConnectionsView {
        let mut view = self.seen.view(&self.owners, all);
        let unseen = view.connections.iter().filter(|it| it.process.is_none()).count();
        if unseen > 0 && !process::is_root() {
            view.remarks.push(format!("the process of {unseen} of them is not visible to this user; root sees it"));
        }
        view
    }
}

/// Why connections cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// This host's kernel does not answer.
    #[error("cannot read the TCP connections: {0}")]
    Here(#[from] Missing),
    /// The other host's server.
    #[error("cannot read the TCP connections of the other host: {0}")]
    There(#[from] RemoteError),
}

/// The other host of the connections, read through its server: of each family of addresses a session, since a server tells of
/// connections with the address that asks only.
pub struct FarEnd {
    sessions: Vec<(IpAddr, Session)>,
    seen: Accumulator,
}

impl FarEnd {
    /// Opens sessions that only read, one by each way to the same server.
    pub fn open(servers: &[Remote]) -> Result<Self, RemoteError> {
        let open = |server: &Remote| Ok((server.data_address().ip().to_canonical(), server.open_look()?));
        let host = servers.first().map(|server| server.hello().host.as_str()).unwrap_or_default();
        Ok(Self { sessions: servers.iter().map(open).collect::<Result<_, _>>()?, seen: Accumulator::new(host) })
    }

    /// The addresses of the host.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.sessions.iter().map(|(address, _)| *address)
    }

    /// Reads the other end of what `near` has just read.
    fn read(&mut self, near: &Watched) -> Result<(), RemoteError> {
        let mut found = Vec::new();
        for (address, session) in &self.sessions {
            let of_host = near.seen.newest().filter(|it| it.remote.ip() == *address);
            let wanted: Vec<_> = of_host.map(|it| (it.local, it.remote)).take(MAX_CONNECTIONS).collect();
            if !wanted.is_empty() {
                found.extend(session.connections(&wanted)?);
            }
        }
        let at_us = found.iter().map(|it| it.at_us).max().unwrap_or_default();
        self.seen.push(ConnectionsReading { at_us, changed: found, others: Others::Gone });
        Ok(())
    }
}

/// Reads and shows until `stop` is set, `count` views were shown, or `show` returns false. With the other host, both ends of each
/// connection are shown. `all`: also those that carried no data so far.
/// Errors: the kernel or the other host does not answer.
pub fn watch(
    filter: Filter,
    mut far: Option<FarEnd>,
    all: bool,
    interval: Duration,
    count: Option<u64>,
    stop: &Stop,
    show: &mut dyn FnMut(&mut ConnectionsView) -> bool,
) -> Result<(), WatchError> {
    let mut watched = Watched::new(filter)?;
    let all = all || far.is_some();
    let mut read = || {
        watched.read()?;
        far.as_mut().map_or(Ok(()), |far| far.read(&watched))?;
        let mut view = watched.view(all);
        if let Some(far) = &far {
            join(&mut view, far.seen.view(&HashMap::new(), true));
        }
        Ok(view)
    };
    read()?;
    let mut failed = None;
    repeat(interval, count, stop, &mut || {
        read().map_err(|error| failed = Some(error)).is_ok_and(|mut it| show(&mut it))
    });
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::ConnectionLimit;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, SocketAddr, TcpStream};

    #[test]
    fn a_network_holds_its_addresses_alone() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(within(ip("10.1.2.3"), ip("10.1.0.0"), 16) && !within(ip("10.2.2.3"), ip("10.1.0.0"), 16));
        assert!(within(ip("10.2.2.3"), ip("0.0.0.0"), 0) && !within(ip("::1"), ip("0.0.0.0"), 0));
        assert!(within(ip("2001:db8::1"), ip("2001:db8::"), 32) && within(ip("::1"), ip("::1"), 128));
    }

    #[test]
    fn a_receiver_that_does_not_read_is_seen_from_both_ends_and_no_packet_is_added() {
        let listener = narrows_sys::net::listen(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        let connect = || {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            narrows_sys::net::connect(address, Duration::from_secs(5), |_| Ok::<_, narrows_sys::Error>(())).unwrap()
        };
        let mut sender = connect();
        let (mut receiver, _) = listener.accept().unwrap();
        let mut idle = connect();
        let mut watched = Watched::new(Filter { port: Some(port), ..Filter::default() }).unwrap();
        watched.read().unwrap();
        // More than both buffers hold.
        sender.set_nonblocking(true).unwrap();
        let data = vec![0_u8; 1 << 20];
        let deadline = clock::now() + Duration::from_secs(20);
        loop {
            while sender.write(&data).is_ok() {}
            watched.read().unwrap();
            let view = watched.view(true);
            let of = |local: &TcpStream| {
                let name = local.local_addr().unwrap().to_string();
                view.connections.iter().find(|it| it.local == name).map(|it| it.limit)
            };
            if of(&sender) == Some(ConnectionLimit::ReceivingApplication) {
                assert_eq!(of(&idle), Some(ConnectionLimit::Idle));
                let own = std::process::id();
                assert!(view.connections.iter().filter_map(|it| it.process.as_ref()).all(|owner| owner.pid == own));
                break;
            }
            assert!(clock::now() < deadline, "{view:#?}");
            clock::sleep(Duration::from_millis(100));
        }
        let packets = |stream: &TcpStream| {
            narrows_sys::sock_diag::tcp_info(stream.local_addr().unwrap(), stream.peer_addr().unwrap())
                .unwrap()
                .unwrap()
                .segs_out
        };
        let before = packets(&idle);
        for _ in 0..20 {
            watched.read().unwrap();
        }
        assert_eq!(packets(&idle), before);
        idle.write_all(b"x").unwrap();
        receiver.read_exact(&mut [0; 100]).unwrap();
    }
}
