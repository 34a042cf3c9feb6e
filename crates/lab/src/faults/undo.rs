//! The undo steps of a fault on a host.

use super::value::Value;
use crate::Result;
use crate::host::Host;
use narrows_sys::nftables::{self, Hook};
use narrows_sys::sysctl;

type Step = Box<dyn FnOnce(&Host) -> Result<()> + Send>;

/// Steps that undo a fault, run in reverse order.
#[derive(Default)]
pub struct Undo(Vec<Step>);

impl std::fmt::Debug for Undo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Undo({} steps)", self.0.len())
    }
}

impl Undo {
    pub fn new(step: impl FnOnce(&Host) -> Result<()> + Send + 'static) -> Self {
        Self(vec![Box::new(step)])
    }

    /// Appends other steps: they run before these.
    pub fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Runs all steps; returns the first error.
    pub fn take_back(self, host: &Host) -> Result<()> {
        let mut result = Ok(());
        for step in self.0.into_iter().rev() {
            let done = step(host);
            result = result.and(done);
        }
        result
    }
}

/// Sets a kernel parameter of a host; undoing it restores the previous value.
pub(super) fn set_sysctl(host: &Host, key: &'static str, value: &str) -> Result<Undo> {
    let before = host.run(|| -> Result<String> {
        let before = sysctl::read(key)?;
        sysctl::write(key, value)?;
        Ok(before)
    })??;
    Ok(Undo::new(move |host| Ok(host.run(|| sysctl::write(key, &before))??)))
}

/// Adds a table to the host's network; undoing it removes the table.
pub(super) fn with_table(
    host: &Host,
    table: &'static str,
    make: impl FnOnce() -> nftables::Result<()> + Send,
) -> Result<Undo> {
    host.note_filter();
    host.run(make)??;
    Ok(Undo::new(move |host| Ok(host.run(|| nftables::delete_table(table))??)))
}

/// The same with a rule that drops one of so many UDP packets.
pub(super) fn drop_some(host: &Host, table: &'static str, hook: Hook, one_of: &Value) -> Result<Undo> {
    const UDP: u8 = 17;
    with_table(host, table, || nftables::add_drop(table, hook, UDP, one_of.number32()))
}

/// Sets the maximum of a triple such as `net.ipv4.tcp_rmem`, and lowers the other two to it.
pub(super) fn set_maximum(host: &Host, key: &'static str, maximum: u64) -> Result<Undo> {
    let now = host.run(|| sysctl::read(key))??;
    set_sysctl(host, key, &with_maximum(&now, maximum))
}

fn with_maximum(triple: &str, maximum: u64) -> String {
    let words = triple.split_whitespace().take(2).map(|word| word.parse().unwrap_or(maximum).min(maximum));
    words.chain([maximum]).map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_lowers_the_others_with_it() {
        assert_eq!(with_maximum("4096 131072 33554432", 262_144), "4096 131072 262144");
        assert_eq!(with_maximum("4096 131072 33554432", 65_536), "4096 65536 65536");
    }
}
