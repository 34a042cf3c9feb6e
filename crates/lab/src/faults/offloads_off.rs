//! # offloads-off
//!
//! Segmentation and receive offload are off (`ethtool -K DEVICE tso off gso off gro off tx-udp-segmentation off`): each
//! packet traverses the whole stack alone, as does each datagram of a batch (`UDP_SEGMENT`).

use super::{Fault, HOSTS, Undo, Value};
use crate::Result;
use crate::host::Host;
use narrows_sys::ethtool::Device;

pub(super) const FAULT: Fault = Fault {
    id: "offloads-off",
    about: "segmentation and receive offloads are off",
    places: HOSTS,
    host: Some(inject),
    ..Fault::NONE
};

fn inject(host: &Host, _: &Value) -> Result<Undo> {
    let name = host.device();
    let mut before = Vec::new();
    let turned_off = host.run(|| -> Result<()> {
        let device = Device::open(name)?;
        for feature in ["tso", "gso", "gro", "tx-udp-segmentation"] {
            before.extend(device.set_feature(feature, false)?);
        }
        Ok(())
    })?;
    let undo = Undo::new(move |host| Ok(host.run(|| Device::open(name)?.set_features(&before))??));
    match turned_off {
        Ok(()) => Ok(undo),
        Err(error) => {
            undo.take_back(host)?;
            Err(error)
        }
    }
}
