//! # flowtable
//!
//! The router's kernel forwards known connections on the fast path: a flow table of nf_tables with `in0` and `out0` (kernel
//! `Documentation/networking/nf_flowtable.rst`). UDP and TCP are tracked, and from its second packet on a flow is forwarded
//! at ingress, past routing and filter. For comparisons of a device with and without it.
//!
//! Truth: nothing is dropped; the counters of rules do not move for flows that are in the table.

use super::undo::with_table;
use super::{Fault, ROUTER};
use crate::Error;
use narrows_sys::nftables;

const TABLE: &str = "narrows-lab-flowtable";

pub(super) const FAULT: Fault = Fault {
    id: "flowtable",
    about: "the router forwards established flows with a flow table",
    places: ROUTER,
    host: Some(|host, _| {
        with_table(host, TABLE, || nftables::add_flow_table(TABLE, &["in0", "out0"])).map_err(|error| match error {
            Error::Filter(error) if error.is_lacking() => Error::CannotRun(
                "this kernel has no flow tables; it needs CONFIG_NF_FLOW_TABLE, CONFIG_NF_FLOW_TABLE_INET and \
                CONFIG_NFT_FLOW_OFFLOAD, built in or as modules"
                    .to_owned(),
            ),
            other => other,
        })
    }),
    ..Fault::NONE
};
