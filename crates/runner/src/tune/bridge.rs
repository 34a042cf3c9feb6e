//! Options of a bridge that is the switch of a bench.

use super::error::TuneError;
use super::knob::{Knob, not_in_table};
use narrows_sys::Error;
use narrows_sys::rtnl::{BridgeOption, Links};

pub(super) struct Bridge<'a> {
    pub(super) bridge: &'a str,
    pub(super) option: &'a str,
    pub(super) value: u32,
}

/// The largest value of an option; times are hundredths of a second, a day at most.
const fn max(option: BridgeOption) -> u32 {
    match option {
        BridgeOption::AgeingTime => 8_640_000,
        // 2 is a program's own spanning tree, which only that program can begin.
        BridgeOption::StpState | BridgeOption::MulticastSnooping | BridgeOption::MulticastQuerier => 1,
    }
}

impl Bridge<'_> {
    fn known(&self) -> Result<BridgeOption, TuneError> {
        BridgeOption::ALL
            .into_iter()
            .find(|option| option.word() == self.option)
            .ok_or_else(|| not_in_table("the bridge option", self.option, BridgeOption::ALL.map(BridgeOption::word)))
    }
}

impl Knob for Bridge<'_> {
    fn what(&self) -> String {
        format!("{} of {}", self.option, self.bridge)
    }

    fn target(&self) -> String {
        self.value.to_string()
    }

    fn check(&self) -> Result<(), TuneError> {
        let max = max(self.known()?);
        if self.value > max {
            return Err(self.bad(&self.target(), format!("a number from 0 to {max}")));
        }
        // A spanning tree of a program cannot be given back to it from here.
        if self.option == BridgeOption::StpState.word() && !["0", "1"].contains(&self.current()?.as_str()) {
            let why = "a user-space daemon runs this spanning tree".to_owned();
            return Err(TuneError::NotRestorable(self.what(), why));
        }
        Ok(())
    }

    fn current(&self) -> Result<String, TuneError> {
        let option = self.known()?;
        Ok(Links::open().map_err(Error::from)?.bridge_option(self.bridge, option)?.to_string())
    }

    fn write(&self, note: &str) -> Result<(), TuneError> {
        let (option, value) = (self.known()?, note.parse().map_err(|_| self.bad(note, "a number"))?);
        Ok(Links::open().map_err(Error::from)?.set_bridge_option(self.bridge, option, value)?)
    }
}
