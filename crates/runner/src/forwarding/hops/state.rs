//! The state of a hop that is a device under test, read the way its counters are.

use super::{Hop, Reader};
use narrows_collect::{Missing, device_state, networks_known};
use narrows_lab::Labs;
use narrows_model::host::device_state::DeviceState;
use narrows_sys::netns;
use narrows_wire::rip;

impl Hop {
    pub(in super::super) fn name(&self) -> &str {
        &self.name
    }

    pub(in super::super) const fn is_under_test(&self) -> bool {
        self.under_test
    }

    /// What its state is read from.
    pub(in super::super) fn state_words(&self) -> String {
        match &self.reader {
            Reader::Network(path) => format!("the kernel ({path})"),
            Reader::Lab { lab, host } => format!("the kernel ({host} of the lab {lab})"),
            Reader::Served(served) => served.state_words(),
            #[cfg(feature = "snmp")]
            Reader::Snmp { agent, .. } => format!("sysUpTime and ifLastChange of {}", agent.address()),
            Reader::Silent(_) => String::new(),
        }
    }

    /// Its state now, or why it is not known.
    pub(in super::super) fn state(&mut self) -> Result<DeviceState, String> {
        let (input, output) = (self.input.clone(), self.output.clone());
        match &mut self.reader {
            #[cfg(feature = "snmp")]
            Reader::Snmp { agent, input, output } => {
                agent.device_state(&[input, output]).map_err(|error| error.to_string())
            }
            Reader::Served(served) => served.state(&input, &output),
            Reader::Silent(why) => Err(why.clone()),
            Reader::Network(_) | Reader::Lab { .. } => {
                self.within(move || device_state(&[&input, &output])).unwrap_or_else(Err)
            }
        }
    }

    /// How many of the networks of a routing update its kernel has routes to; `None`: its kernel cannot be asked.
    pub(in super::super) fn networks_known(&self, count: u32) -> Option<Result<u64, String>> {
        match &self.reader {
            Reader::Network(_) | Reader::Lab { .. } => {
                let networks: Vec<_> = rip::networks(count).collect();
                Some(self.within(move || networks_known(&networks, rip::PREFIX_BITS)).unwrap_or_else(Err))
            }
            _ => None,
        }
    }

    /// Asks the kernel in the hop's own network, where that is of this host.
    fn within<T: Send>(&self, ask: impl FnOnce() -> Result<T, Missing> + Send) -> Result<Result<T, String>, String> {
        let asked = match &self.reader {
            Reader::Network(path) => {
                netns::in_network_at(path, || Ok::<_, narrows_sys::Error>(ask())).map_err(|error| error.to_string())?
            }
            Reader::Lab { lab, host } => Labs::of_user().within(lab, host, ask).map_err(|error| error.to_string())?,
            _ => return Err("its network is not of this host".to_owned()),
        };
        Ok(asked.map_err(|missing| missing.to_string()))
    }
}
