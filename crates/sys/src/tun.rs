//! TUN devices: a network interface whose other side is this process.
//!
//! Packets carry a virtio header (`IFF_VNET_HDR`), so that a super-packet of up to 64 KiB passes whole, with an incomplete
//! checksum. Source: kernel `Documentation/networking/tuntap.rst`, `include/uapi/linux/virtio_net.h`.

use crate::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

/// Bytes of the virtio header in front of each packet (`struct virtio_net_hdr`).
pub const VNET_HEADER_BYTES: usize = 10;

/// Which packets the kernel may pass unsegmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offloads {
    /// TCP segmentation, IPv4 and IPv6, and incomplete checksums.
    pub tcp: bool,
    /// UDP segmentation (`UDP_SEGMENT`), Linux 6.2 and newer.
    pub udp: bool,
}

/// An open TUN device. It is removed when this is dropped or the process ends.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    offloads: Offloads,
}

impl Tun {
    /// Creates a device with that name in the calling thread's network namespace; reads and writes do not block.
    ///
    /// With `napi`, written packets are received in the softirq, as from a NIC (`IFF_NAPI`).
    /// Errors: `/dev/net/tun` is missing or forbidden, the name exists or is too long.
    pub fn open(name: &str, napi: bool) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(|error| Error::new("open", "/dev/net/tun", error))?;
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            return Err(Error::new("make device", name, io::Error::from_raw_os_error(libc::EINVAL)));
        }
        let mut request = crate::raw::device_request(name);
        let mut flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        if napi {
            flags |= libc::IFF_NAPI;
        }
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one ifreq, which lives through the call.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
        crate::error::check(result, "make TUN device", name)?;
        let mut tun = Self { file, name: name.to_owned(), offloads: Offloads { tcp: false, udp: false } };
        tun.set_header_bytes()?;
        tun.offloads = tun.set_offloads()?;
        Ok(tun)
    }

    fn set_header_bytes(&self) -> Result<()> {
        let bytes = VNET_HEADER_BYTES as libc::c_int;
        // SAFETY: TUNSETVNETHDRSZ reads one int, which lives through the call.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const bytes) };
        crate::error::check(result, "set the header size of", self.name.as_str())?;
        let little: libc::c_int = 1;
        // SAFETY: TUNSETVNETLE reads one int, which lives through the call.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), libc::TUNSETVNETLE, &raw const little) };
        crate::error::check(result, "set the byte order of", self.name.as_str()).map(drop)
    }

    /// The maximum that this kernel supports.
    fn set_offloads(&self) -> Result<Offloads> {
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let set = |bits: libc::c_uint| {
            // SAFETY: TUNSETOFFLOAD takes a plain number.
            let result = unsafe { libc::ioctl(self.file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(bits)) };
            crate::error::check(result, "set the offloads of", self.name.as_str())
        };
        if set(tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6).is_ok() {
            return Ok(Offloads { tcp: true, udp: true });
        }
        set(tcp)?;
        Ok(Offloads { tcp: true, udp: false })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The offloads in use.
    pub const fn offloads(&self) -> Offloads {
        self.offloads
    }

    /// Reads one packet that the host sends, its virtio header first; `None` if none waits.
    /// Errors: the kernel's error; a packet larger than the buffer is truncated by the kernel.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes one packet to the host: a virtio header and the packet, in one or more pieces.
    /// Errors: the kernel's error: the device is down, the packet is malformed.
    pub fn write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        (&self.file).write_vectored(pieces)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
