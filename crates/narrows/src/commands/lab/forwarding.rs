//! `narrows lab demo-forwarding`: a complete small forwarding benchmark on one machine.

use crate::commands::rfc2544::ReportFiles;
use crate::failure::{Failure, Outcome};
use crate::flags::OutputArg;
use crate::output::{print, style};
use crate::session::stop_on_interrupt;
use narrows_forwarding::{views, writing};
use narrows_forwarding_runner::demo::Bench;
use narrows_forwarding_runner::{Event, files};
use std::path::PathBuf;

/// The files of the report.
#[derive(Debug, clap::Args)]
#[command(mut_arg("output", |it| it.help("Save the record to this file (JSON)")))]
pub(crate) struct ForwardingArgs {
    /// HTML report
    #[arg(long, value_name = "PATH", default_value = "forwarding.html")]
    html: PathBuf,
    #[command(flatten)]
    output: OutputArg,
}

impl ForwardingArgs {
    pub(crate) fn run(&self) -> Outcome {
        let files_of_report = ReportFiles { html: Some(&self.html), svg: None, output: self.output.output.as_deref() };
        files_of_report.check()?;
        let stop = stop_on_interrupt()?;
        let bench = Bench::up().map_err(Failure::run)?;
        let plan = bench.plan().map_err(Failure::run)?;
        let mut watch = |event: Event<'_>| {
            if let Event::Line(line) = event {
                crate::failure::note!("{line}");
            }
        };
        let record = bench.run(&plan, &stop, &mut watch).map_err(Failure::run)?;
        if let Some(output) = &self.output.output {
            files::write_record(output, &record).map_err(Failure::run)?;
        }
        let report = views::report(&record);
        files_of_report.write(&report)?;
        print(&writing::text(&report, style()))?;
        crate::failure::note!("HTML report: {}", self.html.display());
        Ok(u8::from(record.ended.is_some()))
    }
}
