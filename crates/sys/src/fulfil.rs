//! Fulfils the wishes of a process without privileges ([`Wish`]).

use crate::deputy::Wish;
use crate::error::Error;
use crate::raw::{option_u32, set_option};
use crate::thread::set_real_time_of;
use crate::{Result, files, net, sysctl, tcp};
use std::os::fd::BorrowedFd;
use std::path::Path;

/// The largest buffer that an engine requests, in bytes.
const MAX_BUFFER: u32 = 64 << 20;

fn refused(why: &'static str) -> Error {
    Error::new("set", "an option of a socket of another process", std::io::Error::other(why))
}

/// Sets an option of a socket that came from a process that may not: buffers of UDP sockets within a limit, the server's own UDP port,
/// and congestion controls that the kernel has loaded.
/// Errors: no such socket, a value beyond the limits, or the kernel's error.
pub fn fulfil(socket: BorrowedFd<'_>, wish: &Wish, own_port: u16) -> Result<()> {
    let read = |option, name| option_u32(socket, libc::SOL_SOCKET, option, name, "a socket of another process");
    let domain = read(libc::SO_DOMAIN, "read SO_DOMAIN of")?;
    let protocol = read(libc::SO_PROTOCOL, "read SO_PROTOCOL of")?;
    let is_of = |wanted: libc::c_int| {
        [libc::AF_INET, libc::AF_INET6].iter().any(|family| *family as u32 == domain) && protocol == wanted as u32
    };
    let udp = || if is_of(libc::IPPROTO_UDP) { Ok(()) } else { Err(refused("it is not a UDP socket")) };
    let (option, bytes) = match wish {
        Wish::ReceiveBuffer(bytes) => (libc::SO_RCVBUFFORCE, *bytes),
        Wish::SendBuffer(bytes) => (libc::SO_SNDBUFFORCE, *bytes),
        Wish::Bind(address) => {
            udp()?;
            if address.port() != own_port {
                return Err(refused("it is not the server's port"));
            }
            return net::bind(socket, address);
        }
        Wish::RealTime(_) => return Err(refused("it is for threads")),
        Wish::CongestionControl(name) => {
            if !is_of(libc::IPPROTO_TCP) {
                return Err(refused("it is not a TCP socket"));
            }
            let loaded = sysctl::read("net.ipv4.tcp_available_congestion_control")?;
            if !loaded.split_whitespace().any(|one| one == name) {
                return Err(refused("this congestion control is not loaded"));
            }
            return tcp::set_congestion_control(socket, name);
        }
    };
    udp()?;
    if bytes > MAX_BUFFER {
        return Err(refused("the buffer is above 64 MiB"));
    }
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    set_option(socket, libc::SOL_SOCKET, option, &bytes, "force a buffer of", || "a UDP socket".to_owned())
}

/// Gives a thread of another process real-time priority 1.
/// Errors: the thread is not of that process, or the kernel's error.
pub fn real_time(thread: u32, process: u32) -> Result<()> {
    let failed = |error| Error::new("give real-time priority to thread", thread.to_string(), error);
    if thread == 0 || !files::exists(Path::new(&format!("/proc/{process}/task/{thread}"))) {
        return Err(failed(std::io::Error::other("it is not of the process that asks for it")));
    }
    if set_real_time_of(thread) { Ok(()) } else { Err(failed(std::io::Error::last_os_error())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsFd as _;

    #[test]
    fn only_bounded_buffers_of_udp_sockets_and_loaded_congestion_controls_are_set() {
        let udp = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let file = std::fs::File::open("/dev/null").expect("a file");
        let why = |socket: BorrowedFd<'_>, wish| fulfil(socket, &wish, 5220).expect_err("refused").source.to_string();
        assert_eq!(why(udp.as_fd(), Wish::ReceiveBuffer(MAX_BUFFER + 1)), "the buffer is above 64 MiB");
        assert_eq!(why(tcp.as_fd(), Wish::SendBuffer(1 << 20)), "it is not a UDP socket");
        assert_eq!(why(udp.as_fd(), Wish::CongestionControl("reno".into())), "it is not a TCP socket");
        let nosuch = Wish::CongestionControl("nosuch".into());
        assert_eq!(why(tcp.as_fd(), nosuch), "this congestion control is not loaded");
        for of_another in [1, 0] {
            let error = real_time(of_another, std::process::id()).expect_err("refused").source.to_string();
            assert_eq!(error, "it is not of the process that asks for it");
        }
        assert!(why(file.as_fd(), Wish::SendBuffer(1)).contains("os error 88"));
        let at = |port| Wish::Bind(([127, 0, 0, 1], port).into());
        assert_eq!(why(udp.as_fd(), at(53)), "it is not the server's port");
        assert_eq!(why(tcp.as_fd(), at(5220)), "it is not a UDP socket");
        fulfil(tcp.as_fd(), &Wish::CongestionControl("reno".into()), 0).expect("every kernel has it");
    }
}
