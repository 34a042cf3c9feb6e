//! The watch of the devices under test: a look before the load and one after it.

use crate::hops::Hop;
use narrows_forwarding::judge::dut_seen;
use narrows_model::host::device_state::{DeviceSeen, DeviceState};
use narrows_sys::clock;
use std::time::Instant;

/// What was seen before the load.
#[derive(Debug)]
pub(super) struct Watch {
    looks: Vec<(String, Result<DeviceState, String>, Instant)>,
    own_boot_id: Option<String>,
}

impl Watch {
    /// Looks at every hop under test.
    pub(super) fn begin(hops: &mut [Hop]) -> Self {
        let look = |hop: &mut Hop| (hop.name().to_owned(), hop.state(), clock::now());
        Self {
            looks: hops.iter_mut().filter(|hop| hop.is_under_test()).map(look).collect(),
            own_boot_id: narrows_collect::boot_id(),
        }
    }

    /// Looks again, and says what became of each.
    pub(super) fn end(self, hops: &mut [Hop]) -> Vec<DeviceSeen> {
        let own = self.own_boot_id;
        let seen = |(name, before, at): (String, Result<DeviceState, String>, Instant)| {
            let hop = hops.iter_mut().find(|hop| hop.name() == name)?;
            let (source, after) = (hop.state_words(), hop.state());
            let took_us = clock::micros_since(at);
            Some(match before.and_then(|before| after.map(|after| (before, after))) {
                Ok((before, after)) => dut_seen(&name, &source, &before, &after, took_us, own.as_deref()),
                Err(why) => DeviceSeen { hop: name, source, took_us, silent: Some(why), ..DeviceSeen::default() },
            })
        };
        self.looks.into_iter().filter_map(seen).collect()
    }
}
