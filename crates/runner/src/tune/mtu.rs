//! The MTU of a device.

use super::error::TuneError;
use super::knob::Knob;
use narrows_sys::device;

pub(super) struct Mtu<'a> {
    pub(super) device: &'a str,
    pub(super) mtu: u32,
}

impl Knob for Mtu<'_> {
    fn what(&self) -> String {
        format!("the MTU of {}", self.device)
    }

    fn target(&self) -> String {
        self.mtu.to_string()
    }

    fn check(&self) -> Result<(), TuneError> {
        // RFC 791: every link carries 68 bytes. Below 1280 the kernel takes IPv6 from the device (RFC 8200), addresses
        // and routes included, which no MTU brings back.
        if (1280..=65_535).contains(&self.mtu) {
            return Ok(());
        }
        Err(self.bad(&self.target(), "a number from 1280 to 65535"))
    }

    fn current(&self) -> Result<String, TuneError> {
        Ok(device::mtu(self.device)?.to_string())
    }

    fn write(&self, note: &str) -> Result<(), TuneError> {
        Ok(device::set_mtu(self.device, note.parse().map_err(|_| self.bad(note, "a number"))?)?)
    }
}
