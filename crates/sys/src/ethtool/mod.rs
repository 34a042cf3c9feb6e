//! Reads and sets what a network device's driver supports: `SIOCETHTOOL`.
//!
//! A [`Device`] belongs to the network namespace that its thread was in when it was opened.
//! Source: kernel `include/uapi/linux/ethtool.h`, `net/ethtool/ioctl.c`.

mod features;
mod link;
mod link_modes;
mod statistics;

pub use features::{Feature, FeatureState, feature_group};
pub use link::{Duplex, Link, LinkChange};

use crate::error::check;
use crate::{Error, Result, raw};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// A device whose driver is queried.
#[derive(Debug)]
pub struct Device {
    fd: OwnedFd,
    name: String,
}

/// `struct ethtool_drvinfo`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Driver {
    pub name: String,
    /// Its version; usually the kernel's.
    pub version: String,
    /// The firmware's version; empty if there is none.
    pub firmware: String,
    /// The device's address on its bus, such as `0000:03:00.0`; empty if there is none.
    pub bus: String,
}

/// `struct ethtool_ringparam`: entries of the receive and transmit rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rings {
    pub rx: u32,
    /// The maximum that the hardware supports.
    pub rx_max: u32,
    pub tx: u32,
    /// The maximum that the hardware supports.
    pub tx_max: u32,
}

/// `struct ethtool_channels`: queues, each with an interrupt of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Channels {
    /// Queues that only receive.
    pub rx: u32,
    pub rx_max: u32,
    /// Queues that only send.
    pub tx: u32,
    pub tx_max: u32,
    /// Queues that do both.
    pub combined: u32,
    pub combined_max: u32,
}

/// `struct ethtool_coalesce`, the part that affects a path: how long the hardware waits before it interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Coalesce {
    /// Microseconds after a received packet.
    pub rx_usecs: u32,
    pub rx_frames: u32,
    /// Microseconds after a sent packet.
    pub tx_usecs: u32,
    pub tx_frames: u32,
    /// Whether the driver adapts the receive side itself.
    pub adaptive_rx: bool,
    /// Whether the driver adapts the send side itself.
    pub adaptive_tx: bool,
}

/// `struct ethtool_pauseparam`: Ethernet flow control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pause {
    /// Whether it is negotiated.
    pub autoneg: bool,
    /// Whether received pause frames are obeyed.
    pub rx: bool,
    /// Whether pause frames are sent.
    pub tx: bool,
}

const GDRVINFO: u32 = 0x03;
const GCOALESCE: u32 = 0x0e;
const GRINGPARAM: u32 = 0x10;
const SRINGPARAM: u32 = 0x11;
const GPAUSEPARAM: u32 = 0x12;
const SPAUSEPARAM: u32 = 0x13;
const GCHANNELS: u32 = 0x3c;

impl Device {
    /// Names a device of the calling thread's network namespace. Its existence is checked by the first query.
    /// Errors: an invalid name; no sockets.
    pub fn open(name: &str) -> Result<Self> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.bytes().any(|byte| byte == 0 || byte == b'/') {
            let cause = io::Error::other("an interface name has 1 to 15 bytes and no `/`");
            return Err(Error::new("use device", name, cause));
        }
        let fd = raw::socket(libc::AF_INET, libc::SOCK_DGRAM, 0, "open", "a socket for ethtool")?;
        Ok(Self { fd, name: name.to_owned() })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The driver, and the device's bus address.
    /// Errors: no such device; the driver does not support it.
    pub fn driver(&self) -> Result<Driver> {
        // SAFETY: the kernel fills a struct ethtool_drvinfo of 196 bytes.
        let words = unsafe { self.ask::<49>(GDRVINFO, "read the driver of") }?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(Driver {
            name: text(&bytes, 4, 32),
            version: text(&bytes, 36, 32),
            firmware: text(&bytes, 68, 32),
            bus: text(&bytes, 100, 32),
        })
    }

    /// The sizes of the rings.
    /// Errors: no such device; the driver does not support it.
    pub fn rings(&self) -> Result<Rings> {
        // SAFETY: the kernel fills a struct ethtool_ringparam of 9 words.
        let words = unsafe { self.ask::<9>(GRINGPARAM, "read the ring sizes of") }?;
        let [_, rx_max, _, _, tx_max, rx, _, _, tx] = words;
        Ok(Rings { rx, rx_max, tx, tx_max })
    }

    /// Sets the number of descriptors of the rings. Most drivers take the link down for a moment.
    /// Errors: no such device, no permission, more than the hardware supports, or no driver support.
    pub fn set_rings(&self, rx: u32, tx: u32) -> Result<()> {
        // SAFETY: the kernel fills a struct ethtool_ringparam of 9 words.
        let mut words = unsafe { self.ask::<9>(GRINGPARAM, "read the ring sizes of") }?;
        // The rings for jumbo and for small frames stay unchanged.
        (words[0], words[5], words[8]) = (SRINGPARAM, rx, tx);
        // SAFETY: the kernel reads a struct ethtool_ringparam of 9 words.
        unsafe { self.call("set the rings of", &mut words) }.map(drop)
    }

    /// The numbers of queues.
    /// Errors: no such device; the driver does not support it.
    pub fn channels(&self) -> Result<Channels> {
        // SAFETY: the kernel fills a struct ethtool_channels of 9 words.
        let words = unsafe { self.ask::<9>(GCHANNELS, "read the channels of") }?;
        let [_, rx_max, tx_max, _, combined_max, rx, tx, _, combined] = words;
        Ok(Channels { rx, rx_max, tx, tx_max, combined, combined_max })
    }

    /// Interrupt coalescing.
    /// Errors: no such device; the driver does not support it.
    pub fn coalesce(&self) -> Result<Coalesce> {
        // SAFETY: the kernel fills a struct ethtool_coalesce of 23 words.
        let words = unsafe { self.ask::<23>(GCOALESCE, "read the interrupt coalescing of") }?;
        let [_, rx_usecs, rx_frames, _, _, tx_usecs, tx_frames, _, _, _, adaptive_rx, adaptive_tx, ..] = words;
        Ok(Coalesce {
            rx_usecs,
            rx_frames,
            tx_usecs,
            tx_frames,
            adaptive_rx: adaptive_rx != 0,
            adaptive_tx: adaptive_tx != 0,
        })
    }

    /// Ethernet flow control.
    /// Errors: no such device; the driver does not support it.
    pub fn pause(&self) -> Result<Pause> {
        // SAFETY: the kernel fills a struct ethtool_pauseparam of 4 words.
        let words = unsafe { self.ask::<4>(GPAUSEPARAM, "read the flow control of") }?;
        let [_, autoneg, rx, tx] = words;
        Ok(Pause { autoneg: autoneg != 0, rx: rx != 0, tx: tx != 0 })
    }

    /// Sets Ethernet flow control. If it is negotiated, the link goes down for a moment.
    /// Errors: no such device, no permission, or no driver support.
    pub fn set_pause(&self, pause: Pause) -> Result<()> {
        let mut words = [SPAUSEPARAM, u32::from(pause.autoneg), u32::from(pause.rx), u32::from(pause.tx)];
        // SAFETY: the kernel reads a struct ethtool_pauseparam of 4 words.
        unsafe { self.call("set the flow control of", &mut words) }.map(drop)
    }

    /// The structure of `N` words that a command fills.
    ///
    /// # Safety
    /// The kernel reads and writes at most `N` words for that command.
    unsafe fn ask<const N: usize>(&self, command: u32, operation: &'static str) -> Result<[u32; N]> {
        let mut words = [0; N];
        words[0] = command;
        // SAFETY: as the caller says.
        unsafe { self.call(operation, &mut words) }?;
        Ok(words)
    }

    /// One `SIOCETHTOOL`; returns the result of the call.
    ///
    /// # Safety
    /// `words` starts with an ethtool command and is at least as long as everything that the kernel reads and
    /// writes for it.
    unsafe fn call(&self, operation: &'static str, words: &mut [u32]) -> Result<libc::c_int> {
        let mut request = raw::device_request(&self.name);
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: the request holds a name ended by zero and a pointer to `words`, which the caller made long enough.
        let result = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request) };
        check(result, operation, &self.name)
    }
}

/// Text in a fixed field, up to the first zero byte.
fn text(bytes: &[u8], offset: usize, length: usize) -> String {
    let field = bytes.get(offset..offset + length).unwrap_or_default();
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(field.get(..end).unwrap_or_default()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_features_and_no_rings() {
        let device = Device::open("lo").expect("a socket");
        assert!(device.features().expect("features").iter().any(|feature| feature.name == "rx-gro"));
        let error = device.rings().expect_err("loopback has no rings");
        assert_eq!(error.errno(), Some(libc::EOPNOTSUPP));
        assert!(error.to_string().starts_with("cannot read the ring sizes of lo: "), "{error}");
        assert_eq!(device.set_rings(64, 64).expect_err("nor to set").errno(), Some(libc::EOPNOTSUPP));
        let error = device.set_pause(Pause::default()).expect_err("nor flow control").to_string();
        assert!(error.starts_with("cannot set the flow control of lo: "), "{error}");
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let device = Device::open("no-such-link").expect("a socket");
        assert_eq!(device.driver().expect_err("none").errno(), Some(libc::ENODEV));
        assert!(Device::open("a-name-that-is-too-long").is_err());
        assert!(Device::open("a/b").is_err());
    }

    #[test]
    fn text_ends_at_zero_or_at_the_field() {
        assert_eq!(text(b"abc\0def", 0, 7), "abc");
        assert_eq!(text(b"abcdef", 1, 3), "bcd");
        assert_eq!(text(b"abc", 1, 30), "");
    }
}
