//! The MTU of a device.

use super::{Knob, TuneError};
use narrows_sys::device;

pub(super) struct Mtu<'a> {
    pub(super) device: &'a str,
    pub(super) mtu: u32,
}

impl Knob for Mtu<'_> {
    fn check(&self) -> Result<(), TuneError> {
        // RFC 791: every link carries 68 bytes. Below 1280 the kernel takes IPv6 from the device (RFC 8200), addresses
        // and routes included, which no MTU brings back.
        if (1280..=65_535).contains(&self.mtu) {
            return Ok(());
        }
        Err(TuneError::BadValue {
            what: format!("the MTU of {}", self.device),
            value: self.mtu.to_string(),
            wanted: "a number from 1280 to 65535".to_owned(),
        })
    }

    fn current(&self) -> Result<String, TuneError> {
        Ok(device::mtu(self.device)?.to_string())
    }

    fn holds(&self) -> Result<bool, TuneError> {
        Ok(device::mtu(self.device)? == self.mtu)
    }

    fn set(&self) -> Result<(), TuneError> {
        Ok(device::set_mtu(self.device, self.mtu)?)
    }

    fn set_back(&self, before: &str) -> Result<(), TuneError> {
        let bytes = before.parse().map_err(|_| TuneError::BadValue {
            what: format!("the MTU of {}", self.device),
            value: before.to_owned(),
            wanted: "a number".to_owned(),
        })?;
        Ok(device::set_mtu(self.device, bytes)?)
    }
}
