//! Other generators. None of them has a receiver, so the receiving interface's counters are used.

use super::setup::{Bench, NICE, WORKERS};
use super::{bare, own};
use crate::network::{DEVICE, End, Received};
use crate::task::{Order, Task};
use crate::tools::{version, words};
use narrows_sys::thread;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The time limit until the first frame.
const START: Duration = Duration::from_secs(10);
/// Delay before counting begins.
const SETTLE: Duration = Duration::from_millis(500);

pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) version: String,
    program: PathBuf,
    words: fn(&Bench<'_>) -> Vec<String>,
    /// Whether an empty program drops its frames at the other end: the pair accepts XDP frames only then. Otherwise
    /// the stack drops them, which is faster for packets that already have an `sk_buff`.
    sink: bool,
    /// The size with FCS, if it is fixed. The interface counters give it only for XDP frames: some kernels count
    /// packets with an `sk_buff` without their Ethernet header.
    frame_bytes: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arrived {
    pub(super) pps: f64,
    /// Mean size with FCS.
    pub(super) frame_bytes: f64,
}

/// The available ones, and a sentence for each that is missing.
pub(super) fn available(bench: &Bench<'_>) -> (Vec<Peer>, Vec<String>) {
    let args = bench.args;
    let (mut peers, mut missing) = (Vec::new(), Vec::new());
    for (name, program, words, sink, frame_bytes, package) in [
        ("trafgen", &args.trafgen, trafgen as fn(&Bench<'_>) -> Vec<String>, false, Some(64.0), "netsniff-ng"),
        ("xdp-trafficgen", &args.xdp_trafficgen, xdp_trafficgen, true, None, "xdp-tools"),
    ] {
        match version(program, "--version") {
            Ok(version) => peers.push(Peer { name, version, program: program.clone(), words, sink, frame_bytes }),
            Err(program) => missing.push(format!(
                "cannot run {}: install it (Debian: apt-get install {package}), or name it with --{name}",
                program.display()
            )),
        }
    }
    (peers, missing)
}

/// 64 bytes with FCS, to an unknown address, so that the stack at the other end drops them as early as possible.
const PACKET: &str = "{ 0x02, 0, 0, 0, 0, 9, 0x02, 0, 0, 0, 0, 1, c16(0x0800), 0x45, 0, c16(46), c16(0), c16(0), 64, 17, \
                      csumip(14, 33), 198, 18, 0, 1, 198, 18, 0, 2, c16(2000), c16(2000), c16(26), c16(0), fill(0, 18) }";

/// One packet, the same on every CPU: any variation costs it time. It bypasses the queueing discipline.
fn trafgen(_: &Bench<'_>) -> Vec<String> {
    let mut all = words(&format!("--dev {DEVICE} --cpus {WORKERS} --num 0 --notouch-irq --no-sock-mem --no-cpu-stats"));
    all.push(PACKET.to_owned());
    all
}

/// Its frames are IPv6, larger than the minimum.
fn xdp_trafficgen(bench: &Bench<'_>) -> Vec<String> {
    let (mac, flows) = (&bench.mac, own::FLOWS);
    words(&format!("udp --dst-mac {mac} --dyn-ports {flows} --threads {WORKERS} {DEVICE}"))
}

impl Peer {
    pub(super) fn measure(&self, bench: &Bench<'_>, seconds: u32) -> Result<Arrived, String> {
        let _sink = self.sink.then(|| bare::Sink::attach(&bench.network)).transpose()?;
        let before = bench.network.received(End::Server)?;
        let limit = START + Duration::from_secs(u64::from(seconds) + 10);
        let words = (self.words)(bench);
        // With the same priority as narrows' workers and the empty programs.
        let order = Order { program: &self.program, words: &words, limit, nice: NICE, heard: false };
        let task = Task::start(&bench.network, End::Client, &order)?;
        let task = self.await_frames(bench, task, before)?;
        let counted = watch(bench, Duration::from_secs(seconds.into()));
        drop(task);
        let arrived = counted?;
        Ok(Arrived { frame_bytes: self.frame_bytes.unwrap_or(arrived.frame_bytes), ..arrived })
    }

    fn await_frames(&self, bench: &Bench<'_>, mut task: Task, before: Received) -> Result<Task, String> {
        let started = Instant::now();
        // A few frames are the kernel's own.
        while bench.network.received(End::Server)?.packets < before.packets + 1000 {
            if !task.runs() {
                let ended = format!("{} ended before it sent", self.name);
                return Err(task.finish()?.failure.unwrap_or(ended));
            }
            if started.elapsed() > START {
                return Err(format!("nothing came of {} in {} s", self.name, START.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(task)
    }
}

/// Reads the receiving interface's counters twice.
fn watch(bench: &Bench<'_>, time: Duration) -> Result<Arrived, String> {
    let counted = || {
        // All CPUs are busy: this thread must read the counters in time.
        let _ = thread::set_real_time();
        std::thread::sleep(SETTLE);
        let (at, before) = (Instant::now(), bench.network.received(End::Server)?);
        std::thread::sleep(time);
        let (passed, after) = (at.elapsed(), bench.network.received(End::Server)?);
        Ok::<_, String>((passed, before, after))
    };
    let (passed, before, after) = counted().inspect_err(|_| thread::set_ordinary())?;
    thread::set_ordinary();
    arrived(passed, before, after).ok_or_else(|| "nothing more came".to_owned())
}

fn arrived(passed: Duration, before: Received, after: Received) -> Option<Arrived> {
    let packets = after.packets.checked_sub(before.packets).filter(|packets| *packets > 0)? as f64;
    let bytes = after.bytes.checked_sub(before.bytes)? as f64;
    // The counters do not include the FCS.
    Some(Arrived { pps: packets / passed.as_secs_f64(), frame_bytes: bytes / packets + 4.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_samples_give_rate_and_size() {
        let look = |packets| Received { packets, bytes: packets * 60 };
        let two_seconds = Duration::from_secs(2);
        assert_eq!(arrived(two_seconds, look(10), look(1010)), Some(Arrived { pps: 500.0, frame_bytes: 64.0 }));
        assert_eq!(arrived(two_seconds, look(10), look(10)), None);
        assert_eq!(arrived(two_seconds, look(10), look(9)), None);
    }
}
