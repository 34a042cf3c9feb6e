//! One UDP socket for all peers. It knows the local address of each datagram (`IP_PKTINFO`), so that the answer is sent from
//! the same one: on a host with several addresses the kernel would choose another.

use super::marked::{self, Marks};
use super::socket;
use crate::confine::user::User;
use crate::{Error, Result, net};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its length, even if the buffer was shorter.
    pub bytes: usize,
    /// The sender; an IPv4 address as such, even on an IPv6 socket.
    pub source: SocketAddr,
    /// The local address it was sent to, with the listener's port.
    pub local: SocketAddr,
    /// What its IP header said, where that was asked for ([`UdpListener::mark`]).
    pub marks: Marks,
}

#[derive(Debug)]
pub struct UdpListener {
    socket: UdpSocket,
    port: u16,
    ipv6: bool,
}

impl UdpListener {
    /// Binds a port of all addresses, IPv6 and IPv4 on one socket; on a host without IPv6, of all IPv4 addresses.
    /// Port 0 takes a free one.
    /// Errors: the port, and the kernel's error: usually that it is in use.
    pub fn bind(port: u16) -> Result<Self> {
        match Self::bind_at(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))) {
            Err(error) if matches!(error.errno(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)) => {
                Self::bind_at(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))
            }
            done => done,
        }
    }

    /// Binds one address; the unspecified IPv6 address takes IPv4 datagrams as well.
    /// Errors: the address, and the kernel's error.
    pub fn bind_at(address: SocketAddr) -> Result<Self> {
        let fd = socket::open(&address)?;
        if address.is_ipv6() {
            net::set_flag(&fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 0, "clear IPV6_V6ONLY of", &address)?;
            net::set_flag(&fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1, "set IPV6_RECVPKTINFO of", &address)?;
        } else {
            net::set_flag(&fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1, "set IP_PKTINFO of", &address)?;
        }
        net::bind(&fd, &address)?;
        let socket = UdpSocket::from(fd);
        let local = socket.local_addr().map_err(|error| Error::new("name", address.to_string(), error))?;
        Ok(Self { socket, port: local.port(), ipv6: address.is_ipv6() })
    }

    /// Lets sockets of that user share the port, and those of this one no longer ([`socket::connect_from`]): the kernel compares the
    /// owners of sockets. Needs `CAP_CHOWN`.
    pub fn give_to(&self, user: &User) -> Result<()> {
        let given = std::os::unix::fs::fchown(&self.socket, Some(user.id), Some(user.group));
        given.map_err(|error| Error::new("give the UDP port to", user.name.clone(), error))
    }

    /// A second, non-blocking handle of the socket, for an event loop.
    pub fn watched(&self) -> io::Result<UdpSocket> {
        let socket = self.socket.try_clone()?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }

    /// The port, even if 0 was requested.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Receives the next datagram into `buffer`, without blocking. `None`: there is none. Wait for one with
    /// [`crate::event::wait_readable`].
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Option<Arrival>> {
        let taken = match marked::receive(&self.socket, buffer) {
            Ok(taken) => taken,
            // An ICMP error for one of our answers does not concern the next peer.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            Err(error) => return Err(Error::new("receive at", format!("UDP port {}", self.port), error)),
        };
        Ok(taken.source.zip(taken.local(self.port)).map(|(source, local)| Arrival {
            bytes: taken.bytes,
            source,
            local,
            marks: taken.marks,
        }))
    }

    /// Asks the kernel for [`Marks`] of what arrives, and sends with a TTL or hop limit of 255.
    pub fn mark(&self) -> Result<()> {
        marked::ask(&self.socket, self.ipv6)
    }

    /// Sends from the address that the datagram was sent to, at the listener's own socket, with this traffic class.
    /// Errors: `WouldBlock`: no room now; otherwise the kernel's error.
    pub fn answer_marked(&self, bytes: &[u8], to: &Arrival, class: u8) -> io::Result<()> {
        marked::send(&self.socket, self.ipv6, bytes, to.source, to.local.ip(), class)
    }

    /// Sends an answer from the address that the datagram was sent to.
    /// Errors: the address, and the kernel's error.
    pub fn answer(&self, bytes: &[u8], to: &Arrival) -> Result<()> {
        let socket = socket::connect_from(to.local, to.source)?;
        socket.send(bytes).map_err(|error| Error::new("send to", to.source.to_string(), error))?;
        Ok(())
    }
}

impl AsFd for UdpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, wait_readable};
    use std::net::IpAddr;
    use std::time::Duration;

    #[test]
    fn another_user_cannot_take_the_port() {
        let listener = UdpListener::bind(0).expect("a free port");
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, listener.port()));
        UdpListener::bind_at(address).expect("the same user shares it");
        let of_another = |options: &'static [libc::c_int]| {
            let bound = std::thread::spawn(move || {
                // The call of libc would change the whole process.
                // SAFETY: plain numbers; the thread ends with this closure.
                if unsafe { libc::syscall(libc::SYS_setresuid, 65_534, 65_534, 65_534) } != 0 {
                    return None;
                }
                let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
                let fd = crate::raw::socket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_UDP, "open", "a socket")
                    .expect("a socket");
                for option in options {
                    net::set_flag(&fd, libc::SOL_SOCKET, *option, 1, "set an option of", &any).expect("set");
                }
                Some(net::bind(&fd, &address).map_err(|error| error.errno()))
            });
            bound.join().expect("no panic")
        };
        let Some(refused) = of_another(&[libc::SO_REUSEADDR, libc::SO_REUSEPORT]) else {
            return println!("NOT CHECKED: the port against another user, since this user cannot become one");
        };
        assert_eq!(refused, Err(Some(libc::EADDRINUSE)));
        listener.give_to(&User { name: "nobody".into(), id: 65_534, group: 65_534 }).expect("root gives it");
        assert_eq!(of_another(&[libc::SO_REUSEPORT]), Some(Ok(())));
        assert_eq!(UdpListener::bind_at(address).expect_err("it is another's now").errno(), Some(libc::EADDRINUSE));
    }

    #[test]
    fn the_local_address_is_known_and_a_connected_socket_takes_over() {
        let listener = UdpListener::bind(0).expect("a free port");
        let never = Event::new().expect("an event");
        let next = |buffer: &mut [u8]| {
            let _ = wait_readable([listener.as_fd(), never.as_fd()], Some(Duration::from_secs(5)));
            listener.receive(buffer).expect("received")
        };
        for ip in [IpAddr::from([127, 0, 0, 9]), IpAddr::from(Ipv6Addr::LOCALHOST)] {
            let Ok(client) = socket::connect(SocketAddr::new(ip, listener.port())) else {
                continue; // a machine without IPv6
            };
            client.set_read_timeout(Some(Duration::from_secs(5))).expect("an option");
            client.send(&[7; 40]).expect("sent");
            let mut buffer = [0; 8];
            let arrival = next(&mut buffer).expect("a datagram");
            assert_eq!((arrival.bytes, buffer), (40, [7; 8]));
            assert_eq!(arrival.local, SocketAddr::new(ip, listener.port()));
            assert_eq!(arrival.source, client.local_addr().expect("bound"));

            // The answer must come from the address that the client used, or its connected socket would
            // reject it.
            listener.answer(b"no", &arrival).expect("answered");
            assert_eq!(client.recv(&mut buffer).expect("an answer"), 2);

            let stream = socket::connect_from(arrival.local, arrival.source).expect("a socket beside the listener");
            stream.set_read_timeout(Some(Duration::from_secs(5))).expect("an option");
            client.send(b"to the stream").expect("sent");
            assert_eq!(stream.recv(&mut [0; 100]).expect("received"), 13);
            assert_eq!(listener.receive(&mut buffer).expect("looked"), None);
        }
    }
}
