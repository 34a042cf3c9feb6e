//! Kernel parameters below `/proc/sys/net`: those of the table of [`settings`], by group.

use crate::collector::{Class, Collector, Context, Sink, always};
use crate::{Missing, parse};
use narrows_model::host::settings::{Group, Holds, PARAMETERS, count, facts};
use narrows_model::{FactKey, Value};

pub(super) const TCP: Collector = Collector {
    id: "tcp-settings",
    about: "TCP's kernel parameters of this network namespace",
    provides: &TCP_FACTS,
    class: Class::Both,
    can_run: always,
    collect: |context, sink| read(context, sink, Group::Tcp),
};

pub(super) const CORE: Collector = Collector {
    id: "core-settings",
    about: "kernel parameters of sockets and of the receive path",
    provides: &CORE_FACTS,
    class: Class::Inventory,
    can_run: always,
    collect: |context, sink| read(context, sink, Group::Core),
};

pub(super) const UDP: Collector = Collector {
    id: "udp-settings",
    about: "UDP's kernel parameters",
    provides: &UDP_FACTS,
    class: Class::Inventory,
    can_run: always,
    collect: |context, sink| read(context, sink, Group::Udp),
};

const TCP_FACTS: [FactKey; count(Group::Tcp)] = facts(Group::Tcp);
const CORE_FACTS: [FactKey; count(Group::Core)] = facts(Group::Core);
const UDP_FACTS: [FactKey; count(Group::Udp)] = facts(Group::Udp);

/// Reads all parameters of a group; a missing one becomes an absence.
pub(super) fn read(context: &Context<'_>, sink: &mut Sink<'_>, group: Group) -> Result<(), Missing> {
    for it in PARAMETERS.iter().filter(|it| it.group == group) {
        let path = format!("/proc/sys/{}", it.sysctl.replace('.', "/"));
        match context.host.read(&path) {
            Ok(text) => one(sink, &path, &text, it.holds),
            Err(why) => it.holds.keys().iter().for_each(|key| sink.absent(*key, &why)),
        }
    }
    Ok(())
}

fn one(sink: &mut Sink<'_>, path: &str, text: &str, holds: Holds) {
    let number = |word: Option<&str>| -> Result<i64, Missing> { parse::number(path, 1, word.unwrap_or_default()) };
    let mut words = parse::words(text);
    match holds {
        Holds::Number(key) => sink.put(key, number(words.next()), path),
        Holds::Flag(key) => sink.put(key, number(words.next()).map(|number| number != 0), path),
        Holds::Word(key) => sink.fact(key, text.trim(), path),
        Holds::List(key) => sink.fact(key, Value::List(words.map(str::to_owned).collect()), path),
        Holds::Numbers(keys) => keys.iter().for_each(|key| sink.put(*key, number(words.next()), path)),
        Holds::Unread => {}
    }
}
