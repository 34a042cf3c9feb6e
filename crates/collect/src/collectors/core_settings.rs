//! Kernel parameters below every protocol. Source: kernel `Documentation/admin-guide/sysctl/net.rst`.
//!
//! Some are global and not visible in other network namespaces: there they are absent.

use crate::collector::{Class, Collector, always};
use crate::settings::{self, Form, Setting};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "core-settings",
    about: "kernel parameters of sockets and of the receive path",
    provides: &[
        keys::CORE_RMEM_DEFAULT,
        keys::CORE_RMEM_MAX,
        keys::CORE_WMEM_DEFAULT,
        keys::CORE_WMEM_MAX,
        keys::CORE_NETDEV_MAX_BACKLOG,
        keys::CORE_NETDEV_BUDGET,
        keys::CORE_NETDEV_BUDGET_USECS,
        keys::CORE_DEFAULT_QDISC,
    ],
    class: Class::Inventory,
    can_run: always,
    collect: |context, sink| settings::read(context, sink, SETTINGS),
};

const SETTINGS: &[Setting] = &[
    ("core/rmem_default", Form::Number(keys::CORE_RMEM_DEFAULT)),
    ("core/rmem_max", Form::Number(keys::CORE_RMEM_MAX)),
    ("core/wmem_default", Form::Number(keys::CORE_WMEM_DEFAULT)),
    ("core/wmem_max", Form::Number(keys::CORE_WMEM_MAX)),
    ("core/netdev_max_backlog", Form::Number(keys::CORE_NETDEV_MAX_BACKLOG)),
    ("core/netdev_budget", Form::Number(keys::CORE_NETDEV_BUDGET)),
    ("core/netdev_budget_usecs", Form::Number(keys::CORE_NETDEV_BUDGET_USECS)),
    ("core/default_qdisc", Form::Word(keys::CORE_DEFAULT_QDISC)),
];
