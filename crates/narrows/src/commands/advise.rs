//! `narrows rfc2544 advise`: settings before a benchmark, printed for any system; applied and undone on a Linux host.

use super::rfc2544::read_plan;
use super::tune;
use crate::failure::{Failure, Outcome};
use crate::flags::words;
use crate::output::{print, printed, style};
use crate::session::tuner;
use clap::Args as ClapArgs;
use narrows_model::forwarding::advice::{AdviceRole, AdviceSystem};
use narrows_render as render;
use narrows_runner::advise::{self, host};
use std::path::Path;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    narrows rfc2544 advise cisco --role switch        the commands to type\n  \
    narrows rfc2544 advise router.toml                what narrows would set here\n  \
    narrows rfc2544 advise router.toml --apply        set all of it, or nothing\n  \
    narrows rfc2544 advise --role router --device eth1 --device eth2 --apply\n  \
    narrows rfc2544 advise --undo                     roll back, also after a crash")]
pub(super) struct Args {
    /// A system, whose commands are printed (linux, freebsd, cisco, juniper), or a plan, whose ports are looked at on this host
    #[arg(value_name = "SYSTEM|PLAN", default_value = "linux", hide_default_value = true)]
    what: String,
    /// For whom; with a plan `tester`, else all
    #[arg(long, value_enum)]
    role: Option<RoleWord>,
    /// A device of this host that test frames pass; several with several flags
    #[arg(long = "device", value_name = "DEVICE")]
    devices: Vec<String>,
    /// A bridge of this host that is the switch
    #[arg(long = "bridge", value_name = "BRIDGE")]
    bridges: Vec<String>,
    /// Set it, having written down what was there before; without it is told what would be set
    #[arg(long)]
    apply: bool,
    /// Set back what `--apply` has set
    #[arg(long, conflicts_with_all = ["what", "role", "devices", "bridges", "apply"])]
    undo: bool,
}

words! {
    /// What this host is in the benchmark.
    RoleWord for AdviceRole {
        /// A switch between tester and device
        Switch,
        /// The device under test
        Router,
        /// The tester
        Tester,
    }
}

impl Args {
    pub(super) fn run(self) -> Outcome {
        if self.undo {
            let undone = tuner(host::ROLE)?.undo_of_role().map_err(Failure::run)?;
            return tune::print_undone(undone, "nothing of the advice is in force on this host");
        }
        let role = self.role.map(AdviceRole::from);
        let system = AdviceSystem::ALL.into_iter().find(|system| system.word() == self.what);
        let of_this_host = self.apply || !self.devices.is_empty() || !self.bridges.is_empty();
        match system {
            Some(system) if !of_this_host => {
                let handbook = advise::handbook(system).map_err(Failure::run)?;
                print(&render::advice::text(&handbook, role, style()))?;
                return Ok(0);
            }
            Some(system) if system != AdviceSystem::Linux => {
                return Err(Failure::usage(format!(
                    "narrows sets nothing on {}: leave --apply, --device and --bridge out",
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
            Failure::usage("say what this host is in the benchmark: --role tester, --role router or --role switch")
        })?;
        let by_plan = plan.is_some() && role == AdviceRole::Tester;
        if !by_plan && self.devices.is_empty() && self.bridges.is_empty() {
            return Err(Failure::usage(
                "name what test frames pass on this host: --device DEVICE for each, or --bridge BRIDGE",
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
        printed(&render::advice::found(&found, made.as_deref(), style()))
    }

    fn plan(&self) -> Result<narrows_runner::forwarding::PlanFile, Failure> {
        let path = Path::new(&self.what);
        if !narrows_runner::forwarding::files::is_there(path) {
            let systems = AdviceSystem::ALL.map(AdviceSystem::word).join(", ");
            return Err(Failure::usage(format!(
                "`{}` is neither a system ({systems}) nor a plan: there is no such file",
                self.what
            )));
        }
        read_plan(path)
    }
}
