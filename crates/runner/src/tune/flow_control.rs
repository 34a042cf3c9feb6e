//! Ethernet flow control of a device (IEEE 802.3, annex 31B): negotiated, obeyed and sent.

use super::error::TuneError;
use super::knob::{Knob, on_off, parse_on_off};
use narrows_sys::ethtool::{Device, Pause};

pub(super) struct FlowControl<'a> {
    pub(super) device: &'a str,
    pub(super) on: bool,
}

fn note(pause: Pause) -> String {
    format!("autoneg {} rx {} tx {}", on_off(pause.autoneg), on_off(pause.rx), on_off(pause.tx))
}

fn parse(note: &str) -> Option<Pause> {
    match *note.split(' ').collect::<Vec<_>>() {
        ["autoneg", autoneg, "rx", rx, "tx", tx] => {
            Some(Pause { autoneg: parse_on_off(autoneg)?, rx: parse_on_off(rx)?, tx: parse_on_off(tx)? })
        }
        _ => None,
    }
}

impl Knob for FlowControl<'_> {
    fn what(&self) -> String {
        format!("flow control of {}", self.device)
    }

    fn target(&self) -> String {
        note(Pause { autoneg: self.on, rx: self.on, tx: self.on })
    }

    fn check(&self) -> Result<(), TuneError> {
        Ok(())
    }

    fn current(&self) -> Result<String, TuneError> {
        Ok(note(Device::open(self.device)?.pause()?))
    }

    /// Negotiation takes time: only what is fixed can be read back at once.
    fn is_obtained(&self, got: &str) -> bool {
        self.on || got == self.target()
    }

    fn write(&self, note: &str) -> Result<(), TuneError> {
        let pause = parse(note).ok_or_else(|| self.bad(note, "a state such as `autoneg on rx on tx off`"))?;
        Ok(Device::open(self.device)?.set_pause(pause)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_back() {
        for bits in 0..8 {
            let pause = Pause { autoneg: bits & 1 != 0, rx: bits & 2 != 0, tx: bits & 4 != 0 };
            assert_eq!(parse(&note(pause)), Some(pause));
        }
        for bad in ["", "autoneg on rx on", "autoneg on rx on tx maybe", "autoneg on rx on tx on more"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn loopback_has_none() {
        let flow = FlowControl { device: "lo", on: false };
        assert_eq!(
            flow.current().expect_err("none").to_string(),
            "cannot read the flow control of lo: Operation not supported (os error 95)"
        );
    }
}
