//! Drops of the whole kernel, sampled on every CPU.

use super::cannot;
use super::format::{Format, Layout};
use super::tally::Tally;
use crate::{Missing, parse};
use narrows_sys::event::{Event, wait_readable};
use narrows_sys::perf::TracepointRing;
use narrows_sys::{clock, cpu, files};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// `ETH_P_IP`, `ETH_P_IPV6`
const ONLY_IP: &str = "protocol == 2048 || protocol == 34525";
/// Sixteen thousand drops per CPU between two reads.
const RING_BYTES_MAX: usize = 1 << 20;
/// All rings together, on hosts with many CPUs.
const RINGS_BYTES_MAX: usize = 64 << 20;
const RING_BYTES_MIN: usize = 64 << 10;
const CPUS_MAX: usize = 1024;
/// How often the rings are read: rarely enough to cost nothing, often enough for 300,000 drops per second and CPU.
const LOOK: Duration = Duration::from_millis(50);

/// A thread that counts. Its memory is bounded by its rings, its time by the drops that they hold: the excess is counted as lost.
#[derive(Debug)]
pub(super) struct Rings {
    stop: Arc<Event>,
    thread: Option<JoinHandle<Tally>>,
}

impl Rings {
    /// Starts counting.
    /// Errors: why it cannot run here.
    pub(super) fn start(format: &Format) -> Result<Self, Missing> {
        let path = "/sys/devices/system/cpu/online";
        let online = files::read_text(Path::new(path)).map_err(|error| Missing::file(path, &error))?;
        let cpus = parse::cpu_list(path, &online)?;
        if cpus.is_empty() || cpus.len() > CPUS_MAX {
            return Err(Missing::because(format!("{path} names {} CPUs; 1 to {CPUS_MAX} can be watched", cpus.len())));
        }
        let bytes = (RINGS_BYTES_MAX / cpus.len()).clamp(RING_BYTES_MIN, RING_BYTES_MAX);
        // A power of two that is not above the share.
        let bytes = 1 << bytes.ilog2();
        let open = |cpu: &u32| -> narrows_sys::Result<TracepointRing> {
            let ring = TracepointRing::open(format.id, *cpu, bytes)?;
            ring.filter(ONLY_IP)?;
            Ok(ring)
        };
        let rings: Vec<TracepointRing> =
            cpus.iter().map(open).collect::<narrows_sys::Result<_>>().map_err(|error| cannot(&error))?;
        let stop = Arc::new(Event::new().map_err(|error| Missing::because(&error))?);
        for ring in &rings {
            ring.enable(true).map_err(|error| cannot(&error))?;
        }
        let (told, layout) = (Arc::clone(&stop), format.layout);
        let thread = std::thread::Builder::new()
            .name("drop-watch".to_owned())
            .spawn(move || {
                cpu::name_this_thread("drop-watch");
                count(rings, layout, &told)
            })
            .map_err(|error| Missing::because(format!("cannot start a thread that counts drops: {error}")))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends the thread; what it counted.
    pub(super) fn end(&mut self) -> Option<Tally> {
        self.stop.signal();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        self.end();
    }
}

fn count(mut rings: Vec<TracepointRing>, layout: Layout, stop: &Event) -> Tally {
    let mut tally = Tally::default();
    let mut last = false;
    loop {
        let mut missed = 0_u64;
        for ring in &mut rings {
            if last {
                // A failure here only lets a few late drops in.
                let _ = ring.enable(false);
            }
            missed = missed.saturating_add(ring.drain(|data| tally.take(layout, data)));
        }
        tally.missed = tally.missed.saturating_add(missed);
        if last {
            break;
        }
        let started = clock::now();
        last = wait_readable([stop.as_fd(), stop.as_fd()], Some(LOOK)).is_ok_and(|ready| ready[0]);
        // A wait that fails at once must not become a busy loop.
        if !last && clock::micros_since(started) < 1_000 {
            clock::sleep(LOOK);
        }
    }
    tally.close(rings.iter().map(TracepointRing::hits));
    tally
}
