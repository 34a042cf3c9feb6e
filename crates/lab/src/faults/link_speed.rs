//! # link-speed
//!
//! The host's link negotiated a lower speed than it could: its interface reports it, and the path carries no more than that
//! in either direction. The supported modes of the interface stay unchanged.

use super::{takes, Fault, HOSTS, Undo, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "link-speed",
    about: "the host's link has a lower speed",
    places: HOSTS,
    parameter: takes(Unit::Rate, "100M", "the speed of the link"),
    host: Some(|host, value| {
        let mbps = u32::try_from((value.number() / 1_000_000).max(1)).unwrap_or(u32::MAX - 1);
        let before = host.set_link_speed(mbps)?;
        Ok(Undo::new(move |host| match before {
            Some(before) => host.set_link_speed(before).map(drop),
            None => Ok(()),
        }))
    }),
    path: Some(|path, value, _| {
        path.rate_bps = match path.rate_bps {
            0 => value.number(),
            rate => rate.min(value.number()),
        };
    }),
};
