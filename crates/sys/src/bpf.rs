//! BPF objects: loaded by `aya`; run, attached and read by direct system calls, so that the kernel removes an attachment when
//! the process ends, however it ends.
//!
//! Source: bpf(2), kernel `include/uapi/linux/bpf.h`, `net/bpf/test_run.c`, `Documentation/bpf/bpf_prog_run.rst`.

use crate::bpf_programs::{ATTACH_XDP, LINK_CREATE, SKB_MODE, call};
use crate::raw::owned;
use crate::{Error, Result};
use aya::maps::{Map, MapData};
use aya::programs::Program;
use aya::{Ebpf, EbpfLoader};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};

const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_MAP_GET_NEXT_KEY: libc::c_int = 4;
const BPF_PROG_TEST_RUN: libc::c_int = 10;
/// `BPF_TRACE_ITER` of `enum bpf_attach_type`.
pub(crate) const ATTACH_ITERATOR: u32 = 28;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
/// The maximum number of entries that are read from a table.
const ENTRIES_MAX: usize = 1 << 17;
/// The maximum size of a map's value.
const VALUE_MAX: usize = 1 << 22;

/// Where an XDP program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XdpMode {
    Native,
    /// After the driver, on packets that already have their `sk_buff`.
    Generic,
}

#[derive(Debug)]
pub struct Object {
    name: &'static str,
    program: OwnedFd,
    maps: Vec<Table>,
    // Owns what the program needs.
    _ebpf: Ebpf,
}

/// A map of a loaded object.
#[derive(Debug)]
pub(crate) struct Table {
    name: String,
    fd: OwnedFd,
    key_bytes: usize,
    value_bytes: usize,
    /// Number of values per entry: one, or one per possible CPU.
    values: usize,
}

/// An attached program; it is detached when this is dropped or the process ends.
#[derive(Debug)]
pub struct Attached {
    _link: OwnedFd,
}

/// Attributes of a call: the fields of the anonymous structures of `union bpf_attr`, in their order.
#[derive(Default)]
pub(crate) struct Attributes(pub(crate) Vec<u8>);

impl Attributes {
    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn fd(self, fd: RawFd) -> Self {
        self.u32(u32::try_from(fd).unwrap_or(u32::MAX))
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn pointer<T>(self, to: *const T) -> Self {
        self.u64(to as usize as u64)
    }
}

/// The text of an error and of its causes: `aya` reports the verifier's message only there.
pub(crate) fn chain(error: &dyn std::error::Error) -> io::Error {
    let mut text = error.to_string();
    let mut below = error.source();
    let mut errno = None;
    while let Some(cause) = below {
        errno = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error).or(errno);
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        below = cause.source();
    }
    match errno {
        // Callers check the kernel's error number.
        Some(errno @ (libc::EPERM | libc::EACCES)) => io::Error::from_raw_os_error(errno),
        _ => io::Error::other(text),
    }
}

impl Object {
    /// Loads the XDP program `name` of an ELF object, whose constant `config` is set to these bytes.
    /// Errors: no privilege, no BPF in this kernel, or the verifier's message.
    pub fn load(name: &'static str, elf: &[u8], config: &[u8]) -> Result<Self> {
        Self::load_sized(name, elf, config, &[])
    }

    /// The same, with the given number of entries in some of its maps.
    pub fn load_sized(name: &'static str, elf: &[u8], config: &[u8], maps: &[(&str, u32)]) -> Result<Self> {
        let failed = |error: &dyn std::error::Error| Error::new("load the XDP program", name, chain(error));
        let mut loader = EbpfLoader::new();
        loader.override_global("config", config, true);
        for (map, entries) in maps {
            loader.map_max_entries(map, *entries);
        }
        let mut ebpf = loader.load(elf).map_err(|error| failed(&error))?;
        let missing = || Error::new("load the XDP program", name, io::Error::other("it is not in the object"));
        let Some(Program::Xdp(program)) = ebpf.program_mut(name) else { return Err(missing()) };
        program.load().map_err(|error| failed(&error))?;
        let program = program.fd().map_err(|error| failed(&error))?;
        let program = program
            .as_fd()
            .try_clone_to_owned()
            .map_err(|error| Error::new("copy the descriptor of the XDP program", name, error))?;
        let maps = ebpf.maps().filter_map(|(name, map)| Table::of(name, map)).collect::<Result<_>>()?;
        Ok(Self { name, program, maps, _ebpf: ebpf })
    }

    /// Attaches it to the device with that index in the calling thread's network namespace.
    /// Errors: the device has another program attached (`EBUSY`), its driver does not support XDP (`EOPNOTSUPP`), or
    /// its MTU is too large for it (`ERANGE`, `EINVAL`).
    pub fn attach(&self, index: u32, mode: XdpMode) -> Result<Attached> {
        let flags = match mode {
            XdpMode::Native => XDP_FLAGS_DRV_MODE,
            XdpMode::Generic => SKB_MODE,
        };
        let attributes = Attributes::default().fd(self.program.as_raw_fd()).u32(index).u32(ATTACH_XDP).u32(flags);
        // The rest of the union for other kinds of links: zeroes.
        let mut attributes = attributes.u64(0).u64(0).u64(0).u64(0);
        let fd = call(LINK_CREATE, &mut attributes.0)
            .map_err(|error| Error::new("attach the XDP program", self.name, error))?;
        Ok(Attached { _link: owned(fd, "attach the XDP program", self.name)? })
    }

    /// Runs it `times` times on live frames that appear to arrive on the device with that index, in batches of
    /// `batch` frames, 1 to 256, which start as copies of `frame`. Its return value decides what happens to them.
    /// Errors: `EINVAL`: this kernel does not support live frames (Linux 5.18) or the frame does not fit a page;
    /// `EINTR`: a signal arrived.
    pub fn run_live(&self, index: u32, frame: &[u8], times: u32, batch: u32) -> Result<()> {
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        // `struct xdp_md`: data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex.
        let context = [0, length, 0, index, 0, 0];
        let mut attributes = Attributes::default()
            .fd(self.program.as_raw_fd())
            .u32(0) // retval
            .u32(length)
            .u32(0) // data_size_out
            .pointer(frame.as_ptr())
            .u64(0) // data_out
            .u32(times)
            .u32(0) // duration
            .u32(u32::try_from(size_of_val(&context)).unwrap_or(0))
            .u32(0) // ctx_size_out
            .pointer(context.as_ptr())
            .u64(0) // ctx_out
            .u32(BPF_F_TEST_XDP_LIVE_FRAMES)
            .u32(0) // cpu
            .u32(batch)
            .u32(0);
        call(BPF_PROG_TEST_RUN, &mut attributes.0)
            .map(drop)
            .map_err(|error| Error::new("run live frames of the XDP program", self.name, error))
    }

    fn table(&self, map: &str) -> Result<&Table> {
        let missing = || Error::new("read the map", map, io::Error::other("the object has none of this name"));
        self.maps.iter().find(|table| table.name == map).ok_or_else(missing)
    }

    /// The values of an entry: one, or one per possible CPU, each of the length that the program declared.
    /// Errors: no such map, no such entry.
    pub fn read(&self, map: &str, key: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.table(map)?.read(key)
    }

    /// Sets the value of an entry of a map that is not per CPU.
    /// Errors: no such map or entry, or a wrong length.
    pub fn write(&self, map: &str, key: &[u8], value: &[u8]) -> Result<()> {
        let table = self.table(map)?;
        let failed = |error: io::Error| Error::new("write the map", map, error);
        if table.values != 1 || key.len() != table.key_bytes || value.len() != table.value_bytes {
            return Err(failed(io::Error::other(format!(
                "a key has {} bytes and a value {}",
                table.key_bytes, table.value_bytes
            ))));
        }
        let mut attributes =
            Attributes::default().fd(table.fd.as_raw_fd()).pointer(key.as_ptr()).pointer(value.as_ptr()).u64(0);
        call(BPF_MAP_UPDATE_ELEM, &mut attributes.0).map(drop).map_err(failed)
    }

    /// All keys of a table, at most 2^17 of them.
    pub fn keys(&self, map: &str) -> Result<Vec<Vec<u8>>> {
        self.table(map)?.keys()
    }
}

impl Table {
    /// `None` where it is of a kind that is not read.
    pub(crate) fn of(name: &str, map: &Map) -> Option<Result<Self>> {
        let (data, per_cpu): (&MapData, bool) = match map {
            Map::Array(data) | Map::HashMap(data) => (data, false),
            Map::PerCpuArray(data) | Map::PerCpuHashMap(data) => (data, true),
            _ => return None,
        };
        Some(Self::open(name, data, per_cpu))
    }

    fn open(name: &str, data: &MapData, per_cpu: bool) -> Result<Self> {
        let failed = |error: io::Error| Error::new("open the map", name, error);
        let info = data.info().map_err(|error| failed(chain(&error)))?;
        let value_bytes = info.value_size() as usize;
        let values = match per_cpu {
            true => aya::util::nr_cpus().map_err(|(_, error)| failed(error))?,
            false => 1,
        };
        // The kernel pads each CPU's value to whole words.
        if value_bytes.next_multiple_of(8).saturating_mul(values) > VALUE_MAX {
            return Err(failed(io::Error::other("its values are too long to be read")));
        }
        Ok(Self {
            name: name.to_owned(),
            fd: data.fd().as_fd().try_clone_to_owned().map_err(failed)?,
            key_bytes: info.key_size() as usize,
            value_bytes,
            values,
        })
    }

    /// See [`Object::keys`].
    pub(crate) fn keys(&self) -> Result<Vec<Vec<u8>>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        while keys.len() < ENTRIES_MAX {
            let mut next = vec![0_u8; self.key_bytes];
            let last = keys.last().map_or(std::ptr::null(), Vec::as_ptr);
            let mut attributes = Attributes::default().fd(self.fd.as_raw_fd()).pointer(last).pointer(next.as_mut_ptr());
            match call(BPF_MAP_GET_NEXT_KEY, &mut attributes.0) {
                Ok(_) => keys.push(next),
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => break,
                Err(error) => return Err(Error::new("read the keys of the map", &self.name, error)),
            }
        }
        Ok(keys)
    }

    /// See [`Object::read`].
    pub(crate) fn read(&self, key: &[u8]) -> Result<Vec<Vec<u8>>> {
        let failed = |error: io::Error| Error::new("read the map", &self.name, error);
        if key.len() != self.key_bytes {
            return Err(failed(io::Error::other(format!("its keys have {} bytes", self.key_bytes))));
        }
        let stride = if self.values > 1 { self.value_bytes.next_multiple_of(8) } else { self.value_bytes };
        let mut bytes = vec![0_u8; self.value_bytes.next_multiple_of(8) * self.values];
        let mut attributes =
            Attributes::default().fd(self.fd.as_raw_fd()).pointer(key.as_ptr()).pointer(bytes.as_mut_ptr()).u64(0);
        call(BPF_MAP_LOOKUP_ELEM, &mut attributes.0).map_err(failed)?;
        Ok(bytes.chunks(stride.max(1)).take(self.values).map(|value| value[..self.value_bytes].to_vec()).collect())
    }
}
