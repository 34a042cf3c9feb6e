//! # congestion-control
//!
//! The congestion control of new connections. A loss-based one such as Reno (RFC 5681) does not fill a long path with a
//! little loss; the fault shows only together with loss.

use super::undo::set_sysctl;
use super::{Fault, HOSTS, Parameter, Undo, Unit, Value};
use crate::Result;
use crate::host::Host;

pub(super) const FAULT: Fault = Fault {
    id: "congestion-control",
    about: "another congestion control is the default",
    places: HOSTS,
    parameter: Some(Parameter {
        unit: Unit::Word,
        default: "reno",
        about: "the congestion control, as net.ipv4.tcp_available_congestion_control names it",
    }),
    host: Some(inject),
    path: None,
};

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    set_sysctl(host, "net.ipv4.tcp_congestion_control", &value.to_string())
}
