//! Ethernet flow control of a device (IEEE 802.3, annex 31B): negotiated, obeyed and sent.

use super::{Knob, TuneError};
use narrows_sys::ethtool::{Device, Pause};

pub(super) struct FlowControl<'a> {
    pub(super) device: &'a str,
    pub(super) on: bool,
}

const fn word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn note(pause: Pause) -> String {
    format!("autoneg {} rx {} tx {}", word(pause.autoneg), word(pause.rx), word(pause.tx))
}

fn parse(note: &str) -> Option<Pause> {
    let state = |word: &str| match word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    };
    match *note.split(' ').collect::<Vec<_>>() {
        ["autoneg", autoneg, "rx", rx, "tx", tx] => {
            Some(Pause { autoneg: state(autoneg)?, rx: state(rx)?, tx: state(tx)? })
        }
        _ => None,
    }
}

impl FlowControl<'_> {
    const fn wanted(&self) -> Pause {
        Pause { autoneg: self.on, rx: self.on, tx: self.on }
    }

    fn read(&self) -> Result<Pause, TuneError> {
        Ok(Device::open(self.device)?.pause()?)
    }
}

impl Knob for FlowControl<'_> {
    fn check(&self) -> Result<(), TuneError> {
        Ok(())
    }

    fn current(&self) -> Result<String, TuneError> {
        Ok(note(self.read()?))
    }

    fn holds(&self) -> Result<bool, TuneError> {
        Ok(self.read()? == self.wanted())
    }

    fn set(&self) -> Result<(), TuneError> {
        Device::open(self.device)?.set_pause(self.wanted())?;
        // What is negotiated takes its time: only what is fixed can be read back at once.
        let got = self.read()?;
        if self.on || got == self.wanted() {
            return Ok(());
        }
        let what = format!("flow control of {}", self.device);
        Err(TuneError::NotObtained { what, wanted: note(self.wanted()), got: note(got) })
    }

    fn set_back(&self, before: &str) -> Result<(), TuneError> {
        let pause = parse(before).ok_or_else(|| TuneError::BadValue {
            what: format!("flow control of {}", self.device),
            value: before.to_owned(),
            wanted: "a state such as `autoneg on rx on tx off`".to_owned(),
        })?;
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
            "cannot ask the flow control of lo: Operation not supported (os error 95)"
        );
    }
}
