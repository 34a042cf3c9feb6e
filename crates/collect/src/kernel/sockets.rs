//! The netlink sockets through which a live host is queried.

use crate::Missing;
use narrows_sys::netlink::{self, Family, Message, Socket};
use std::sync::{Mutex, PoisonError};

/// Netlink sockets, opened on first use: a socket costs more than a query.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    route: Mutex<Option<Socket>>,
    netfilter: Mutex<Option<Socket>>,
    generic: Mutex<Option<Socket>>,
}

impl Sockets {
    /// One request; `what` names it in the reason for a missing answer.
    pub(super) fn request(
        &self,
        family: Family,
        what: &str,
        kind: u16,
        flags: u16,
        payload: &[u8],
    ) -> Result<Vec<Message>, Missing> {
        self.exchange(family, kind, flags, payload).map_err(|error| Missing::netlink(what, &error))
    }

    pub(super) fn exchange(
        &self,
        family: Family,
        kind: u16,
        flags: u16,
        payload: &[u8],
    ) -> netlink::Result<Vec<Message>> {
        let slot = match family {
            Family::Netfilter => &self.netfilter,
            Family::Generic => &self.generic,
            Family::Route | Family::SockDiag => &self.route,
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = match slot.as_mut() {
            Some(socket) => socket,
            None => slot.insert(Socket::open(family)?),
        };
        socket.request(kind, flags, payload)
    }
}
