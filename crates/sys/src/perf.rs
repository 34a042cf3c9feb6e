//! Samples of a tracepoint on one CPU, for all processes: `perf_event_open` and its ring in shared memory.
//!
//! Source: perf_event_open(2); kernel `include/uapi/linux/perf_event.h`.

use crate::error::check;
use crate::raw::owned;
use crate::shared::{READ_WRITE, Shared};
use crate::{Error, Result};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// `struct perf_event_attr` up to its first version (`PERF_ATTR_SIZE_VER0`).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    config1: u64,
}

const TYPE_TRACEPOINT: u32 = 2;
const SAMPLE_RAW: u64 = 1 << 10;
/// `PERF_FORMAT_LOST` (Linux 6.0): reading the event also returns how many samples were lost.
const FORMAT_LOST: u64 = 1 << 4;
const FLAG_DISABLED: u64 = 1;
const FLAG_CLOEXEC: libc::c_long = 1 << 3;
const IOC_ENABLE: libc::Ioctl = 0x2400;
const IOC_DISABLE: libc::Ioctl = 0x2401;
/// `_IOW('$', 6, char *)`
const IOC_SET_FILTER: libc::Ioctl = 0x4008_2406;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
/// `struct perf_event_mmap_page`: its two positions start at a fixed offset of 1024.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
const RECORD_HEADER: usize = 8;
/// A record's size is 16 bits.
const RECORD_MAX: usize = 1 << 16;

/// The kernel's counts of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hits {
    /// Occurrences while it was enabled, sampled or lost.
    pub happened: u64,
    /// Samples lost for lack of room in the ring; `None` before Linux 6.0.
    pub lost: Option<u64>,
}

/// The samples of one tracepoint on one CPU.
#[derive(Debug)]
pub struct TracepointRing {
    fd: OwnedFd,
    map: Shared,
    page_bytes: usize,
    ring_bytes: usize,
    tells_lost: bool,
    record: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone and is not tied to the thread that made it.
unsafe impl Send for TracepointRing {}

fn page_bytes() -> usize {
    // SAFETY: sysconf takes a plain number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

fn open_event(tracepoint: u64, cpu: u32, read_format: u64) -> libc::c_long {
    let attributes = Attributes {
        kind: TYPE_TRACEPOINT,
        size: size_of::<Attributes>() as u32,
        config: tracepoint,
        sample_period: 1,
        sample_type: SAMPLE_RAW,
        read_format,
        flags: FLAG_DISABLED,
        ..Attributes::default()
    };
    let every_process: libc::c_long = -1;
    let no_group: libc::c_long = -1;
    // SAFETY: the structure lives through the call and gives its own size; the rest are plain numbers.
    unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            every_process,
            libc::c_long::from(cpu),
            no_group,
            FLAG_CLOEXEC,
        )
    }
}

impl TracepointRing {
    /// Opens the tracepoint with that id (`ID` of its `format`) on a CPU, not yet enabled, with a ring of
    /// `ring_bytes` (rounded up to a power of two of pages).
    /// Errors: no privilege (`CAP_PERFMON`), no such tracepoint or CPU, too much locked memory.
    pub fn open(tracepoint: u64, cpu: u32, ring_bytes: usize) -> Result<Self> {
        let object = || format!("tracepoint {tracepoint} on CPU {cpu}");
        let (mut result, mut tells_lost) = (open_event(tracepoint, cpu, FORMAT_LOST), true);
        if result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
            (result, tells_lost) = (open_event(tracepoint, cpu, 0), false);
        }
        let fd = owned(libc::c_int::try_from(result).unwrap_or(-1), "watch", object())?;
        let page_bytes = page_bytes();
        let ring_bytes = ring_bytes.max(page_bytes).next_power_of_two();
        let map = Shared::of_fd(&fd, page_bytes + ring_bytes, READ_WRITE, 0, 0)
            .map_err(|error| Error::new("map the samples of", object(), error.source))?;
        Ok(Self { fd, map, page_bytes, ring_bytes, tells_lost, record: Vec::new() })
    }

    /// Passes only events that match, in the kernel's filter language (`protocol == 2048`).
    /// Errors: a field that the tracepoint does not have.
    pub fn filter(&self, expression: &str) -> Result<()> {
        let object = || format!("the filter `{expression}`");
        let text = CString::new(expression).map_err(|error| Error::new("set", object(), io::Error::other(error)))?;
        // SAFETY: the string ends in zero and lives through the call.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_SET_FILTER, text.as_ptr()) }, "set", object()).map(drop)
    }

    /// Starts (`true`) or stops the sampling.
    pub fn enable(&self, on: bool) -> Result<()> {
        let request = if on { IOC_ENABLE } else { IOC_DISABLE };
        // SAFETY: the request takes a plain number.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), request, 0) }, "switch", "a tracepoint").map(drop)
    }

    /// The kernel's counts so far.
    pub fn hits(&self) -> Result<Hits> {
        let mut values = [0_u64; 2];
        let wanted = if self.tells_lost { 16 } else { 8 };
        // SAFETY: the buffer has 16 bytes and lives through the call.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), values.as_mut_ptr().cast(), wanted) };
        if usize::try_from(got).ok() != Some(wanted) {
            return Err(Error::last("read", "the count of a tracepoint"));
        }
        Ok(Hits { happened: values[0], lost: self.tells_lost.then_some(values[1]) })
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the offset is one of two eight-byte fields of the mapped control page, aligned, and both sides of the
        // mapping treat it as a number that the other one changes.
        unsafe { &*self.map.at(offset).cast::<AtomicU64>() }
    }

    /// Passes the raw data of each waiting sample to `each` and frees its room. Returns how many records the kernel
    /// reports as lost in between.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        let head = self.position(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.position(DATA_TAIL).load(Ordering::Relaxed);
        let mut lost = 0_u64;
        while tail < head {
            let mut header = [0; RECORD_HEADER];
            self.copy(tail, &mut header);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if size < RECORD_HEADER {
                break; // never written by a kernel; continuing would not end
            }
            let mut record = std::mem::take(&mut self.record);
            record.resize((size - RECORD_HEADER).min(RECORD_MAX), 0);
            self.copy(tail + RECORD_HEADER as u64, &mut record);
            match kind {
                RECORD_SAMPLE => {
                    if let Some(data) = raw(&record) {
                        each(data);
                    }
                }
                RECORD_LOST => lost = lost.saturating_add(crate::netlink::u64_at(&record, 8).unwrap_or(0)),
                _ => {}
            }
            self.record = record;
            tail += size as u64;
        }
        self.position(DATA_TAIL).store(head, Ordering::Release);
        lost
    }

    /// Copies from a position of the ring, around its end.
    fn copy(&self, position: u64, to: &mut [u8]) {
        let start = (position & (self.ring_bytes as u64 - 1)) as usize;
        let first = to.len().min(self.ring_bytes - start);
        let rest = (to.len() - first).min(start);
        // SAFETY: both parts lie within the ring, which begins a page into the mapping; the kernel does not write between
        // the tail and the head; `to` is ours and has room for both.
        unsafe {
            let ring = self.map.at(self.page_bytes);
            std::ptr::copy_nonoverlapping(ring.add(start), to.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(ring, to.as_mut_ptr().add(first), rest);
        }
    }
}

/// The raw data of a sample: its length, then as many bytes. Public for `fuzz/`.
#[doc(hidden)]
pub fn raw(record: &[u8]) -> Option<&[u8]> {
    let length = usize::try_from(crate::netlink::u32_at(record, 0)?).ok()?;
    record.get(4..)?.get(..length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracefs::Tracefs;

    /// The tracepoint of a system call that this test makes; `None` with the reason if there is none.
    fn id(path: &str) -> Option<u64> {
        let text = Tracefs::open().and_then(|tracefs| tracefs.read(path));
        match text {
            Ok(text) => text.lines().find_map(|line| line.strip_prefix("ID: ")?.trim().parse().ok()),
            Err(error) => {
                println!("NOT CHECKED: samples of a tracepoint, since {error}");
                None
            }
        }
    }

    #[test]
    fn drops_on_this_cpu_are_sampled_and_lost_samples_counted() {
        let Some(id) = id("events/skb/kfree_skb/format") else { return };
        let cpu = *crate::cpu::allowed_cpus().unwrap().first().unwrap();
        let mut ring = match TracepointRing::open(id, cpu, 4096) {
            Ok(ring) => ring,
            Err(error) => return println!("NOT CHECKED: samples of a tracepoint, since {error}"),
        };
        assert!(ring.filter("no_such_field == 1").is_err());
        ring.filter("protocol == 2048").unwrap();
        // An unused port on loopback: the datagram is dropped for lack of a socket, on the sender's CPU.
        let send = |count: usize| {
            std::thread::spawn(move || {
                crate::cpu::pin(&[cpu]).unwrap();
                let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
                let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
                for _ in 0..count {
                    socket.send_to(b"x", closed).unwrap();
                }
            })
            .join()
            .unwrap();
        };
        ring.enable(true).unwrap();
        send(5);
        let mut samples = 0;
        assert_eq!(ring.drain(|data| samples += usize::from(data.len() >= 40)), 0);
        assert!(samples >= 5, "{samples}");
        // More than the ring of a page holds, unread.
        send(500);
        ring.enable(false).unwrap();
        let records = ring.drain(|_| samples += 1);
        let hits = ring.hits().unwrap();
        assert!(samples < 505, "{samples} samples in a page");
        if let Some(lost) = hits.lost {
            assert_eq!(samples as u64 + lost, hits.happened, "each event is a sample or lost");
            assert!(records <= lost);
        }
        assert!(hits.happened >= 505);
    }
}
