//! The runs as comma-separated values, one run a line.

use crate::history::csv::{field, unit};
use narrows_model::run::campaign::CampaignReport;
use narrows_model::words::date;

/// A line for each run, with a column for each factor.
pub fn table(report: &CampaignReport) -> String {
    let join = |words: &[String]| words.iter().map(|it| field(it) + ",").collect::<String>();
    let names: Vec<String> = report.factors.iter().map(|it| it.name.clone()).collect();
    let mut out = format!("step,block,host,{}run,started,figure,unit,value,failed\n", join(&names));
    for run in &report.runs {
        out += &format!(
            "{},{},{},{}{},{},{},{},{},{}\n",
            run.step,
            run.block,
            field(&run.host),
            join(&run.levels),
            field(&run.id),
            date::utc(run.started_unix_us / 1_000_000),
            field(&report.figure),
            unit(report.unit),
            run.value.map(|it| it.to_string()).unwrap_or_default(),
            field(run.failed.as_deref().unwrap_or_default()),
        );
    }
    out
}
