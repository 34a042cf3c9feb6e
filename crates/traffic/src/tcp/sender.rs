//! A sending stream: a plain loop of blocking calls.

use super::application::{Burn, nanos_since};
use super::batch::Calls;
use super::payload::Payload;
use super::worker::{Left, Worker};
use crate::common::limits::STALL;
use crate::common::outcome::Outcome;
use crate::common::sockets::waits;
use narrows_model::Receive;
use narrows_sys::{clock, tcp};
use std::io::ErrorKind;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// Read the clock at least once per this many bytes: a read costs a noticeable fraction of a small call.
const CLOCK_EVERY_BYTES: usize = 64 << 10;

/// What two ends on one core hand over at a time, where it is copied: a quarter of the second-level cache of common servers. Measured on
/// Zen 4 (1 MiB, two cores), eight streams: 75 Gbit/s without it, 102 with it.
const IN_CACHE_BYTES: usize = 256 << 10;

/// Why the payload's method does not work here; nothing was sent yet.
struct Impossible(std::io::Error);

/// Sends until the trial ends.
pub(super) fn run(worker: &Worker<'_>, socket: &TcpStream, payload: &Payload) -> Left {
    match send(worker, socket, payload) {
        Ok(outcome) => Left { outcome, method: payload.method(), layer: None },
        Err(Impossible(why)) => {
            let plain = || (Payload::buffer(Calls::most(worker.plan)), why.to_string());
            let (plain, _) = worker.shared.plain.get_or_init(plain);
            let outcome = send(worker, socket, plain).unwrap_or(Outcome::Complete);
            Left { outcome, method: plain.method(), layer: None }
        }
    }
}

fn send(worker: &Worker<'_>, stream: &TcpStream, payload: &Payload) -> Result<Outcome, Impossible> {
    let socket = stream.as_fd();
    let mut source = payload.source().map_err(Impossible)?;
    let mut size = Calls::new(worker.plan, clock::now());
    let mut burn = Burn::new(worker.plan.application.write_cpu_us_per_mib);
    let (mut sent, mut calls, mut unclocked) = (0u64, 0u64, 0usize);
    let mut moved_at = clock::now();
    let (copied, mut unread) = (worker.plan.receive == Receive::Copy, 0);
    loop {
        let left = worker.total_bytes.map_or(u64::MAX, |total| total - sent);
        if left == 0 {
            return Ok(finish(worker, stream));
        }
        let portion = size.bytes(sent, calls);
        let portion = worker.pace.map_or(portion, |pace| pace.portion(portion));
        let mut message = usize::try_from(left).unwrap_or(usize::MAX).min(portion);
        burn.spend(message, || worker.is_over());
        if let Some(pace) = worker.pace
            && !worker.wait_until(pace.claim(nanos_since(worker.start), message))
        {
            return Ok(worker.ended());
        }
        let mut at = 0;
        while message > 0 {
            match source.send(socket, at, message) {
                Ok(taken) => {
                    calls += 1;
                    sent += taken as u64;
                    worker.counters.set(0, [sent, calls]);
                    at += taken;
                    message -= taken;
                    unclocked += taken;
                    unread += taken;
                    // Its receiver waits for this core, and what is not read soon leaves the cache.
                    if copied && unread >= IN_CACHE_BYTES && worker.shared.together.load() {
                        unread = 0;
                        std::thread::yield_now();
                    }
                    if worker.total_bytes.is_some() {
                        moved_at = clock::now();
                    }
                }
                Err(error) if waits(&error) => {
                    if worker.total_bytes.is_some() && moved_at.elapsed() > STALL {
                        let why = format!("no data sent for {} s", STALL.as_secs());
                        return Ok(Outcome::GaveUp(why));
                    }
                }
                Err(error) if calls == 0 && source.is_impossible(&error) => return Err(Impossible(error)),
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Outcome::Closed),
                Err(error) => return Ok(Outcome::Broken(error)),
            }
            // A call that took a part has reached its time limit.
            if unclocked >= CLOCK_EVERY_BYTES || message > 0 {
                unclocked = 0;
                if worker.is_over() {
                    return Ok(worker.ended());
                }
            }
        }
        if worker.control.is_over() {
            return Ok(worker.ended());
        }
    }
}

/// Closes the sending side and waits until the peer has everything, or until nothing moves any more.
fn finish(worker: &Worker<'_>, socket: &TcpStream) -> Outcome {
    if let Err(error) = socket.shutdown(Shutdown::Write) {
        return Outcome::Broken(error);
    }
    let (mut queued_before, mut moved_at) = (u32::MAX, clock::now());
    loop {
        if let Some(ended) = worker.control.ended() {
            return ended;
        }
        match (tcp::queued_out(socket), socket.take_error()) {
            (_, Ok(Some(error))) => return Outcome::Broken(error),
            // Once both sides are closed there is no queue to read.
            (Ok(0) | Err(_), _) => return Outcome::Complete,
            (Ok(queued), _) if queued < queued_before => (queued_before, moved_at) = (queued, clock::now()),
            (Ok(queued), _) if moved_at.elapsed() > STALL => {
                return Outcome::GaveUp(format!("the last {queued} bytes were never acknowledged"));
            }
            _ => {}
        }
        clock::sleep(Duration::from_millis(1));
    }
}
