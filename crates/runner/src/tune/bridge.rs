//! Options of a bridge that is the switch of a bench.

use super::{Knob, TuneError};
use narrows_sys::rtnl::{BridgeOption, Links};

pub(super) struct Bridge<'a> {
    pub(super) bridge: &'a str,
    pub(super) option: &'a str,
    pub(super) value: u32,
}

/// The largest value of an option; times are hundredths of a second, a day at most.
const fn most(option: BridgeOption) -> u32 {
    match option {
        BridgeOption::AgeingTime => 8_640_000,
        // 2 is a program's own spanning tree, which only that program can begin.
        BridgeOption::StpState | BridgeOption::MulticastSnooping | BridgeOption::MulticastQuerier => 1,
    }
}

impl Bridge<'_> {
    fn known(&self) -> Result<BridgeOption, TuneError> {
        BridgeOption::ALL.into_iter().find(|option| option.word() == self.option).ok_or_else(|| {
            let what = self.option.chars().take(32).collect::<String>().escape_default().to_string();
            let allowed = BridgeOption::ALL.map(BridgeOption::word).join(", ");
            TuneError::NotInTable { what: format!("the bridge option `{what}`"), allowed }
        })
    }

    fn bad(&self, value: &dyn std::fmt::Display, wanted: String) -> TuneError {
        TuneError::BadValue { what: format!("{} of {}", self.option, self.bridge), value: value.to_string(), wanted }
    }

    fn read(&self) -> Result<u32, TuneError> {
        let option = self.known()?;
        let mut links = Links::open().map_err(narrows_sys::Error::from)?;
        Ok(links.bridge_option(self.bridge, option)?)
    }

    fn write(&self, value: u32) -> Result<(), TuneError> {
        let option = self.known()?;
        let mut links = Links::open().map_err(narrows_sys::Error::from)?;
        Ok(links.set_bridge_option(self.bridge, option, value)?)
    }
}

impl Knob for Bridge<'_> {
    fn check(&self) -> Result<(), TuneError> {
        let most = most(self.known()?);
        if self.value > most {
            return Err(self.bad(&self.value, format!("a number from 0 to {most}")));
        }
        // A tree that a program keeps cannot be given back to it from here.
        if self.option == BridgeOption::StpState.word() && self.read()? > 1 {
            let why = "a program of its own keeps that spanning tree".to_owned();
            return Err(TuneError::NotRestorable { what: format!("stp_state of {}", self.bridge), why });
        }
        Ok(())
    }

    fn current(&self) -> Result<String, TuneError> {
        Ok(self.read()?.to_string())
    }

    fn holds(&self) -> Result<bool, TuneError> {
        Ok(self.read()? == self.value)
    }

    fn set(&self) -> Result<(), TuneError> {
        self.write(self.value)?;
        let got = self.read()?;
        if got == self.value {
            return Ok(());
        }
        let what = format!("{} of {}", self.option, self.bridge);
        Err(TuneError::NotObtained { what, wanted: self.value.to_string(), got: got.to_string() })
    }

    fn set_back(&self, before: &str) -> Result<(), TuneError> {
        self.write(before.parse().map_err(|_| self.bad(&before, "a number".to_owned()))?)
    }
}
