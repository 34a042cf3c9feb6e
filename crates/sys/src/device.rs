//! Settings of a network device: its MTU and its offload features (ioctls of netdevice(7) and include/uapi/linux/ethtool.h).
//! All act in the calling thread's network namespace.

use crate::error::check;
use crate::{Error, Result};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixDatagram;

const SIOCGIFMTU: libc::Ioctl = 0x8921;
const SIOCSIFMTU: libc::Ioctl = 0x8922;
const SIOCGIFINDEX: libc::Ioctl = 0x8933;
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
/// `ETH_GSTRING_LEN`
const NAME_BYTES: usize = 32;
/// Above the number of features of any kernel; a limit on its answer.
const MAX_FEATURES: u32 = 1024;

/// One feature of a device, by the kernel's own name (`tx-tcp-segmentation`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name.
    pub name: String,
    /// Whether it can be changed on this device.
    pub changeable: bool,
    /// Whether it was requested.
    pub wanted: bool,
    /// Whether it is on.
    pub active: bool,
}

fn request(device: &str) -> Result<libc::ifreq> {
    // SAFETY: all zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = device.as_bytes();
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains(&0) {
        return Err(Error::new("find device", device, io::Error::from_raw_os_error(libc::ENODEV)));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

fn control(request: &mut libc::ifreq, code: libc::Ioctl, operation: &'static str, device: &str) -> Result<()> {
    let wrap = |error| Error::new(operation, device, error);
    // Any socket of the namespace will do, including one without TCP/IP.
    let socket = UnixDatagram::unbound().map_err(wrap)?;
    // SAFETY: the request is a valid ifreq, and what it may point to lives through the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), code, std::ptr::from_mut(request)) }, operation, device)?;
    Ok(())
}

/// The device's index.
///
/// # Errors
/// No such device.
pub fn index(device: &str) -> Result<u32> {
    let mut request = request(device)?;
    control(&mut request, SIOCGIFINDEX, "find device", device)?;
    // SAFETY: SIOCGIFINDEX filled in the index.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex }.cast_unsigned())
}

/// The device's MTU in bytes.
///
/// # Errors
/// No such device.
pub fn mtu(device: &str) -> Result<u32> {
    let mut request = request(device)?;
    control(&mut request, SIOCGIFMTU, "read the MTU of", device)?;
    // SAFETY: SIOCGIFMTU filled in the MTU.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.cast_unsigned())
}

/// Sets the device's MTU.
///
/// # Errors
/// The kernel's error: no such device, out of the device's range, no permission.
pub fn set_mtu(device: &str, bytes: u32) -> Result<()> {
    let mut request = request(device)?;
    request.ifr_ifru.ifru_mtu = bytes.cast_signed();
    control(&mut request, SIOCSIFMTU, "set the MTU of", device)
}

/// Runs an ethtool command on a buffer of 32-bit words, which it fills.
fn ethtool(device: &str, words: &mut [u32], operation: &'static str) -> Result<()> {
    let mut request = request(device)?;
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    control(&mut request, SIOCETHTOOL, operation, device)
}

fn feature_names(device: &str) -> Result<Vec<String>> {
    // struct ethtool_sset_info: cmd, reserved, mask (64 bit, in the host's order of words), count
    let [low, high] =
        if cfg!(target_endian = "little") { [1 << ETH_SS_FEATURES, 0] } else { [0, 1 << ETH_SS_FEATURES] };
    let mut info = [ETHTOOL_GSSET_INFO, 0, low, high, 0];
    ethtool(device, &mut info, "count the features of")?;
    let count = info[4];
    if count > MAX_FEATURES {
        // Not truncated: the kernel writes all its names, whatever the buffer size.
        let many = io::Error::other(format!("the kernel speaks of {count} features"));
        return Err(Error::new("name the features of", device, many));
    }
    // struct ethtool_gstrings: cmd, set, count, names of 32 bytes
    let mut words = vec![0_u32; 3 + count as usize * (NAME_BYTES / 4)];
    words[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count]);
    ethtool(device, &mut words, "name the features of")?;
    let name = |chunk: &[u32]| {
        let bytes: Vec<u8> = chunk.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(words[3..].chunks(NAME_BYTES / 4).map(name).collect())
}

/// All features of a device.
///
/// # Errors
/// No such device, or one without features.
pub fn features(device: &str) -> Result<Vec<Feature>> {
    let names = feature_names(device)?;
    // struct ethtool_gfeatures: cmd, blocks, then per 32 features: available, requested, active, never changed
    let blocks = names.len().div_ceil(32);
    let mut words = vec![0_u32; 2 + blocks * 4];
    words[..2].copy_from_slice(&[ETHTOOL_GFEATURES, u32::try_from(blocks).unwrap_or(0)]);
    ethtool(device, &mut words, "read the features of")?;
    let bit = |index: usize, field: usize| words[2 + index / 32 * 4 + field] >> (index % 32) & 1 != 0;
    Ok(names
        .into_iter()
        .enumerate()
        .map(|(index, name)| Feature {
            name,
            changeable: bit(index, 0) && !bit(index, 3),
            wanted: bit(index, 1),
            active: bit(index, 2),
        })
        .collect())
}

/// Sets features by the kernel's names, in one call. A driver may ignore some of them silently: read them back.
///
/// # Errors
/// An unknown name, no such device, no permission.
pub fn set_features(device: &str, wanted: &[(String, bool)]) -> Result<()> {
    let names = feature_names(device)?;
    let blocks = names.len().div_ceil(32);
    // struct ethtool_sfeatures: cmd, blocks, then per 32 features: valid, requested
    let mut words = vec![0_u32; 2 + blocks * 2];
    words[..2].copy_from_slice(&[ETHTOOL_SFEATURES, u32::try_from(blocks).unwrap_or(0)]);
    for (name, on) in wanted {
        let index = names.iter().position(|known| known == name).ok_or_else(|| {
            let unknown = io::Error::other(format!("this kernel knows no feature `{name}`"));
            Error::new("set the features of", device, unknown)
        })?;
        words[2 + index / 32 * 2] |= 1 << (index % 32);
        words[3 + index / 32 * 2] |= u32::from(*on) << (index % 32);
    }
    ethtool(device, &mut words, "set the features of")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_an_index_an_mtu_and_features() {
        assert_eq!(index("lo").expect("lo"), 1);
        assert!(mtu("lo").expect("lo") >= 1500);
        let features = features("lo").expect("lo");
        let tso = features.iter().find(|feature| feature.name == "tx-tcp-segmentation").expect("every kernel has it");
        assert!(tso.changeable, "{tso:?}");
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
