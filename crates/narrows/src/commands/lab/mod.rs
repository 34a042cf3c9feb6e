//! `narrows lab`: an emulated network on this machine.

#[cfg(feature = "forwarding")]
mod forwarding;
mod path;
mod rows;
mod status;

use crate::failure::{Failure, Outcome};
use crate::flags::{DirectionArg, OutputArg, words};
use crate::output::{print, printed};
use crate::session::stop_on_interrupt;
use clap::Subcommand;
use narrows_runner::demo::StageError;
use narrows_runner::emulated::{self, Labs, Launcher, Site};
use narrows_runner::{demo, scenarios, verify};
use path::PathArgs;
use std::path::{Path, PathBuf};

/// An emulated network on this machine
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

words! {
    /// The place of a fault.
    PlaceWord for Site {
        /// Client host
        Client,
        /// Server host
        Server,
        /// Emulated path
        Path,
        /// Device under test
        Router,
    }
}

#[derive(Debug, Subcommand)]
enum What {
    /// Start a lab: two hosts and an emulated path, or a DUT with its tester
    Up {
        /// Name of the lab
        #[arg(default_value = "lab")]
        name: String,
        /// Take down a running lab of this name first, and end the processes in it
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        path: Box<PathArgs>,
    },
    /// Run a command on a host of a lab
    Exec {
        /// Name of the lab
        name: String,
        /// client, server or router; tester, router or switch
        host: String,
        /// Command and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Inject a fault (see `narrows list faults`)
    #[command(mut_arg("direction", |it| it.default_value("both").help("Direction of a path fault")))]
    Fault {
        /// Name of the lab
        name: String,
        /// Id of the fault
        id: String,
        /// Place of the fault
        #[arg(long, value_enum)]
        at: PlaceWord,
        /// Value of the fault, in its own unit
        #[arg(long)]
        value: Option<String>,
        #[command(flatten)]
        direction: DirectionArg,
    },
    /// Remove a fault
    Unfault {
        /// Name of the lab
        name: String,
        /// Id of the fault, or `all`
        id: String,
        /// Place of the fault (default: all)
        #[arg(long, value_enum)]
        at: Option<PlaceWord>,
    },
    /// Show one lab or all: hosts, path, faults, counters
    Status {
        /// Name of the lab
        name: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop a lab and remove its network
    Down {
        /// Name of the lab
        #[arg(default_value = "lab")]
        name: String,
    },
    /// Hold a lab; started by `up`
    #[command(hide = true)]
    Hold,
    /// Benchmark the lab's router (RFC 2544) and write an HTML report
    #[cfg(feature = "forwarding")]
    DemoForwarding(forwarding::ForwardingArgs),
    /// Diagnose and fix a small receive window: three rounds at 1 Gbit/s and 35 ms
    Demo(OutputArg),
    /// Test the diagnosis on named or random scenarios of known truth
    #[command(alias = "bank")]
    Scenarios {
        /// Which named scenarios
        #[arg(long, value_enum, default_value_t = Suite::Causes, conflicts_with = "draw")]
        suite: Suite,
        /// Print one JSON object per scenario as it ends: what was made, the truth, the verdict, the time
        #[arg(long)]
        json: bool,
        /// Run only scenarios whose name contains one of these words
        #[arg(value_name = "WORD")]
        only: Vec<String>,
        /// Instead of the named scenarios, draw paths and faults at random from this seed; what is true of each is then measured
        /// with plain loads, with and without each fault
        #[arg(long, value_name = "SEED", conflicts_with_all = ["only", "repetitions"])]
        draw: Option<u64>,
        /// Number of random scenarios
        #[arg(short = 'n', long = "number", default_value_t = 20, value_name = "N", requires = "draw")]
        number: u64,
        /// With --draw: UDP loads instead of TCP
        #[arg(long, requires = "draw")]
        udp: bool,
        /// Runs per scenario
        #[arg(long, short = 'r', default_value_t = 1, value_name = "N")]
        repetitions: u32,
        /// Save each run to this directory
        #[arg(long, value_name = "DIRECTORY")]
        keep: Option<PathBuf>,
        /// Judge the runs saved in this directory; run nothing
        #[arg(long, value_name = "DIRECTORY", conflicts_with = "keep")]
        again: Option<PathBuf>,
    },
    /// Check emulator, packet ledger, search and forwarding benchmark against known truth
    Verify {
        /// Parts to check (default: all but noise)
        only: Vec<Part>,
    },
}

words! {
    /// Named scenarios.
    Suite for scenarios::Suite {
        /// Each cause that a lab can have, and healthy paths
        Causes,
        /// Paths as the field has them: CoDel, bursts of loss, outages, buckets, narrow ways back, pairs of limits
        Field,
    }
}

/// What `verify` checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Rate, delay, loss and queue of the emulated path (1 min)
    Emulator,
    /// Packet ledgers and causes against the drops of the lab (2 min)
    Ledger,
    /// Searches on paths of known capacity (2 to 3 min)
    Search,
    /// Forwarding benchmark of a device with known behaviour (1 min)
    #[cfg(feature = "forwarding")]
    Forwarding,
    /// Searches on a disturbed machine: MLRsearch against bisection (7 min)
    Noise,
}

impl Part {
    /// Those that are checked if none is named.
    const USUAL: &[Self] = &[
        Self::Emulator,
        Self::Ledger,
        Self::Search,
        #[cfg(feature = "forwarding")]
        Self::Forwarding,
    ];

    fn verify(self, rows: &mut rows::Rows) -> Result<(), Failure> {
        let verified = match self {
            Self::Emulator => verify::emulator(rows).map_err(StageError::from),
            Self::Ledger => verify::ledger(rows),
            Self::Search => verify::search(rows),
            #[cfg(feature = "forwarding")]
            Self::Forwarding => narrows_forwarding_runner::verify::verify(rows),
            Self::Noise => verify::noise(rows),
        };
        verified.map_err(Failure::run)
    }
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let labs = Labs::of_user();
        match self.what {
            What::Up { name, replace, path } => {
                let (spec, launcher) = (path.spec(&name)?, Launcher::own().map_err(Failure::run)?);
                let up = if replace { labs.replace(&spec, &launcher) } else { labs.up(&spec, &launcher) };
                printed(&status::text(&up.map_err(Failure::run)?))
            }
            What::Exec { name, host, command } => {
                let (program, words) = command.split_first().ok_or_else(|| Failure::usage("the command is missing"))?;
                match labs.exec(&name, &host, program, words) {
                    Err(error) => Err(Failure::run(error)),
                    Ok(never) => match never {},
                }
            }
            What::Fault { name, id, at, value, direction } => {
                let faults =
                    labs.fault(&name, &id, at, value.as_deref(), direction.direction()).map_err(Failure::run)?;
                print_faults(&faults)
            }
            What::Unfault { name, id, at } => {
                print_removed(&labs.unfault(&name, &id, at.map(Site::from)).map_err(Failure::run)?)
            }
            What::Status { name, json } => print_status(&labs, name, json),
            What::Down { name } => {
                labs.down(&name).map_err(Failure::run)?;
                printed(&format!("lab {name} is down"))
            }
            // The holder has printed its error on standard output.
            What::Hold => Ok(u8::from(emulated::hold().is_err())),
            #[cfg(feature = "forwarding")]
            What::DemoForwarding(args) => prepare_privileges().and_then(|()| args.run()),
            What::Demo(OutputArg { output }) => {
                prepare_privileges()?;
                let code =
                    demo::play(output.as_deref(), &mut |line| crate::failure::note!("{line}")).map_err(Failure::run)?;
                Ok(u8::try_from(code).unwrap_or(1))
            }
            What::Scenarios { draw: Some(seed), number, udp, keep, again, json, .. } => {
                make_kept(keep.as_deref())?;
                let drawn = (0..number).map(|number| scenarios::draw(seed, number, udp)).collect();
                match again {
                    Some(kept) => run_drawn(drawn, json, |case, file| scenarios::drawn_again(case, &kept.join(file))),
                    None => prepare_privileges().and_then(|()| {
                        run_drawn(drawn, json, |case, file| {
                            scenarios::run_drawn(case, keep.as_ref().map(|directory| directory.join(file)).as_deref())
                        })
                    }),
                }
            }
            What::Scenarios { suite, only, repetitions, again: Some(kept), json, .. } => {
                run_scenarios(suite, &only, repetitions, json, |_, file| scenarios::again(&kept.join(file)))
            }
            What::Scenarios { suite, only, repetitions, keep, json, .. } => {
                make_kept(keep.as_deref())?;
                prepare_privileges()?;
                run_scenarios(suite, &only, repetitions, json, |case, file| {
                    scenarios::run(case, keep.as_ref().map(|directory| directory.join(file)).as_deref())
                })
            }
            What::Verify { only } => prepare_privileges().and_then(|()| verify_parts(&only)),
        }
    }
}

/// The directory of the kept runs, before the first of them is made.
fn make_kept(directory: Option<&Path>) -> Result<(), Failure> {
    directory.map_or(Ok(()), |directory| scenarios::make_directory(directory).map_err(Failure::run))
}

/// Without root a lab lives in a user namespace, which only a process with one thread can enter.
fn prepare_privileges() -> Result<(), Failure> {
    emulated::enter_user_namespace().map_err(Failure::run)
}

fn print_faults(faults: &[emulated::ActiveFault]) -> Outcome {
    for fault in faults {
        print(&format!("{} at {} ({}): {}", fault.id, fault.at, fault.value, fault.about))?;
    }
    Ok(0)
}

fn print_removed(faults: &[emulated::ActiveFault]) -> Outcome {
    if faults.is_empty() {
        print("no fault is in force")?;
    }
    for fault in faults {
        print(&format!("removed: {} at {} ({})", fault.id, fault.at, fault.value))?;
    }
    Ok(0)
}

fn print_status(labs: &Labs, name: Option<String>, json: bool) -> Outcome {
    let names = name.map_or_else(|| labs.names(), |name| vec![name]);
    if names.is_empty() && !json {
        print("no lab is up; start one with `narrows lab up`")?;
    }
    for name in names {
        let status = labs.status(&name).map_err(Failure::run)?;
        print(&if json {
            narrows_render::json::pretty(&status).map_err(Failure::run)?
        } else {
            status::text(&status)
        })?;
    }
    Ok(0)
}

/// Grades each case by the verdict of `diagnose`, whose second argument is the file name of the case.
fn run_scenarios(
    suite: Suite,
    only: &[String],
    repetitions: u32,
    json: bool,
    diagnose: impl Fn(&scenarios::Case, &Path) -> Result<scenarios::Diagnosed, demo::StageError>,
) -> Outcome {
    let mut cases = scenarios::Suite::from(suite).cases().map_err(Failure::run)?;
    cases.retain(|case| only.is_empty() || only.iter().any(|word| case.scenario.contains(word.as_str())));
    if cases.is_empty() {
        return Err(Failure::usage("no scenario matches; see `narrows list scenarios`"));
    }
    let stop = stop_on_interrupt()?;
    let total = cases.len() * repetitions.max(1) as usize;
    let mut tally = scenarios::Tally::default();
    let mut done = 0;
    for repetition in 0..repetitions.max(1) {
        for case in &cases {
            if stop.is_set() {
                crate::failure::note!("interrupted; results so far");
                summary(&tally.text(), json)?;
                return Ok(1);
            }
            done += 1;
            let file = format!("{}-{repetition}.run.json", case.name().replace(' ', "-"));
            let outcome = diagnose(case, Path::new(&file));
            let words = match &outcome {
                Ok(said) => said.words(),
                Err(why) => why.to_string(),
            };
            if json {
                print_line(&scenarios::CaseLine::named(case, outcome.as_ref().ok()))?;
            }
            let grade = tally.add(case.clone(), outcome.ok());
            crate::failure::note!("{done}/{total} {:<44} {grade:?}: {words}", case.name());
        }
    }
    summary(&tally.text(), json)?;
    Ok(u8::from(!tally.passes()))
}

/// One case as a line of JSON.
fn print_line(line: &scenarios::CaseLine) -> Result<(), Failure> {
    print(narrows_render::json::line(line).map_err(Failure::run)?.trim_end()).map(drop)
}

/// The table at the end: beside lines of JSON it is no part of the output.
fn summary(text: &str, json: bool) -> Result<(), Failure> {
    if json {
        crate::failure::note!("{text}");
        return Ok(());
    }
    print(text).map(drop)
}

/// Runs drawn cases; `one` gets the file name under which a case is kept.
fn run_drawn(
    drawn: Vec<scenarios::Drawn>,
    json: bool,
    one: impl Fn(&scenarios::Drawn, &Path) -> Result<scenarios::DrawnResult, demo::StageError>,
) -> Outcome {
    let stop = stop_on_interrupt()?;
    let total = drawn.len();
    let mut results = Vec::new();
    for (index, drawn) in drawn.into_iter().enumerate() {
        if stop.is_set() {
            crate::failure::note!("interrupted; results so far");
            break;
        }
        let name = drawn.case.name();
        let words = match one(&drawn, Path::new(&format!("{}.run.json", drawn.case.scenario))) {
            Ok(result) => {
                let words = result.words();
                if json {
                    print_line(&scenarios::CaseLine::drawn(&result))?;
                }
                results.push(result);
                words
            }
            Err(why) => format!("failed: {why}"),
        };
        crate::failure::note!("{}/{total} {name:<30} {words}", index + 1);
    }
    summary(&scenarios::table(&results), json)?;
    Ok(u8::from(results.len() < total))
}

fn verify_parts(only: &[Part]) -> Outcome {
    let stop = stop_on_interrupt()?;
    let parts = if only.is_empty() { Part::USUAL } else { only };
    let mut rows = rows::Rows::new(stop.clone());
    for part in parts {
        let verified = part.verify(&mut rows);
        rows.pause();
        verified?;
        if stop.is_set() {
            crate::failure::note!("interrupted; results so far are above");
            return Ok(1);
        }
    }
    rows.end()
}
