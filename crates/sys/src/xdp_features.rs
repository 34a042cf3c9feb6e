//! What a device's driver can do for XDP: the generic netlink family `netdev` (Linux 6.3).
//!
//! Source: kernel `Documentation/netlink/specs/netdev.yaml`, `include/uapi/linux/netdev.h`.

use crate::netlink::{self, Builder, Family, Socket, attributes, find};

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;

/// The bits of `enum netdev_xdp_act`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XdpFeatures(pub u64);

impl XdpFeatures {
    /// The driver runs XDP programs itself.
    #[must_use]
    pub const fn native(self) -> bool {
        self.0 & 1 != 0
    }

    /// It sends frames that XDP programs of other devices, or none, hand to it (`ndo_xdp_xmit`).
    #[must_use]
    pub const fn transmits(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// It shares its rings with `AF_XDP` sockets without copying.
    #[must_use]
    pub const fn zero_copy(self) -> bool {
        self.0 & 1 << 3 != 0
    }
}

/// Those of the device with that index in the calling thread's network namespace; `None` where this kernel does not tell.
///
/// # Errors
/// What the kernel said.
pub fn of(index: u32) -> Result<Option<XdpFeatures>, netlink::Error> {
    let mut socket = Socket::open(Family::Generic)?;
    let header = |command: u8| [command, 1, 0, 0];
    let mut request = Builder::with_header(&header(CTRL_CMD_GETFAMILY));
    request.text(CTRL_ATTR_FAMILY_NAME, "netdev");
    let replies = match socket.request(GENL_ID_CTRL, 0, &request.finish()?) {
        Ok(replies) => replies,
        Err(error) if error.errno() == Some(libc::ENOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    let body = |reply: &netlink::Message| reply.payload.get(4..).unwrap_or_default().to_vec();
    let reply = replies.first().map(body).unwrap_or_default();
    let Some(family) = find(&reply, CTRL_ATTR_FAMILY_ID).and_then(|it| it.u16()) else { return Ok(None) };
    let mut request = Builder::with_header(&header(NETDEV_CMD_DEV_GET));
    request.u32(NETDEV_A_DEV_IFINDEX, index);
    let replies = socket.request(family, 0, &request.finish()?)?;
    let reply = replies.first().map(body).unwrap_or_default();
    Ok(attributes(&reply).find(|it| it.kind == NETDEV_A_DEV_XDP_FEATURES).and_then(|it| it.u64()).map(XdpFeatures))
}
