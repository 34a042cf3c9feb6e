//! The thread that moves the bytes of one direction: reads from one TUN, passes packets through the line, writes to the
//! other.

use super::corrupt::corrupt;
use super::cut::{self, HEADERS_MAX};
use super::frame::Frame;
use super::line::{Line, Piece};
use super::meter::Nanos;
use super::pool::Pool;
use super::reserved::Reserved;
use super::too_big;
use super::wake::Wake;
use narrows_model::lab::{Impairment, PathCounters};
use narrows_sys::event::{Event, wait_readable};
use narrows_sys::tun::Tun;
use narrows_sys::{clock, cpu, thread};
use std::io::IoSlice;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum reads between two checks for due packets.
const BATCH: usize = 16;
/// A wait shorter than this is spent spinning: a sleep would end too late.
const SPIN: Nanos = 20_000;
/// A wait longer than this is split in two, and its end is spent spinning: rare departures justify the CPU time.
const LONG: Nanos = 2_000_000;
/// Memory for packets under way: 100 ms at 40 Gbit/s.
const MEMORY_BYTES: usize = 512 << 20;
/// After this idle time the memory is freed.
const QUIET: Nanos = 2_000_000_000;

#[derive(Debug)]
struct Shared {
    wanted: Mutex<Impairment>,
    changes: AtomicU64,
    counters: Mutex<PathCounters>,
    failure: Mutex<Option<String>>,
    stop: AtomicBool,
    wake: Event,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One running direction of a path. It stops when this is dropped.
#[derive(Debug)]
pub struct Relay {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts to carry packets from one host's TUN device to the other's, on cores other than the reserved ones.
    /// Errors: out of descriptors or threads.
    pub fn start(
        name: &str,
        [from, to]: [&Arc<Tun>; 2],
        impairment: Impairment,
        seed: u64,
        reserved: &Arc<Reserved>,
    ) -> narrows_sys::Result<Self> {
        let shared = Arc::new(Shared {
            wanted: Mutex::new(impairment.clone()),
            changes: AtomicU64::new(0),
            counters: Mutex::new(PathCounters::default()),
            failure: Mutex::new(None),
            stop: AtomicBool::new(false),
            wake: Event::new()?,
        });
        let mut carrier = Carrier {
            from: Arc::clone(from),
            to: Arc::clone(to),
            line: Line::new(impairment, seed),
            pool: Pool::new(MEMORY_BYTES),
            headers: Box::new([0; HEADERS_MAX]),
            shared: Arc::clone(&shared),
            began: clock::now(),
            seen_changes: 0,
            reserved: Arc::clone(reserved),
            cores: Vec::new(),
            seen_reserved: 0,
            rested: false,
            wake: Wake::default(),
            arrival: None,
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                thread::exact_timers();
                carrier.cores = cpu::allowed_cpus().unwrap_or_default();
                // The emulator has priority over the load that it carries: a path does not wait for the
                // hosts' processors. Without root it has none, and is less exact on a busy machine.
                let _ = thread::set_real_time() || thread::set_nice(-10);
                if let Err(error) = carrier.run() {
                    *lock(&carrier.shared.failure) = Some(error);
                }
                carrier.publish();
            })
            .map_err(|error| narrows_sys::Error::new("start thread", name, error))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Replaces the impairment from now on.
    pub fn set(&self, impairment: Impairment) {
        *lock(&self.shared.wanted) = impairment;
        self.shared.changes.fetch_add(1, Ordering::Release);
        self.shared.wake.signal();
    }

    pub fn impairment(&self) -> Impairment {
        lock(&self.shared.wanted).clone()
    }

    /// The counters so far, as of one instant.
    pub fn counters(&self) -> PathCounters {
        *lock(&self.shared.counters)
    }

    /// Why it stopped by itself, if it did.
    pub fn failure(&self) -> Option<String> {
        lock(&self.shared.failure).clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake.signal();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Carrier {
    from: Arc<Tun>,
    to: Arc<Tun>,
    line: Line,
    pool: Pool,
    headers: Box<[u8; HEADERS_MAX]>,
    shared: Arc<Shared>,
    began: Instant,
    seen_changes: u64,
    reserved: Arc<Reserved>,
    /// The cores that the thread may run on if none is reserved.
    cores: Vec<u32>,
    seen_reserved: u64,
    /// Whether there was a long wait since the last departure.
    rested: bool,
    wake: Wake,
    /// When the packet arrived that ended the last wait.
    arrival: Option<Nanos>,
}

impl Carrier {
    fn now(&self) -> Nanos {
        u64::try_from(clock::now().saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX)
    }

    fn run(&mut self) -> Result<(), String> {
        let mut quiet = false;
        while !self.shared.stop.load(Ordering::Acquire) {
            self.reconfigure();
            let sent = self.deliver();
            let taken = self.take()?;
            if sent + taken > 0 {
                quiet = false;
                self.publish();
            }
            if taken < BATCH {
                self.wait(&mut quiet).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    fn reconfigure(&mut self) {
        let changes = self.shared.changes.load(Ordering::Acquire);
        if changes != self.seen_changes {
            self.seen_changes = changes;
            let wanted = lock(&self.shared.wanted).clone();
            self.line.configure(wanted);
        }
        let reserved = self.reserved.changes();
        if reserved != self.seen_reserved {
            self.seen_reserved = reserved;
            // If it cannot be moved it is less exact, as on a machine with one core.
            let _ = cpu::pin(&self.reserved.free_of(&self.cores));
        }
    }

    /// Writes the packets that are due; returns the number of pieces.
    fn deliver(&mut self) -> usize {
        let now = self.now();
        let mut sent = 0;
        while let Some(piece) = self.line.depart_by(now) {
            if !self.write(&piece) {
                self.line.refused_by_device(&piece);
            }
            self.pool.release(piece.slot);
            self.rested = false;
            sent += 1;
        }
        sent
    }

    fn write(&mut self, piece: &Piece) -> bool {
        let Some(slot) = self.pool.slot(piece.slot) else { return false };
        if piece.corrupt {
            return self.write_corrupt(piece).is_some();
        }
        if piece.count == slot.frame.segments {
            return self.to.write(&[IoSlice::new(slot.bytes())]).is_ok();
        }
        let bytes = slot.bytes();
        let cut = cut::headers(&slot.frame, bytes, piece.first, piece.count, &mut self.headers);
        let Some((length, payload)) = cut else { return false };
        let (Some(headers), Some(payload)) = (self.headers.get(..length), bytes.get(payload)) else { return false };
        self.to.write(&[IoSlice::new(headers), IoSlice::new(payload)]).is_ok()
    }

    /// Writes a piece of one packet with a flipped bit; `None` if it cannot be split or the device refuses it.
    fn write_corrupt(&mut self, piece: &Piece) -> Option<()> {
        let slot = self.pool.slot(piece.slot)?;
        let bytes = slot.bytes();
        let mut packet = if slot.frame.segments == 1 {
            bytes.to_vec()
        } else {
            let (length, payload) = cut::headers(&slot.frame, bytes, piece.first, 1, &mut self.headers)?;
            [self.headers.get(..length)?, bytes.get(payload)?].concat()
        };
        corrupt(&mut packet);
        self.to.write(&[IoSlice::new(&packet)]).ok().map(drop)
    }

    /// Reads waiting frames, at most a batch; returns their number.
    fn take(&mut self) -> Result<usize, String> {
        for taken in 0..BATCH {
            let read = self.from.read(self.pool.scratch());
            let Some(used) = read.map_err(|error| format!("cannot read from {}: {error}", self.from.name()))? else {
                return Ok(taken);
            };
            let Some(frame) = self.pool.scratch().get(..used).and_then(Frame::parse) else { continue };
            let Some(slot) = self.pool.keep(used, frame) else {
                self.line.refuse(&frame);
                continue;
            };
            let now = self.arrival.take().unwrap_or_else(|| self.now());
            let accepted = self.line.accept(now, slot, &frame);
            if let Some(mtu) = accepted.too_big {
                self.answer_too_big(slot, mtu);
            }
            self.pool.use_by(slot, accepted.pieces);
        }
        Ok(BATCH)
    }

    fn answer_too_big(&self, slot: u32, mtu: u32) {
        if let Some(packet) = self.pool.slot(slot).and_then(|slot| too_big::answer(slot.bytes(), mtu)) {
            // Best effort, as on a router: a host that misses it will send again.
            let _ = self.from.write(&[IoSlice::new(&packet)]);
        }
    }

    fn wait(&mut self, quiet: &mut bool) -> narrows_sys::Result<()> {
        let began = self.now();
        let time = match self.line.next_departure() {
            Some(at) => {
                let left = at.saturating_sub(began);
                let early = if self.rested { self.wake.early() } else { 0 };
                if left <= SPIN.max(early) {
                    std::hint::spin_loop();
                    return Ok(());
                }
                // The kernel may end a wait of ppoll late by a thousandth (`select_estimate_accuracy`):
                // a long one is ended early and followed by a short one.
                self.rested |= left > LONG;
                Some(if left > LONG { left - left / 64 } else { left - early })
            }
            None if *quiet => None,
            None => Some(QUIET),
        };
        let descriptors = [self.from.as_fd(), self.shared.wake.as_fd()];
        let [readable, woken] = wait_readable(descriptors, time.map(Duration::from_nanos))?;
        let ended = self.now();
        if woken {
            self.shared.wake.clear();
        } else if readable {
            self.arrival = Some(self.wake.arrival(began, ended));
        } else if let Some(asked) = time.filter(|asked| *asked < LONG) {
            self.wake.learn(asked, ended.saturating_sub(began + asked));
        } else if self.line.next_departure().is_none() {
            *quiet = true;
            self.pool.shrink();
        }
        Ok(())
    }

    fn publish(&self) {
        *lock(&self.shared.counters) = self.line.counters();
    }
}
