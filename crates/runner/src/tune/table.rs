//! A table of a device under test: routes, filter rules, neighbours that a benchmark adds. What shows that entries are there is added
//! first and removed last, so that a table that was filled or emptied in part is known as one that has some.

use super::error::TuneError;
use super::knob::Knob;
use narrows_model::Family;
use narrows_model::host::table::{TableFill, TableKind};
use narrows_model::load::frames::Mac;
use narrows_sys::nftables::{self, Hook};
use narrows_sys::rtnl::{self, Links, Route};
use narrows_sys::{Error, files};
use narrows_wire::tables::{self, Prefix};
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The note of a table without entries of narrows.
const EMPTY: &str = "none";
/// The filter table with the rules.
const FILTER: &str = "narrows-rfc2544";
/// Part of the available memory that a table may take.
const SHARE: u64 = 2;

/// Entries that are added so far; a process fills one table at a time.
pub static ADDED: AtomicUsize = AtomicUsize::new(0);
/// Ends the filling at the next batch: the table is emptied again.
pub static INTERRUPT: AtomicBool = AtomicBool::new(false);

pub(super) struct Table<'a> {
    pub(super) fill: TableFill,
    pub(super) device: &'a str,
    pub(super) gateway: IpAddr,
    pub(super) mac: Mac,
}

fn go_on(added: usize) -> bool {
    ADDED.store(added, Ordering::Relaxed);
    !INTERRUPT.load(Ordering::Relaxed)
}

/// Kernel memory of an entry in bytes, rounded up: what 100,000 of each took (`MemAvailable`).
const fn entry_bytes(fill: TableFill) -> u64 {
    match (fill.table, fill.family) {
        (TableKind::Routes, Family::Ipv4) => 256,
        (TableKind::Routes, Family::Ipv6) => 768,
        (TableKind::Rules | TableKind::Neighbours, _) => 1024,
    }
}

/// `MemAvailable` of `/proc/meminfo`, bytes.
fn available_bytes() -> Option<u64> {
    let text = files::read_text(Path::new("/proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

impl Table<'_> {
    fn is_there(&self) -> Result<bool, TuneError> {
        let Some(first) = self.first() else { return nftables::exists(FILTER).map_err(|it| self.filter(it)) };
        let there = Links::open().and_then(|mut links| links.is_added(first));
        Ok(there.map_err(Error::from)?)
    }

    /// An address whose route is there as long as any entry is; rules have none.
    fn first(&self) -> Option<IpAddr> {
        match self.fill.table {
            TableKind::Routes => tables::routes(self.fill.family, self.fill.entries).next().map(|it| it.address),
            TableKind::Neighbours => tables::neighbours(self.fill.family, 1).next(),
            TableKind::Rules => None,
        }
    }

    fn filter(&self, error: nftables::Error) -> TuneError {
        TuneError::Netlink {
            operation: error.operation,
            device: format!("filter table {}", error.table),
            source: error.source,
        }
    }

    fn route(&self, to: Prefix, gateway: Option<IpAddr>) -> Route {
        Route { destination: to.address, prefix_bits: to.bits, gateway }
    }

    fn check_memory(&self) -> Result<(), TuneError> {
        let needs = u64::from(self.fill.entries) * entry_bytes(self.fill);
        match available_bytes() {
            Some(available) if needs > available / SHARE => {
                let why = format!(
                    "they need about {} MiB, and {} MiB of memory are available; use fewer entries",
                    needs >> 20,
                    available >> 20
                );
                Err(Error::new("add", self.fill.to_string(), io::Error::other(why)).into())
            }
            _ => Ok(()),
        }
    }

    fn add(&self) -> Result<(), TuneError> {
        self.check_memory()?;
        let TableFill { table, family, entries } = self.fill;
        ADDED.store(0, Ordering::Relaxed);
        let add = || -> rtnl::Result<usize> {
            let mut links = Links::open()?;
            if table == TableKind::Routes {
                let routes = tables::routes(family, entries).map(|it| self.route(it, Some(self.gateway)));
                return links.add_many(self.device, routes, &mut go_on);
            }
            links.add_many(self.device, std::iter::once(self.route(tables::link(family), None)), &mut |_| true)?;
            links.add_neighbours(self.device, tables::neighbours(family, entries), self.mac.0, &mut go_on)
        };
        let added = match table {
            TableKind::Rules => {
                nftables::add_misses(FILTER, Hook::Forward, entries).map_err(|it| self.filter(it))?;
                entries as usize
            }
            _ => add().map_err(Error::from)?,
        };
        if added < entries as usize {
            return Err(Error::new("add", self.fill.to_string(), io::ErrorKind::Interrupted.into()).into());
        }
        Ok(())
    }

    fn remove(&self) -> Result<(), TuneError> {
        let TableFill { table, family, entries } = self.fill;
        let remove = || -> rtnl::Result<()> {
            let mut links = Links::open()?;
            if table == TableKind::Routes {
                let all: Vec<Prefix> = tables::routes(family, entries).collect();
                let routes = all.into_iter().rev().map(|it| self.route(it, Some(self.gateway)));
                return links.delete_many(self.device, routes).map(drop);
            }
            links.delete_neighbours(self.device, tables::neighbours(family, entries))?;
            links.delete_many(self.device, std::iter::once(self.route(tables::link(family), None))).map(drop)
        };
        match table {
            TableKind::Rules => nftables::delete_table(FILTER).map_err(|it| self.filter(it)),
            _ => Ok(remove().map_err(Error::from)?),
        }
    }
}

impl Knob for Table<'_> {
    fn what(&self) -> String {
        format!("the {} of {}", self.fill.table, self.device)
    }

    fn target(&self) -> String {
        self.fill.to_string()
    }

    fn check(&self) -> Result<(), TuneError> {
        if !(1..=self.fill.table.most()).contains(&self.fill.entries) {
            let form = format!("a number from 1 to {}", self.fill.table.most());
            return Err(self.bad(&self.fill.entries.to_string(), form));
        }
        if Family::of(&self.gateway) != self.fill.family {
            return Err(self.bad(&self.gateway.to_string(), "a gateway of the family of the entries"));
        }
        narrows_sys::device::index(self.device)?;
        Ok(())
    }

    fn current(&self) -> Result<String, TuneError> {
        Ok(if self.is_there()? { self.target() } else { EMPTY.to_owned() })
    }

    fn write(&self, note: &str) -> Result<(), TuneError> {
        match note {
            EMPTY => self.remove(),
            note if note == self.target() => self.add(),
            other => Err(self.bad(other, format!("`{EMPTY}` or `{}`", self.target()))),
        }
    }
}
