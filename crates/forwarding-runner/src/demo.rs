//! A complete small forwarding benchmark on one machine: the lab's router between the two ports of its tester.

use crate::{Event, ForwardingError, HostAccess, Watch, run};
use narrows_forwarding::data::{CounterSource, ForwardingPlan, ForwardingRecord};
use narrows_forwarding::plan_file::parse;
use narrows_lab::{Lab, LabSpec, Site, Topology};
use narrows_model::Direction;
use narrows_runner::demo::StageError;
use narrows_runner::result_of;
use narrows_sys::netns;
use narrows_traffic::Stop;
use std::os::fd::{AsRawFd as _, OwnedFd};
use thiserror::Error;

/// The plan of the demonstration; its hop is read in the network of the lab's router.
const PLAN: &str = include_str!("demo.toml");

/// Why it could not be shown.
#[derive(Debug, Error)]
pub enum DemoError {
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error(transparent)]
    Forwarding(#[from] ForwardingError),
    #[error("the demo plan is invalid: {0}")]
    Plan(String),
}

impl From<narrows_lab::Error> for DemoError {
    fn from(error: narrows_lab::Error) -> Self {
        Self::Stage(error.into())
    }
}

/// A lab with a device under test, and the files that its networks are known by.
pub struct Bench {
    pub lab: Lab,
    router: OwnedFd,
}

impl Bench {
    pub fn up() -> Result<Self, DemoError> {
        let spec = LabSpec { name: "forwarding".to_owned(), topology: Topology::Dut, ..LabSpec::default() };
        let lab = Lab::up(&spec)?;
        let router = lab.host("router")?.run(netns::network_of_this_thread)?.map_err(StageError::from)?;
        Ok(Self { lab, router })
    }

    /// Where the router's counters are read.
    pub fn router(&self) -> CounterSource {
        CounterSource::Namespace { name: format!("/proc/self/fd/{}", self.router.as_raw_fd()) }
    }

    /// The demonstration's plan for this lab.
    pub fn plan(&self) -> Result<ForwardingPlan, DemoError> {
        let file = parse(PLAN).map_err(|problems| DemoError::Plan(problems.to_string()))?;
        let mut plan = file.plan;
        if let Some(hop) = plan.hops.first_mut() {
            hop.source = self.router();
        }
        Ok(plan)
    }

    /// Runs a plan on the tester.
    pub fn run(&self, plan: &ForwardingPlan, stop: &Stop, watch: Watch<'_>) -> Result<ForwardingRecord, DemoError> {
        // `watch` belongs to this thread: the tester's thread sends lines.
        let (tell, hear) = std::sync::mpsc::channel::<String>();
        let mut lines = crate::words::Lines::new(plan);
        std::thread::scope(|scope| {
            let tester = scope.spawn(move || {
                self.lab.host("tester")?.run(|| {
                    run(plan, &HostAccess::default(), stop, &mut |event| {
                        if let Some(line) = lines.next(&event) {
                            // A watcher that is gone is no reason to stop.
                            let _ = tell.send(line);
                        }
                    })
                })
            });
            for line in hear {
                watch(Event::Line(&line));
            }
            Ok(result_of(tester.join())??)
        })
    }

    /// Puts a fault into the router.
    pub fn fault(&self, id: &str, value: &str) -> Result<(), DemoError> {
        self.lab.fault(id, Site::Router, Some(value), Direction::Up)?;
        Ok(())
    }

    /// Removes a fault from the router; `all` removes every fault.
    pub fn repair(&self, id: &str) -> Result<(), DemoError> {
        self.lab.unfault(id, Some(Site::Router))?;
        Ok(())
    }
}
