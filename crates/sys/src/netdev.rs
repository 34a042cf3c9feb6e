//! XDP support of a device's driver, and the threads that poll the device: the generic netlink family `netdev` (Linux 6.3;
//! 6.8).
//!
//! Source: kernel `Documentation/netlink/specs/netdev.yaml`, `include/uapi/linux/netdev.h`.

use crate::netlink::{self, Builder, Family, Socket, find};

const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_CMD_NAPI_GET: u8 = 11;
const NETDEV_A_NAPI_IFINDEX: u16 = 1;
const NETDEV_A_NAPI_PID: u16 = 4;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;

/// The bits of `enum netdev_xdp_act`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XdpFeatures(pub u64);

impl XdpFeatures {
    /// It sends frames from XDP programs on other devices, or without a program (`ndo_xdp_xmit`).
    pub const fn transmits(self) -> bool {
        self.0 & 1 << 2 != 0
    }
}

const fn header(command: u8) -> [u8; 4] {
    [command, 1, 0, 0]
}

fn body(reply: &netlink::Message) -> &[u8] {
    reply.payload.get(4..).unwrap_or_default()
}

/// The id of the family; `None` if this kernel does not have it.
fn family(socket: &mut Socket) -> Result<Option<u16>, netlink::Error> {
    let mut request = Builder::with_header(&header(libc::CTRL_CMD_GETFAMILY as u8));
    request.text(libc::CTRL_ATTR_FAMILY_NAME as u16, "netdev");
    match socket.request(libc::GENL_ID_CTRL as u16, 0, &request.finish()?) {
        Ok(replies) => {
            let reply = replies.first().map(body).unwrap_or_default();
            Ok(find(reply, libc::CTRL_ATTR_FAMILY_ID as u16).and_then(|it| it.u16()))
        }
        Err(error) if error.errno() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The XDP features of the device with that index in the calling thread's network namespace; `None` if this kernel does
/// not report them.
pub fn xdp_features(index: u32) -> Result<Option<XdpFeatures>, netlink::Error> {
    let mut socket = Socket::open(Family::Generic)?;
    let Some(family) = family(&mut socket)? else { return Ok(None) };
    let mut request = Builder::with_header(&header(NETDEV_CMD_DEV_GET));
    request.u32(NETDEV_A_DEV_IFINDEX, index);
    let replies = socket.request(family, 0, &request.finish()?)?;
    let reply = replies.first().map(body).unwrap_or_default();
    Ok(find(reply, NETDEV_A_DEV_XDP_FEATURES).and_then(|it| it.u64()).map(XdpFeatures))
}

/// The kernel threads that poll that device, if it is polled by threads (`/sys/class/net/DEV/threaded`); none if this
/// kernel does not report them.
pub fn polling_threads(index: u32) -> Result<Vec<u32>, netlink::Error> {
    let mut socket = Socket::open(Family::Generic)?;
    let Some(family) = family(&mut socket)? else { return Ok(Vec::new()) };
    let mut request = Builder::with_header(&header(NETDEV_CMD_NAPI_GET));
    request.u32(NETDEV_A_NAPI_IFINDEX, index);
    let replies = match socket.request(family, netlink::DUMP, &request.finish()?) {
        Err(error) if error.errno() == Some(libc::EOPNOTSUPP) => return Ok(Vec::new()),
        replies => replies?,
    };
    Ok(replies.iter().filter_map(|reply| find(body(reply), NETDEV_A_NAPI_PID)?.u32()).collect())
}
