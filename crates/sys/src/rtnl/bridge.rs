//! Options of a bridge. Source: kernel `include/uapi/linux/if_link.h` (`IFLA_BR_*`), `net/bridge/br_netlink.c`.

use super::{Builder, Links, link_header};
use crate::netlink::find;
use crate::{Error, Result};
use std::io;

/// An option of a bridge by the kernel's number; `ip link set type bridge` has the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgeOption {
    /// 0: no spanning tree; 1: the kernel's; 2: that of a daemon.
    StpState,
    /// Ageing time of learned addresses, in hundredths of a second.
    AgeingTime,
    MulticastSnooping,
    MulticastQuerier,
}

impl BridgeOption {
    pub const ALL: [Self; 4] = [Self::AgeingTime, Self::MulticastQuerier, Self::MulticastSnooping, Self::StpState];

    /// The name in `ip link`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::StpState => "stp_state",
            Self::AgeingTime => "ageing_time",
            Self::MulticastSnooping => "mcast_snooping",
            Self::MulticastQuerier => "mcast_querier",
        }
    }

    const fn kind(self) -> u16 {
        match self {
            Self::AgeingTime => 4,
            Self::StpState => 5,
            Self::MulticastSnooping => 23,
            Self::MulticastQuerier => 25,
        }
    }

    const fn is_byte(self) -> bool {
        matches!(self, Self::MulticastSnooping | Self::MulticastQuerier)
    }
}

impl Links {
    /// Reads a bridge's option.
    /// Errors: no such device, not a bridge, or not reported by the kernel.
    pub fn bridge_option(&mut self, name: &str, option: BridgeOption) -> Result<u32> {
        let mut request = Builder::with_header(&link_header(0, 0, 0));
        request.text(libc::IFLA_IFNAME, name);
        let replies = self.send("find bridge", name, libc::RTM_GETLINK, 0, request)?;
        let attributes = replies.first().and_then(|reply| reply.payload.get(16..)).unwrap_or_default();
        let info = find(attributes, libc::IFLA_LINKINFO);
        let kind = info.and_then(|info| info.find(libc::IFLA_INFO_KIND)?.text());
        if kind.as_deref() != Some("bridge") {
            return Err(Error::new("use bridge", name, io::Error::other("it is another kind of device")));
        }
        let value = info.and_then(|info| info.find(libc::IFLA_INFO_DATA)?.find(option.kind()));
        let value = value.and_then(|value| if option.is_byte() { value.u8().map(u32::from) } else { value.u32() });
        let untold = || io::Error::other(format!("this kernel does not report its {}", option.word()));
        value.ok_or_else(|| Error::new("use bridge", name, untold()))
    }

    /// Sets a bridge's option.
    /// Errors: no such device, not a bridge, a value that the kernel rejects, or no privilege.
    pub fn set_bridge_option(&mut self, name: &str, option: BridgeOption, value: u32) -> Result<()> {
        // For another kind of link the kernel would not report what is wrong.
        self.bridge_option(name, option)?;
        self.change("set the options of bridge", name, |request| {
            request.nest(libc::IFLA_LINKINFO, |info| {
                info.bytes(libc::IFLA_INFO_KIND, b"bridge");
                info.nest(libc::IFLA_INFO_DATA, |data| {
                    if option.is_byte() {
                        data.u8(option.kind(), u8::try_from(value).unwrap_or(u8::MAX));
                    } else {
                        data.u32(option.kind(), value);
                    }
                });
            });
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::Namespaces;

    #[test]
    fn every_option_is_set_and_read_back() {
        let made = Namespaces::create("bridge", || -> Result<()> {
            let mut links = Links::open()?;
            links.add_bridge("br0")?;
            for (option, value) in BridgeOption::ALL.into_iter().zip([8_640_000, 1, 1, 1]) {
                assert_ne!(links.bridge_option("br0", option)?, value, "{}", option.word());
                links.set_bridge_option("br0", option, value)?;
                assert_eq!(links.bridge_option("br0", option)?, value, "{}", option.word());
            }
            let error = links.set_bridge_option("lo", BridgeOption::StpState, 0).expect_err("no bridge");
            assert_eq!(error.to_string(), "cannot use bridge lo: it is another kind of device");
            let error = links.set_bridge_option("br9", BridgeOption::StpState, 0).expect_err("nothing");
            assert_eq!(error.errno(), Some(libc::ENODEV), "{error}");
            Ok(())
        });
        made.expect("this test makes network namespaces and needs root");
    }
}
