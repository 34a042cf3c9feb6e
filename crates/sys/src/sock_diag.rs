//! The state of TCP connections, of one by its addresses or of all: no descriptor is needed (include/uapi/linux/inet_diag.h,
//! net/ipv4/inet_diag.c).

use crate::netlink::{self, Family, Socket, attributes, find};
use narrows_model::{ConnectionSample, ConnectionsReading, Others, TcpInfo};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// The older request, whose dump has the sockets of all families in one pass over the kernel's table.
const TCPDIAG_GETSOCK: u16 = 18;
const INET_DIAG_REQ_BYTECODE: u16 = 1;
const INET_DIAG_BC_D_COND: u8 = 8;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;
const INET_DIAG_CGROUP_ID: u16 = 21;
/// `struct inet_diag_msg`
const MESSAGE: usize = 72;
/// `TCP_LISTEN` and states without data: `TCP_TIME_WAIT`, `TCP_CLOSE`, `TCP_NEW_SYN_RECV` (include/net/tcp_states.h).
const WITHOUT_DATA: u32 = 1 << 10 | 1 << 6 | 1 << 7 | 1 << 12;

/// `TCP_INFO` of the connection with these ends, in the calling thread's network namespace. `None`: there is none.
/// Errors: the kernel lacks `CONFIG_INET_DIAG`, or refuses.
pub fn tcp_info(local: SocketAddr, remote: SocketAddr) -> netlink::Result<Option<TcpInfo>> {
    let (local, remote) = (crate::net::canonical(local), crate::net::canonical(remote));
    let request = request(local, remote, u32::MAX, &[INET_DIAG_INFO]);
    match Socket::open(Family::SockDiag)?.request(SOCK_DIAG_BY_FAMILY, 0, &request) {
        Ok(replies) => Ok(replies
            .first()
            .and_then(|reply| find(reply.payload.get(MESSAGE..)?, INET_DIAG_INFO))
            .map(|info| TcpInfo::from_bytes(info.payload))),
        Err(error) if error.errno() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads all TCP connections of a network namespace again and again, and takes apart only those with which something happened.
#[derive(Debug)]
pub struct Connections {
    socket: Socket,
    seen: Seen,
    /// `None`: it was not tried, or cannot be used.
    #[cfg(feature = "xdp")]
    walk: Option<crate::tcp_sockets::Walk>,
    #[cfg(feature = "xdp")]
    may_walk: bool,
}

/// What changes of a connection with whatever happens to it: state, bytes unread and unacknowledged, segments out and in.
pub(crate) type Activity = [u32; 5];

/// From so many connections on, the kernel is asked for the counters of those alone that changed, if that is possible and most did not.
#[cfg(feature = "xdp")]
const MANY: usize = 5_000;
#[cfg(feature = "xdp")]
const FEW_OF: usize = 8;

/// The connections so far, each with its activity and the reading that saw it.
#[derive(Debug, Default)]
struct Seen {
    by_id: HashMap<u64, (Activity, u64)>,
    readings: u64,
    changed: usize,
}

impl Seen {
    fn begin(&mut self) {
        self.readings += 1;
        self.changed = 0;
    }

    /// Whether the counters of this one are of interest.
    fn is_changed(&mut self, id: u64, activity: Activity) -> bool {
        let waits = activity[2] > 0;
        let before = self.by_id.insert(id, (activity, self.readings));
        let is_changed = waits || before.is_none_or(|(before, _)| before != activity);
        self.changed += usize::from(is_changed);
        is_changed
    }

    fn reading(&mut self, at_us: u64, changed: Vec<ConnectionSample>) -> ConnectionsReading {
        let gone = self.by_id.extract_if(|_, (_, seen)| *seen != self.readings).map(|(id, _)| id).collect();
        ConnectionsReading { at_us, changed, others: Others::Quiet(gone) }
    }
}

const WANTED: [u16; 3] = [INET_DIAG_INFO, INET_DIAG_CONG, INET_DIAG_SKMEMINFO];

impl Connections {
    /// In the calling thread's network namespace.
    pub fn open() -> netlink::Result<Self> {
        Ok(Self {
            socket: Socket::open(Family::SockDiag)?,
            seen: Seen::default(),
            #[cfg(feature = "xdp")]
            walk: None,
            #[cfg(feature = "xdp")]
            may_walk: true,
        })
    }

    /// Those that may carry data, at `at_us`; only those with this peer, if given (the kernel selects them).
    /// Errors: the kernel refuses; more sockets than an answer may hold.
    pub fn read(&mut self, at_us: u64, peer: Option<IpAddr>) -> netlink::Result<ConnectionsReading> {
        #[cfg(feature = "xdp")]
        if peer.is_none() && self.seen.by_id.len() >= MANY && self.seen.changed * FEW_OF < self.seen.by_id.len() {
            if self.may_walk && self.walk.is_none() {
                self.walk = crate::tcp_sockets::Walk::load().ok();
            }
            self.may_walk = self.walk.is_some();
            if self.may_walk {
                return self.walk(at_us);
            }
        }
        let Self { socket, seen, .. } = self;
        seen.begin();
        let mut changed = Vec::new();
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        // `struct inet_diag_req`
        let mut request = vec![libc::AF_UNSPEC as u8, 0, 0, bits(&WANTED)];
        request.extend(socket_id(any, any));
        request.extend_from_slice(&(!WITHOUT_DATA).to_ne_bytes());
        request.extend_from_slice(&[0; 4]);
        request.extend(peer.map(only_peer).unwrap_or_default());
        socket.dump(TCPDIAG_GETSOCK, &request, &mut |message| {
            let Some((id, activity)) = activity(message) else { return };
            if seen.is_changed(id, activity) {
                let one = connection(message, at_us).filter(|one| peer.is_none_or(|peer| one.remote.ip() == peer));
                changed.extend(one);
            }
        })?;
        Ok(seen.reading(at_us, changed))
    }

    /// The same by the walk through all sockets, and the counters of those that changed, one by one.
    #[cfg(feature = "xdp")]
    fn walk(&mut self, at_us: u64) -> netlink::Result<ConnectionsReading> {
        let Self { socket, seen, walk, .. } = self;
        seen.begin();
        let mut wanted = Vec::new();
        if let Some(walk) = walk {
            walk.each(&mut |found| {
                if seen.is_changed(found.id(), found.activity()) {
                    wanted.push((found.id(), found.ends()));
                }
            })?;
        }
        let mut changed = Vec::new();
        for (id, [local, remote]) in wanted {
            match socket.request(SOCK_DIAG_BY_FAMILY, 0, &request(local, remote, u32::MAX, &WANTED)) {
                Ok(replies) => {
                    let one = replies.first().and_then(|reply| connection(&reply.payload, at_us));
                    changed.extend(one.filter(|one| one.id == id));
                }
                Err(error) if error.errno() == Some(libc::ENOENT) => {} // it ended meanwhile
                Err(error) => return Err(error),
            }
        }
        Ok(seen.reading(at_us, changed))
    }

    /// How many the newest reading saw.
    pub fn count(&self) -> usize {
        self.seen.by_id.len()
    }

    /// Lets the next reading have all of them with their counters.
    pub fn forget(&mut self) {
        self.seen.by_id.clear();
    }
}

/// The cookie of a socket and what happens to it; `None` of a message that is cut.
fn activity(message: &[u8]) -> Option<(u64, Activity)> {
    let number = |at| netlink::u32_at(message, at);
    let info = find(message.get(MESSAGE..)?, INET_DIAG_INFO)?.payload;
    let segments = |at| netlink::u32_at(info, at);
    let id = u64::from(number(44)?) | u64::from(number(48)?) << 32;
    Some((id, [(*message.get(1)?).into(), number(56)?, number(60)?, segments(136)?, segments(140)?]))
}

/// The attribute with the kernel's filter program of one condition on the peer's address (`struct inet_diag_bc_op`,
/// `inet_diag_hostcond`). Where it does not hold, the offset `no` leads behind the end, which rejects.
fn only_peer(peer: IpAddr) -> Vec<u8> {
    let (family, address) = netlink::octets(peer);
    let condition = 8 + address.len();
    let (yes, no) = (4 + condition, 4 + condition + 4);
    let mut bytes = vec![0, 0];
    bytes.extend_from_slice(&INET_DIAG_REQ_BYTECODE.to_ne_bytes());
    bytes.extend_from_slice(&[INET_DIAG_BC_D_COND, yes as u8]);
    bytes.extend_from_slice(&(no as u16).to_ne_bytes());
    bytes.extend_from_slice(&[family, (address.len() * 8) as u8, 0, 0]);
    bytes.extend_from_slice(&(-1_i32).to_ne_bytes()); // any port
    bytes.extend_from_slice(&address);
    let length = (bytes.len() as u16).to_ne_bytes();
    bytes[..2].copy_from_slice(&length);
    bytes
}

/// A socket from `struct inet_diag_msg` and its attributes; `None` of another family or a message that is cut.
fn connection(message: &[u8], at_us: u64) -> Option<ConnectionSample> {
    let u32_at = |at: usize| Some(u32::from_ne_bytes(message.get(at..at + 4)?.try_into().ok()?));
    let address = |port: usize, ip: usize| {
        let port = u16::from_be_bytes(message.get(port..port + 2)?.try_into().ok()?);
        let ip = match i32::from(*message.first()?) {
            libc::AF_INET => IpAddr::from(<[u8; 4]>::try_from(message.get(ip..ip + 4)?).ok()?),
            libc::AF_INET6 => IpAddr::from(<[u8; 16]>::try_from(message.get(ip..ip + 16)?).ok()?),
            _ => return None,
        };
        Some(SocketAddr::new(ip.to_canonical(), port))
    };
    let mut sample = ConnectionSample {
        id: u64::from(u32_at(44)?) | u64::from(u32_at(48)?) << 32,
        at_us,
        local: address(4, 8)?,
        remote: address(6, 24)?,
        state: *message.get(1)?,
        unread_bytes: u32_at(56)?,
        uid: u32_at(64)?,
        inode: u64::from(u32_at(68)?),
        cgroup: None,
        congestion_control: None,
        memory: None,
        tcp: TcpInfo::default(),
    };
    for attribute in attributes(message.get(MESSAGE..)?) {
        match attribute.kind {
            INET_DIAG_INFO => sample.tcp = TcpInfo::from_bytes(attribute.payload),
            INET_DIAG_CONG => {
                let name = attribute.payload.split(|byte| *byte == 0).next().unwrap_or_default();
                sample.congestion_control = Some(String::from_utf8_lossy(name).into_owned());
            }
            INET_DIAG_SKMEMINFO => sample.memory = Some(crate::tcp::memory_of(attribute.payload)),
            INET_DIAG_CGROUP_ID => sample.cgroup = attribute.u64(),
            _ => {}
        }
    }
    Some(sample)
}

/// `struct inet_diag_req_v2` for sockets in these states, with these attributes.
fn request(local: SocketAddr, remote: SocketAddr, states: u32, wanted: &[u16]) -> Vec<u8> {
    let family = if local.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
    let mut bytes = vec![family as u8, libc::IPPROTO_TCP as u8, bits(wanted), 0];
    bytes.extend_from_slice(&states.to_ne_bytes());
    bytes.extend(socket_id(local, remote));
    bytes
}

/// The attributes that an answer has.
fn bits(wanted: &[u16]) -> u8 {
    wanted.iter().fold(0, |bits, attribute| bits | 1 << (attribute - 1))
}

/// `struct inet_diag_sockid`
fn socket_id(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let mut bytes = [local.port().to_be_bytes(), remote.port().to_be_bytes()].concat();
    for address in [local.ip(), remote.ip()] {
        let mut field = [0_u8; 16];
        match address {
            IpAddr::V4(ip) => field[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => field.copy_from_slice(&ip.octets()),
        }
        bytes.extend_from_slice(&field);
    }
    let scope = match local {
        SocketAddr::V6(v6) => v6.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    bytes.extend_from_slice(&scope.to_ne_bytes());
    bytes.extend_from_slice(&[0xFF; 8]); // INET_DIAG_NOCOOKIE
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::time::Duration;

    #[test]
    fn a_connection_is_found_by_its_addresses_from_both_ends() {
        let listener = crate::net::listen(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
            let address = SocketAddr::from((ip, port));
            let Ok(mut stream) = crate::net::connect(address, Duration::from_secs(5), |_| Ok::<_, crate::Error>(()))
            else {
                continue; // a machine without IPv6
            };
            let (mut accepted, _) = listener.accept().unwrap();
            stream.write_all(b"twelve bytes").unwrap();
            accepted.read_exact(&mut [0; 12]).unwrap();
            for end in [&stream, &accepted] {
                let found = tcp_info(end.local_addr().unwrap(), end.peer_addr().unwrap());
                assert!(found.as_ref().is_ok_and(Option::is_some), "{ip}: {found:?}");
            }
            let received = tcp_info(accepted.local_addr().unwrap(), accepted.peer_addr().unwrap()).unwrap().unwrap();
            assert_eq!(received.bytes_received, Some(12));
            let mut reader = Connections::open().unwrap();
            let all = reader.read(7, None).unwrap().changed;
            let ends = [stream.local_addr().unwrap(), stream.peer_addr().unwrap()].map(crate::net::canonical);
            let here = |peer| {
                let found = Connections::open().unwrap().read(7, Some(peer)).unwrap().changed;
                found.iter().filter(|it| it.local == ends[1]).count()
            };
            let elsewhere: IpAddr = if ip.is_ipv6() { "2001:db8::1".parse().unwrap() } else { [192, 0, 2, 1].into() };
            assert_eq!((here(ends[0].ip()), here(elsewhere)), (1, 0), "{ip}");
            let found: Vec<_> = all.iter().filter(|it| it.local == ends[1] && it.remote == ends[0]).collect();
            let [one] = found[..] else { panic!("{ip}: {found:?}") };
            let next = reader.read(8, None).unwrap();
            assert!(next.changed.iter().all(|it| it.id != one.id), "nothing happened to it");
            assert!(!matches!(next.others, Others::Quiet(gone) if gone.contains(&one.id)));
            stream.write_all(b"!").unwrap();
            accepted.read_exact(&mut [0]).unwrap();
            assert!(reader.read(9, None).unwrap().changed.iter().any(|it| it.id == one.id));
            assert_eq!((one.at_us, one.state, one.unread_bytes, one.tcp.bytes_received), (7, 1, 0, Some(12)));
            assert!(one.inode > 0 && one.id > 0 && one.uid == crate::process::user_id(), "{one:?}");
            assert!(
                one.memory.is_some_and(|memory| memory.rcvbuf_bytes > 1_000 && memory.sndbuf_bytes > 1_000),
                "{one:?}"
            );
            assert!(one.congestion_control.as_ref().is_some_and(|name| name.len() > 2), "{one:?}");
        }
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        assert!(tcp_info(nowhere, nowhere).unwrap().is_none());
    }

    #[cfg(feature = "xdp")]
    #[test]
    fn a_walk_through_the_sockets_says_what_a_dump_says() {
        let mut reader = Connections::open().unwrap();
        reader.walk = match crate::tcp_sockets::Walk::load() {
            Ok(walk) => Some(walk),
            Err(error) => return println!("NOT CHECKED: the walk through sockets: {error}"),
        };
        let listener = crate::net::listen(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(std::net::Ipv6Addr::LOCALHOST)];
        let connect = |ip| {
            let address = SocketAddr::from((ip, port));
            crate::net::connect(address, Duration::from_secs(5), |_| Ok::<_, crate::Error>(())).ok()
        };
        let mut streams: Vec<_> =
            addresses.into_iter().filter_map(connect).map(|it| (it, listener.accept().unwrap().0)).collect();
        let ours = |all: &[ConnectionSample]| {
            let is_ours = |it: &&ConnectionSample| it.local.port() == port || it.remote.port() == port;
            let mut ours: Vec<_> = all.iter().filter(is_ours).map(|it| (it.id, it.local, it.remote)).collect();
            ours.sort_unstable();
            ours
        };
        let all = ours(&reader.read(1, None).unwrap().changed);
        assert_eq!(all.len(), 2 * streams.len());
        assert_eq!(ours(&reader.walk(2).unwrap().changed), [], "the same activity by both ways");
        streams[0].0.write_all(b"twelve bytes").unwrap();
        streams[0].1.read_exact(&mut [0; 12]).unwrap();
        let changed = reader.walk(3).unwrap().changed;
        let received = changed.iter().find(|it| it.tcp.bytes_received == Some(12)).expect("its counters");
        let ends = [received.local, received.remote];
        let wanted = [streams[0].1.local_addr(), streams[0].1.peer_addr()];
        assert_eq!(ends, wanted.map(|it| crate::net::canonical(it.unwrap())));
        assert_eq!(ours(&changed).len(), 2);
        // One ends: it is gone, or without data.
        drop(streams.pop());
        let next = reader.walk(4).unwrap();
        let Others::Quiet(gone) = next.others else { panic!("{next:?}") };
        assert!(all.iter().any(|it| gone.contains(&it.0)) || !ours(&next.changed).is_empty(), "{all:?}");
    }
}
