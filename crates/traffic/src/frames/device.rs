//! The interface that frames leave or arrive by.

use super::error::FrameError;
#[cfg(feature = "xdp")]
use narrows_sys::netdev::{self, XdpFeatures};
use narrows_sys::rtnl::Links;

const ENODEV: i32 = 19;

/// The interface that frames leave or arrive by.
#[derive(Debug, Clone)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) mtu: u32,
    pub(super) up: bool,
    pub(super) carrier: bool,
    /// `None` where the kernel does not report them.
    #[cfg(feature = "xdp")]
    pub(super) features: Option<XdpFeatures>,
}

impl Device {
    pub(super) fn find(name: &str) -> Result<Self, FrameError> {
        let link = Links::open().and_then(|mut links| links.get(name));
        let link = link.map_err(|error| FrameError::device(name, error.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            index: link.index,
            mtu: link.mtu,
            up: link.up,
            carrier: link.carrier,
            #[cfg(feature = "xdp")]
            features: netdev::xdp_features(link.index).ok().flatten(),
        })
    }

    /// Why the interface with this name and index no longer carries traffic, if so.
    pub(super) fn gone(name: &str, index: u32) -> Option<String> {
        match Links::open().and_then(|mut links| links.get(name)) {
            Ok(link) if link.index == index => None,
            Ok(_) => Some(format!("interface {name} was removed, and another one has its name")),
            Err(error) if error.source.errno() == Some(ENODEV) => Some(format!("interface {name} was removed")),
            // The next check may succeed.
            Err(_) => None,
        }
    }

    /// Why nothing is sent any more: it is gone, or was set down.
    pub(super) fn out_of_order(&self) -> Option<String> {
        let down = || Links::open().and_then(|mut links| links.get(&self.name)).is_ok_and(|link| !link.up);
        Self::gone(&self.name, self.index)
            .or_else(|| down().then(|| format!("interface {} was set down", self.name)))
            .map(|why| format!("{why}; the last frames may not have been sent"))
    }

    /// Frames to send that it dropped, by its own counter.
    pub(super) fn dropped(&self) -> Option<u64> {
        Links::open().and_then(|mut links| links.get(&self.name)).map(|link| link.tx_dropped).ok()
    }
}

/// The first mode of a table that works on a device, and for each one above it a sentence why it does not.
pub(super) fn choose<M: Copy + PartialEq, F, T>(
    device: &str,
    modes: &[(M, F)],
    only: Option<M>,
    word: impl Fn(M) -> &'static str,
    begin: impl Fn(&F) -> Result<T, String>,
) -> Result<(M, T, Vec<String>), FrameError> {
    let mut not_better = Vec::new();
    for (mode, how) in modes.iter().filter(|(mode, _)| only.is_none_or(|only| only == *mode)) {
        match begin(how) {
            Ok(begun) => return Ok((*mode, begun, not_better)),
            Err(why) => not_better.push(format!("{}: {why}", word(*mode))),
        }
    }
    Err(FrameError::NoMode { device: device.to_owned(), why: not_better })
}
