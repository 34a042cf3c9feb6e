//! # tcp-send-buffer
//!
//! Send buffer autotuning ends at the maximum of `net.ipv4.tcp_wmem`: unacknowledged data must fit into it, so no more than
//! that is in flight per round trip. Source: kernel Documentation/networking/ip-sysctl.rst.

use super::undo::set_maximum;
use super::{Fault, HOSTS, Parameter, Undo, Unit, Value};
use crate::Result;
use crate::host::Host;

pub(super) const FAULT: Fault = Fault {
    id: "tcp-send-buffer",
    about: "the send buffer of TCP ends early",
    places: HOSTS,
    parameter: Some(Parameter { unit: Unit::Bytes, default: "256k", about: "the maximum of net.ipv4.tcp_wmem" }),
    host: Some(inject),
    path: None,
};

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    set_maximum(host, "net.ipv4.tcp_wmem", value.number())
}
