//! Kernel parameters below every protocol. Source: kernel `Documentation/admin-guide/sysctl/net.rst`.
//!
//! Some are global and not visible in other network namespaces: there they are absent.

use crate::collector::{Class, Collector, always};
use crate::settings::{self, Form, Setting};
use narrows_model::{Key, Unit};

pub(super) const COLLECTOR: Collector = Collector {
    id: "core-settings",
    about: "kernel parameters of sockets and of the receive path",
    provides: &[
        Key::new("core.rmem.default", Unit::Bytes),
        Key::new("core.rmem.max", Unit::Bytes),
        Key::new("core.wmem.default", Unit::Bytes),
        Key::new("core.wmem.max", Unit::Bytes),
        Key::new("core.netdev_max_backlog", Unit::Packets),
        Key::new("core.netdev_budget", Unit::Packets),
        Key::new("core.netdev_budget_usecs", Unit::Microseconds),
        Key::new("core.default_qdisc", Unit::Text),
    ],
    class: Class::Inventory,
    can_run: always,
    collect: |context, sink| {
        settings::read(context, sink, SETTINGS);
        Ok(())
    },
};

const SETTINGS: &[Setting] = &[
    ("core/rmem_default", Form::Number("core.rmem.default")),
    ("core/rmem_max", Form::Number("core.rmem.max")),
    ("core/wmem_default", Form::Number("core.wmem.default")),
    ("core/wmem_max", Form::Number("core.wmem.max")),
    ("core/netdev_max_backlog", Form::Number("core.netdev_max_backlog")),
    ("core/netdev_budget", Form::Number("core.netdev_budget")),
    ("core/netdev_budget_usecs", Form::Number("core.netdev_budget_usecs")),
    ("core/default_qdisc", Form::Word("core.default_qdisc")),
];
