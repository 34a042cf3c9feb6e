//! Small loads with which the lab measures itself: plain sockets, limited in time, each end on a thread inside its host.

#![allow(clippy::disallowed_methods)] // The measurement must not depend on what it judges: std's sockets, not the engine's.

use crate::{Error, Host, Result};
use narrows_model::Family;
use narrows_sys::clock;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// How long an end waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

fn failed(operation: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| narrows_sys::Error::new(operation, "the lab's own probe", error).into()
}

fn any(family: Family) -> SocketAddr {
    match family {
        Family::Ipv4 => (Ipv4Addr::UNSPECIFIED, 0).into(),
        Family::Ipv6 => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

fn reach(host: &Host, family: Family, port: u16) -> Result<SocketAddr> {
    let address = host.address(family).ok_or_else(|| Error::CannotRun(format!("{} has no address", host.name())))?;
    Ok(SocketAddr::new(address, port))
}

fn join<T>(handle: std::thread::ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let deadline = clock::now() + PATIENCE;
    loop {
        match listener.accept() {
            Ok((stream, _)) => return stream.set_nonblocking(false).map(|()| stream),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && clock::now() < deadline => {
                clock::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
}

/// A TCP stream, as seen by its receiver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    /// Bytes in the time after `omit`.
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
}

impl Stream {
    /// Application bits per second.
    pub(crate) fn goodput_bps(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.time.as_secs_f64()
    }
}

/// One TCP stream from one host to another for `omit + time`.
pub(crate) fn tcp(from: &Host, to: &Host, family: Family, omit: Duration, time: Duration) -> Result<Stream> {
    let listener = to.run(|| TcpListener::bind(any(family)))?.map_err(failed("listen for"))?;
    let port = listener.local_addr().map_err(failed("listen for"))?.port();
    let address = reach(to, family, port)?;
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || -> Result<()> {
            let mut stream = from.run(|| TcpStream::connect_timeout(&address, PATIENCE))?.map_err(failed("connect"))?;
            stream.set_write_timeout(Some(PATIENCE)).map_err(failed("set the time limit of"))?;
            let buffer = vec![0x5a; 256 << 10];
            let end = clock::now() + omit + time;
            while clock::now() < end {
                stream.write_all(&buffer).map_err(failed("send from"))?;
            }
            Ok(())
        });
        let receive = || -> io::Result<Stream> {
            let mut stream = accept(&listener)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            let mut buffer = vec![0; 512 << 10];
            let begin = clock::now() + omit;
            let end = begin + time;
            let (mut bytes, mut first) = (0, None);
            loop {
                let got = stream.read(&mut buffer)?;
                let now = clock::now();
                if got == 0 || now >= end {
                    let from = first.unwrap_or(begin);
                    // The rest is read, so that the sender is not cut off.
                    while stream.read(&mut buffer)? > 0 {}
                    return Ok(Stream { bytes, time: now.saturating_duration_since(from) });
                }
                match first {
                    None if now >= begin => first = Some(now),
                    None => {}
                    Some(_) => bytes += got as u64,
                }
            }
        };
        let received = receive();
        join(sender)?;
        received.map_err(failed("receive in"))
    })
}

/// The path is measured, not how long a thread of this machine waits for a core.
fn before_all() {
    let _ = narrows_sys::thread::set_real_time();
}

/// Round-trip times of `count` datagrams of 64 bytes, one after the other, in microseconds and sorted.
pub(crate) fn round_trips(from: &Host, to: &Host, family: Family, count: usize) -> Result<Vec<f64>> {
    let echo = to.run(|| UdpSocket::bind(any(family)))?.map_err(failed("listen for"))?;
    let port = echo.local_addr().map_err(failed("listen for"))?.port();
    let address = reach(to, family, port)?;
    echo.set_read_timeout(Some(PATIENCE)).map_err(failed("set the time limit of"))?;
    std::thread::scope(|scope| {
        let answers = scope.spawn(move || -> io::Result<()> {
            before_all();
            let mut buffer = [0; 128];
            for _ in 0..count {
                let (length, peer) = echo.recv_from(&mut buffer)?;
                echo.send_to(buffer.get(..length).unwrap_or_default(), peer)?;
            }
            Ok(())
        });
        let ask = scope.spawn(move || -> io::Result<Vec<f64>> {
            before_all();
            let socket = from.run(|| UdpSocket::bind(any(family))).map_err(io::Error::other)??;
            socket.connect(address)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            let mut buffer = [0; 128];
            let mut times = Vec::with_capacity(count);
            for _ in 0..count {
                let sent = clock::now();
                socket.send(&[0; 64])?;
                socket.recv(&mut buffer)?;
                times.push(sent.elapsed().as_secs_f64() * 1e6);
            }
            times.sort_by(f64::total_cmp);
            Ok(times)
        });
        let times = join(ask).map_err(failed("ask in"))?;
        join(answers).map_err(failed("answer in"))?;
        Ok(times)
    })
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrivals {
    pub(crate) count: u64,
    /// From the first to the last of them.
    pub(crate) time: Duration,
}

/// Datagrams to send: `calls` sends of `per_call` datagrams with `bytes` of payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Datagrams {
    pub(crate) calls: u64,
    pub(crate) per_call: u32,
    pub(crate) bytes: u32,
    /// Time from one call to the next.
    pub(crate) every: Duration,
}

/// Sends them from one host to another; the receiver listens until none has come for `quiet`.
pub(crate) fn datagrams(from: &Host, to: &Host, family: Family, load: Datagrams, quiet: Duration) -> Result<Arrivals> {
    let sink = to.run(|| UdpSocket::bind(any(family)))?.map_err(failed("listen for"))?;
    narrows_sys::udp::set_receive_buffer(&sink, 64 << 20)?;
    let port = sink.local_addr().map_err(failed("listen for"))?.port();
    let address = reach(to, family, port)?;
    sink.set_read_timeout(Some(quiet)).map_err(failed("set the time limit of"))?;
    let socket = from.run(|| UdpSocket::bind(any(family)))?.map_err(failed("send from"))?;
    if load.per_call > 1 {
        narrows_sys::udp::set_segment_bytes(&socket, load.bytes)?;
    }
    socket.connect(address).map_err(failed("send from"))?;
    let payload = vec![0; (load.per_call * load.bytes) as usize];
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || -> io::Result<()> {
            let mut due = clock::now();
            for _ in 0..load.calls {
                wait_until(due);
                socket.send(&payload)?;
                due += load.every;
            }
            Ok(())
        });
        let receive = || -> io::Result<Arrivals> {
            let mut buffer = vec![0; 65_536];
            let (mut count, mut first, mut last) = (0, None, None);
            loop {
                match sink.recv(&mut buffer) {
                    Ok(_) => {
                        let now = clock::now();
                        count += 1;
                        first = first.or(Some(now));
                        last = Some(now);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            let time = match (first, last) {
                (Some(first), Some(last)) => last.saturating_duration_since(first),
                _ => Duration::ZERO,
            };
            Ok(Arrivals { count, time })
        };
        let arrivals = receive();
        join(sender).map_err(failed("send from"))?;
        arrivals.map_err(failed("receive in"))
    })
}

fn wait_until(at: Instant) {
    let left = at.saturating_duration_since(clock::now());
    if !left.is_zero() {
        clock::sleep(left);
    }
}
