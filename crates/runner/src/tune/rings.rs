//! How many descriptors the rings of a device have.

use super::error::TuneError;
use super::knob::Knob;
use narrows_sys::ethtool::Device;

pub(super) struct Rings<'a> {
    pub(super) device: &'a str,
    pub(super) rx: u32,
    pub(super) tx: u32,
}

fn note(rx: u32, tx: u32) -> String {
    format!("rx {rx} tx {tx}")
}

fn parse(note: &str) -> Option<(u32, u32)> {
    match *note.split(' ').collect::<Vec<_>>() {
        ["rx", rx, "tx", tx] => Some((rx.parse().ok()?, tx.parse().ok()?)),
        _ => None,
    }
}

impl Knob for Rings<'_> {
    fn what(&self) -> String {
        format!("the rings of {}", self.device)
    }

    fn target(&self) -> String {
        note(self.rx, self.tx)
    }

    fn check(&self) -> Result<(), TuneError> {
        let max = Device::open(self.device)?.rings()?;
        if (1..=max.rx_max).contains(&self.rx) && (1..=max.tx_max).contains(&self.tx) {
            return Ok(());
        }
        Err(self.bad(&self.target(), format!("at most {}, and at least 1 of each", note(max.rx_max, max.tx_max))))
    }

    fn current(&self) -> Result<String, TuneError> {
        let now = Device::open(self.device)?.rings()?;
        Ok(note(now.rx, now.tx))
    }

    /// A driver may round up.
    fn is_obtained(&self, _: &str) -> bool {
        true
    }

    fn write(&self, note: &str) -> Result<(), TuneError> {
        let (rx, tx) = parse(note).ok_or_else(|| self.bad(note, "sizes such as `rx 512 tx 512`"))?;
        Ok(Device::open(self.device)?.set_rings(rx, tx)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_back() {
        assert_eq!(parse("rx 4096 tx 512"), Some((4096, 512)));
        for bad in ["", "rx 1", "rx 1 tx", "rx 1 tx -1", "tx 1 rx 1"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn loopback_has_none() {
        let rings = Rings { device: "lo", rx: 64, tx: 64 };
        assert_eq!(
            rings.check().expect_err("none").to_string(),
            "cannot read the ring sizes of lo: Operation not supported (os error 95)"
        );
    }
}
