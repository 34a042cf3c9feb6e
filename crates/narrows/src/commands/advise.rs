//! `narrows rfc2544 advise`: settings before a benchmark, printed for any system; applied and undone on a Linux host.

use super::rfc2544::read_plan;
use super::tune;
use crate::failure::{Failure, Outcome};
use crate::flags::words;
use crate::output::{print, printed, style};
use crate::session::tuner;
use clap::Args as ClapArgs;
use narrows_forwarding::data::advice::{AdviceRole, AdviceSystem};
use narrows_forwarding::plan_file::PlanFile;
use narrows_forwarding::writing::advice;
use narrows_forwarding_runner::advise::{self, host};
use narrows_forwarding_runner::files;
use std::path::Path;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    narrows rfc2544 advise cisco --role switch        print the commands\n  \
    narrows rfc2544 advise router.toml                show the settings of this tester\n  \
    narrows rfc2544 advise router.toml --apply        apply all settings, or none\n  \
    narrows rfc2544 advise --role router --device eth1 --device eth2 --apply\n  \
    narrows rfc2544 advise --undo                     undo, also after a crash")]
pub(super) struct Args {
    /// System to print commands for (linux, freebsd, cisco, juniper), or plan file
    #[arg(value_name = "SYSTEM|PLAN", default_value = "linux", hide_default_value = true)]
    what: String,
    /// Role (default: tester with a plan, else all)
    #[arg(long, value_enum)]
    role: Option<RoleWord>,
    /// Interface of this host that carries test frames; repeatable
    #[arg(long = "device", value_name = "DEVICE")]
    devices: Vec<String>,
    /// Bridge of this host that is the switch; repeatable
    #[arg(long = "bridge", value_name = "BRIDGE")]
    bridges: Vec<String>,
    /// Apply the settings; old values are saved first
    #[arg(long)]
    apply: bool,
    /// Undo what `--apply` has set
    #[arg(long, conflicts_with_all = ["what", "role", "devices", "bridges", "apply"])]
    undo: bool,
}

words! {
    /// What this host is in the benchmark.
    RoleWord for AdviceRole {
        /// Switch between tester and DUT
        Switch,
        /// Device under test
        Router,
        /// The tester
        Tester,
    }
}

impl Args {
    pub(super) fn run(self) -> Outcome {
        if self.undo {
            let undone = tuner(host::ROLE)?.undo_of_role().map_err(Failure::run)?;
            return tune::print_undone(undone, "no setting of `rfc2544 advise` is in force on this host");
        }
        let role = self.role.map(AdviceRole::from);
        let system = AdviceSystem::ALL.into_iter().find(|system| system.word() == self.what);
        let of_this_host = self.apply || !self.devices.is_empty() || !self.bridges.is_empty();
        match system {
            Some(system) if !of_this_host => {
                let handbook = advise::handbook(system).map_err(Failure::run)?;
                print(&advice::text(&handbook, role, style()))?;
                return Ok(0);
            }
            Some(system) if system != AdviceSystem::Linux => {
                return Err(Failure::usage(format!(
                    "cannot apply settings on {}: only Linux is supported; drop --apply, --device and --bridge",
                    system.title()
                )));
            }
            _ => {}
        }
        let plan = match system {
            Some(_) => None,
            None => Some(self.plan()?),
        };
        let role = role.or(plan.is_some().then_some(AdviceRole::Tester));
        let role = role.ok_or_else(|| {
            Failure::usage("the role of this host is missing: give --role tester, --role router or --role switch")
        })?;
        let by_plan = plan.is_some() && role == AdviceRole::Tester;
        if !by_plan && self.devices.is_empty() && self.bridges.is_empty() {
            return Err(Failure::usage(
                "the interfaces that carry test frames are missing: give --device DEVICE for each, or --bridge BRIDGE",
            ));
        }
        let host = host::Described {
            role,
            interfaces: self.devices,
            bridges: self.bridges,
            plan: plan.as_ref().map(|file| &file.plan),
        };
        let handbook = advise::handbook(AdviceSystem::Linux).map_err(Failure::run)?;
        let found = host::compare(&handbook, &host).map_err(Failure::run)?;
        let made =
            if self.apply { Some(host::apply(&tuner(host::ROLE)?, &found).map_err(Failure::run)?) } else { None };
        printed(&advice::found(&found, made.as_deref(), style()))
    }

    fn plan(&self) -> Result<PlanFile, Failure> {
        let path = Path::new(&self.what);
        if !files::is_there(path) {
            let systems = AdviceSystem::ALL.map(AdviceSystem::word).join(", ");
            return Err(Failure::usage(format!("`{}` is neither a system ({systems}) nor a plan file", self.what)));
        }
        read_plan(path)
    }
}
