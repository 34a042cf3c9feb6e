//! How many descriptors the rings of a device have.

use super::{Knob, TuneError};
use narrows_sys::ethtool::{self, Device};

pub(super) struct Rings<'a> {
    pub(super) device: &'a str,
    pub(super) rx: u32,
    pub(super) tx: u32,
}

fn parse(note: &str) -> Option<(u32, u32)> {
    match *note.split(' ').collect::<Vec<_>>() {
        ["rx", rx, "tx", tx] => Some((rx.parse().ok()?, tx.parse().ok()?)),
        _ => None,
    }
}

impl Rings<'_> {
    fn read(&self) -> Result<ethtool::Rings, TuneError> {
        Ok(Device::open(self.device)?.rings()?)
    }

    fn bad(&self, value: String, wanted: String) -> TuneError {
        TuneError::BadValue { what: format!("the rings of {}", self.device), value, wanted }
    }
}

impl Knob for Rings<'_> {
    fn check(&self) -> Result<(), TuneError> {
        let most = self.read()?;
        if (1..=most.rx_max).contains(&self.rx) && (1..=most.tx_max).contains(&self.tx) {
            return Ok(());
        }
        let wanted = format!("at most rx {} tx {}, and at least 1 of each", most.rx_max, most.tx_max);
        Err(self.bad(format!("rx {} tx {}", self.rx, self.tx), wanted))
    }

    fn current(&self) -> Result<String, TuneError> {
        let now = self.read()?;
        Ok(format!("rx {} tx {}", now.rx, now.tx))
    }

    fn holds(&self) -> Result<bool, TuneError> {
        let now = self.read()?;
        Ok((now.rx, now.tx) == (self.rx, self.tx))
    }

    fn set(&self) -> Result<(), TuneError> {
        // A driver may round up: what it made of it is read back by the tuner.
        Ok(Device::open(self.device)?.set_rings(self.rx, self.tx)?)
    }

    fn set_back(&self, before: &str) -> Result<(), TuneError> {
        let (rx, tx) =
            parse(before).ok_or_else(|| self.bad(before.to_owned(), "sizes such as `rx 512 tx 512`".to_owned()))?;
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
            "cannot ask the rings of lo: Operation not supported (os error 95)"
        );
    }
}
