//! The Ethernet address of a neighbour, known for good. What was learned before is learned again: the way back of an address
//! that nobody had set is to forget it.

use super::{Knob, TuneError};
use narrows_model::load::frames::Mac;
use narrows_sys::rtnl::Links;
use narrows_sys::{device, neighbour};
use std::net::IpAddr;

/// The note of an address that the kernel finds out by itself.
const LEARNED: &str = "learned";

pub(super) struct Neighbour<'a> {
    pub(super) device: &'a str,
    pub(super) address: IpAddr,
    pub(super) mac: Mac,
}

impl Neighbour<'_> {
    fn bad(&self, value: &dyn std::fmt::Display, wanted: &str) -> TuneError {
        let what = format!("the neighbour {} of {}", self.address, self.device);
        TuneError::BadValue { what, value: value.to_string(), wanted: wanted.to_owned() }
    }

    fn make(&self, mac: Mac) -> Result<(), TuneError> {
        let made = Links::open().and_then(|mut links| links.add_neighbour(self.device, self.address, mac.0));
        Ok(made.map_err(narrows_sys::Error::from)?)
    }
}

impl Knob for Neighbour<'_> {
    fn check(&self) -> Result<(), TuneError> {
        if self.address.is_unspecified() || self.address.is_multicast() {
            return Err(self.bad(&self.address, "the address of one host"));
        }
        // The lowest bit of the first byte: a group's address (IEEE 802).
        if self.mac.0 == [0; 6] || self.mac.0[0] & 1 != 0 {
            return Err(self.bad(&self.mac, "the Ethernet address of one host"));
        }
        Ok(())
    }

    fn current(&self) -> Result<String, TuneError> {
        let known = neighbour::permanent(self.address, device::index(self.device)?)?;
        Ok(known.map_or_else(|| LEARNED.to_owned(), |mac| format!("permanent {}", Mac(mac))))
    }

    fn holds(&self) -> Result<bool, TuneError> {
        Ok(neighbour::permanent(self.address, device::index(self.device)?)? == Some(self.mac.0))
    }

    fn set(&self) -> Result<(), TuneError> {
        self.make(self.mac)
    }

    fn set_back(&self, before: &str) -> Result<(), TuneError> {
        if before == LEARNED {
            let forgotten = Links::open().and_then(|mut links| links.delete_neighbour(self.device, self.address));
            return Ok(forgotten.map_err(narrows_sys::Error::from)?);
        }
        let mac = before.strip_prefix("permanent ").and_then(|word| word.parse().ok());
        self.make(mac.ok_or_else(|| self.bad(&before, "`learned`, or `permanent` and an Ethernet address"))?)
    }
}
