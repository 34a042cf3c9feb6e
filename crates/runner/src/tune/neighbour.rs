//! The static Ethernet address of a neighbour. A learned address is learned again, so that the roll-back of an entry that was
//! not static is to delete it.

use super::error::TuneError;
use super::knob::Knob;
use narrows_model::load::frames::Mac;
use narrows_sys::rtnl::Links;
use narrows_sys::{Error, device, neighbour};
use std::net::IpAddr;

/// The note of an address that the kernel resolves by itself.
const LEARNED: &str = "learned";

pub(super) struct Neighbour<'a> {
    pub(super) device: &'a str,
    pub(super) address: IpAddr,
    pub(super) mac: Mac,
}

fn note(mac: Mac) -> String {
    format!("permanent {mac}")
}

impl Knob for Neighbour<'_> {
    fn what(&self) -> String {
        format!("the neighbour {} of {}", self.address, self.device)
    }

    fn target(&self) -> String {
        note(self.mac)
    }

    fn check(&self) -> Result<(), TuneError> {
        if self.address.is_unspecified() || self.address.is_multicast() {
            return Err(self.bad(&self.address.to_string(), "the address of one host"));
        }
        // The lowest bit of the first byte: a group's address (IEEE 802).
        if self.mac.0 == [0; 6] || self.mac.0[0] & 1 != 0 {
            return Err(self.bad(&self.mac.to_string(), "the Ethernet address of one host"));
        }
        Ok(())
    }

    fn current(&self) -> Result<String, TuneError> {
        let known = neighbour::permanent(self.address, device::index(self.device)?)?;
        Ok(known.map_or_else(|| LEARNED.to_owned(), |mac| note(Mac(mac))))
    }

    fn write(&self, text: &str) -> Result<(), TuneError> {
        let mac: Option<Mac> = match text.strip_prefix("permanent ").map(str::parse) {
            Some(Ok(mac)) => Some(mac),
            None if text == LEARNED => None,
            _ => return Err(self.bad(text, "`learned`, or `permanent` and an Ethernet address")),
        };
        let done = Links::open().and_then(|mut links| match mac {
            Some(mac) => links.add_neighbour(self.device, self.address, mac.0),
            None => links.delete_neighbour(self.device, self.address),
        });
        Ok(done.map_err(Error::from)?)
    }
}
