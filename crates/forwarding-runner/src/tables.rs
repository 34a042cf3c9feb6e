//! Tables of the device under test (RFC 3222): filled before the first row that goes through them, checked by traffic, emptied when the
//! next row needs another one and at the end. How each is emptied is on disk before it is filled.

use crate::error::ForwardingError;
use crate::{Bench, Event};
use narrows_forwarding::data::modifiers::TableSeen;
use narrows_forwarding::data::plan::{Row, TableCommands};
use narrows_forwarding::data::{ForwardingPlan, Test};
use narrows_forwarding::procedures::{Keep, Load, Request};
use narrows_model::host::table::{TableFill, TableKind};
use narrows_model::{Place, Setting};
use narrows_runner::campaign::Pending;
use narrows_runner::state;
use narrows_runner::tune::{Tuner, table};
use narrows_sys::{clock, files};
use narrows_traffic::Stop;
use narrows_wire::tables;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Frames of a check, to addresses drawn over the table.
const FRAMES: u64 = 10_000;
const FRAMES_PPS: f64 = 10_000.0;
/// How long a kernel may take until all arrive, and the rest between two checks.
const WITHIN: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(500);
/// How often the filling is reported, and looked at.
const SAY: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(20);

/// A table that is filled.
#[derive(Debug)]
pub(super) struct Filled {
    fill: TableFill,
    by: By,
}

/// Who filled it, and so empties it.
#[derive(Debug)]
enum By {
    /// narrows: the change in the journal.
    Change(String),
    Command(Box<Pending>),
}

fn failed(fill: TableFill, why: impl Into<String>) -> ForwardingError {
    ForwardingError::Table(fill.to_string(), why.into())
}

fn tuner() -> Result<Tuner, String> {
    let state = state::directory().ok_or("no state directory; set HOME or XDG_STATE_HOME")?;
    Ok(Tuner::new(&state, "rfc2544"))
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl Bench<'_> {
    /// Makes the tables of the device those of a row.
    pub(super) fn table(&mut self, plan: &ForwardingPlan, row: Row) -> Result<(), ForwardingError> {
        let wanted = plan.table(row.traffic);
        if self.filled.as_ref().map(|filled| filled.fill) == wanted {
            return Ok(());
        }
        self.empty()?;
        let Some(fill) = wanted else { return Ok(()) };
        (self.watch)(Event::Says(&format!("adding {fill} to the device under test")));
        let began = clock::now();
        let by = match &plan.tables {
            Some(commands) => self.by_command(commands, row, fill)?,
            None => self.by_narrows(row, fill)?,
        };
        self.filled = Some(Filled { fill, by });
        if self.over() {
            return Ok(());
        }
        let install_ms = millis(began);
        let within = plan.tables.as_ref().map_or(WITHIN, |it| Duration::from_millis(it.within_ms));
        let seen = self.converge(row, fill, within)?;
        let Some(seen) = seen else { return Ok(()) };
        let says = format!(
            "{fill} added in {install_ms} ms; all {} frames through them arrive {} ms later, none of {} control frames",
            seen.sent, seen.converge_ms, seen.control_sent
        );
        (self.watch)(Event::Says(&says));
        self.tester.set_table(Some(TableSeen { install_ms, ..seen }));
        Ok(())
    }

    /// Sends frames over the table until all arrive, then control frames that must not; `None`: interrupted.
    fn converge(&mut self, row: Row, fill: TableFill, within: Duration) -> Result<Option<TableSeen>, ForwardingError> {
        let load = Load::Burst { frames: FRAMES, pps: FRAMES_PPS };
        let began = clock::now();
        let (sent, arrived, converge_ms) = loop {
            let converge_ms = millis(began);
            let (trial, _) = self.tester.trial(row, &Request::new(Test::Qualification, 0, load, Keep::Always))?;
            if self.stop.is_set() {
                return Ok(None);
            }
            let sent: u64 = trial.directions.iter().map(|it| it.sent.sent()).sum();
            let arrived: u64 = trial.directions.iter().map(|it| it.got.distinct()).sum();
            if sent > 0 && arrived == sent {
                break (sent, arrived, converge_ms);
            }
            (self.watch)(Event::Says(&format!("{arrived} of {sent} frames to the {fill} arrived")));
            if began.elapsed() >= within {
                let why = format!(
                    "only {arrived} of {sent} frames to them arrived after {} s; check the table of the device",
                    within.as_secs()
                );
                return Err(failed(fill, why));
            }
            clock::sleep(AGAIN);
        };
        let [control_sent, control_arrived] = self.tester.control(row, fill)?;
        if control_arrived > 0 {
            let why = match fill.table {
                TableKind::Routes => "to an address that has no route arrived; remove the default route of the device",
                TableKind::Rules => "that the last rule drops arrived; check the rules of the device",
                TableKind::Neighbours => {
                    "to an address without a neighbour arrived; check the neighbours of the device"
                }
            };
            return Err(failed(fill, format!("{control_arrived} of {control_sent} control frames {why}")));
        }
        Ok(Some(TableSeen { install_ms: 0, converge_ms, sent, arrived, control_sent, control_arrived }))
    }

    /// By netlink in the network of the hop under test, which is of this machine.
    fn by_narrows(&mut self, row: Row, fill: TableFill) -> Result<By, ForwardingError> {
        let failed = |why: String| failed(fill, why);
        let tuner = tuner().map_err(failed)?;
        let (gateway, mac) = self.tester.behind(row)?;
        let (stop, watch) = (self.stop.clone(), &mut self.watch);
        let hop = self.tester.dut().ok_or_else(|| failed("the plan has no hop under test".to_owned()))?;
        let setting = Setting::Table { fill, device: hop.output().to_owned(), gateway, mac };
        let recovered = hop.within(|| tuner.recover()).map_err(failed)?.map_err(|error| failed(error.to_string()))?;
        for undoing in recovered {
            let outcome = undoing.outcome.map_or_else(|error| error.to_string(), |undone| undone.to_string());
            watch(Event::Says(&format!(
                "left by a benchmark that was killed: {}: {outcome}",
                undoing.entry.change.set
            )));
        }
        table::INTERRUPT.store(false, Ordering::Relaxed);
        let change = std::thread::scope(|scope| {
            let adding = scope.spawn(|| hop.within(|| tuner.apply(&setting, Place::Server)));
            follow(fill, &stop, &|| adding.is_finished(), *watch);
            narrows_runner::result_of(adding.join())
        });
        let change = change.map_err(failed)?.map_err(|error| failed(error.to_string()));
        match change {
            Err(_) if stop.is_set() => Err(ForwardingError::Table(fill.to_string(), "interrupted".to_owned())),
            other => Ok(By::Change(other?.id)),
        }
    }

    /// By the plan's command.
    fn by_command(&mut self, commands: &TableCommands, row: Row, fill: TableFill) -> Result<By, ForwardingError> {
        let failed = |why: String| failed(fill, why);
        for name in narrows_runner::campaign::recover().map_err(failed)? {
            (self.watch)(Event::Says(&format!("left by a run that was killed, now removed: {name}")));
        }
        let (gateway, mac) = self.tester.behind(row)?;
        let state = state::directory().ok_or_else(|| failed("no state directory; set HOME".to_owned()))?;
        let file = state.join(format!("table-{}.txt", std::process::id()));
        files::make_directory(&state).map_err(|error| failed(error.to_string()))?;
        let text = listed(fill, self.tester.usual(row)?, &mac.to_string());
        files::write_whole(&file, text.as_bytes(), 0o600).map_err(|error| failed(error.to_string()))?;
        let words = |words: &[String]| -> Vec<String> {
            let word = |word: &String| {
                word.replace("{table}", fill.table.word())
                    .replace("{entries}", &fill.entries.to_string())
                    .replace("{family}", &format!("{:?}", fill.family).to_lowercase())
                    .replace("{gateway}", &gateway.to_string())
                    .replace("{file}", &file.display().to_string())
            };
            words.iter().map(word).collect()
        };
        let stop = self.stop.clone();
        let made = Pending::run(
            &format!("rfc2544-{}", std::process::id()),
            &fill.to_string(),
            words(&commands.install),
            words(&commands.remove),
            commands.within_ms,
            &|| stop.is_set(),
        );
        let (pending, ran) = made.map_err(failed)?;
        let by = By::Command(Box::new(pending));
        match ran {
            Ok(()) => Ok(by),
            Err(why) => {
                // It may have worked in part.
                self.filled = Some(Filled { fill, by });
                Err(failed(why))
            }
        }
    }

    /// Takes the entries out again, where there are any.
    pub(super) fn empty(&mut self) -> Result<(), ForwardingError> {
        let Some(Filled { fill, by }) = self.filled.take() else { return Ok(()) };
        self.tester.set_table(None);
        (self.watch)(Event::Says(&format!("removing {fill} from the device under test")));
        let stays = |why: String| {
            ForwardingError::Table(fill.to_string(), format!("they could not be removed: {why}; remove them by hand"))
        };
        match by {
            By::Command(mut pending) => pending.restore().map(drop).map_err(stays),
            By::Change(id) => {
                let tuner = tuner().map_err(stays)?;
                let hop = self.tester.dut().ok_or_else(|| stays("the plan has no hop under test".to_owned()))?;
                let hint =
                    |why: String| stays(format!("{why} (`narrows tune undo {id}` in its network tries it again)"));
                hop.within(|| tuner.undo(&id)).map_err(hint)?.map(drop).map_err(|error| hint(error.to_string()))
            }
        }
    }
}

/// Reports how far the filling is until it is over, and ends it with the benchmark.
fn follow(fill: TableFill, stop: &Stop, over: &dyn Fn() -> bool, watch: crate::Watch<'_>) {
    let mut said = clock::now();
    while !over() {
        if stop.is_set() {
            table::INTERRUPT.store(true, Ordering::Relaxed);
        }
        if said.elapsed() >= SAY {
            said = clock::now();
            let added = table::ADDED.load(Ordering::Relaxed);
            watch(Event::Says(&format!("{added} of {fill} added")));
        }
        clock::sleep(STEP);
    }
}

/// The entries for a command, one per line: a prefix, the source address that a rule drops, or a neighbour with its MAC address behind
/// the network of all.
fn listed(fill: TableFill, usual: [std::net::IpAddr; 2], mac: &str) -> String {
    let mut text = String::new();
    match fill.table {
        TableKind::Routes => tables::routes(fill.family, fill.entries).for_each(|it| {
            let _ = writeln!(text, "{}/{}", it.address, it.bits);
        }),
        TableKind::Rules => (1..=fill.entries).for_each(|entries| {
            let _ = writeln!(text, "{}", tables::control(TableFill { entries, ..fill }, usual)[0]);
        }),
        TableKind::Neighbours => {
            let link = tables::link(fill.family);
            let _ = writeln!(text, "{}/{}", link.address, link.bits);
            tables::neighbours(fill.family, fill.entries).for_each(|it| {
                let _ = writeln!(text, "{it} {mac}");
            });
        }
    }
    text
}
