//! The index and the MTU of a network device (ioctls of netdevice(7)), in the calling thread's network namespace.

use crate::error::check;
use crate::raw::device_request;
use crate::{Error, Result};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixDatagram;

fn request(device: &str) -> Result<libc::ifreq> {
    if device.is_empty() || device.len() >= libc::IFNAMSIZ || device.contains('\0') {
        return Err(Error::new("find device", device, io::Error::from_raw_os_error(libc::ENODEV)));
    }
    Ok(device_request(device))
}

fn control(request: &mut libc::ifreq, code: libc::c_ulong, operation: &'static str, device: &str) -> Result<()> {
    let wrap = |error| Error::new(operation, device, error);
    // Any socket of the namespace will do, including one without TCP/IP.
    let socket = UnixDatagram::unbound().map_err(wrap)?;
    // SAFETY: the request is a valid ifreq, and what it may point to lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), code as libc::Ioctl, std::ptr::from_mut(request)) };
    check(result, operation, device).map(drop)
}

/// The device's index.
pub fn index(device: &str) -> Result<u32> {
    let mut request = request(device)?;
    control(&mut request, libc::SIOCGIFINDEX, "find device", device)?;
    // SAFETY: SIOCGIFINDEX filled in the index.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex }.cast_unsigned())
}

/// The device's MTU in bytes.
pub fn mtu(device: &str) -> Result<u32> {
    let mut request = request(device)?;
    control(&mut request, libc::SIOCGIFMTU, "read the MTU of", device)?;
    // SAFETY: SIOCGIFMTU filled in the MTU.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.cast_unsigned())
}

/// Sets the device's MTU.
/// Errors: the kernel's error: no such device, out of the device's range, no permission.
pub fn set_mtu(device: &str, bytes: u32) -> Result<()> {
    let mut request = request(device)?;
    request.ifr_ifru.ifru_mtu = bytes.cast_signed();
    control(&mut request, libc::SIOCSIFMTU, "set the MTU of", device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_an_index_and_an_mtu() {
        assert_eq!(index("lo").expect("lo"), 1);
        assert!(mtu("lo").expect("lo") >= 1500);
    }

    #[test]
    fn a_missing_device_is_named() {
        for name in ["no-such-dev", "", "much-too-long-a-name"] {
            let error = mtu(name).expect_err("none");
            assert_eq!(error.errno(), Some(libc::ENODEV));
            assert_eq!(error.object, name);
        }
    }
}
