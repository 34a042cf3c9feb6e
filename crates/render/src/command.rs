//! A run of another program: its command, the number or why there is none, and the end of its output.

use crate::doc::page::Page;
use crate::format::{Document, Writer};
use crate::style::{Style, Tone};
use crate::words::clean;
use narrows_model::run::command::CommandRecord;
use narrows_model::words::show::clean as line;

impl Document for CommandRecord {
    const NAME: &'static str = "a run of another program";
    const FORMATS: &'static [Writer<Self>] = &[Writer::text("For a terminal", |it, style| Ok(text(it, style)))];
}

pub(crate) fn text(record: &CommandRecord, style: Style) -> String {
    let mut page = Page::new(style);
    page.labelled("command  ", &clean(&record.command.join(" ")), None);
    match (record.value, &record.failed) {
        (Some(value), _) => {
            page.labelled("result   ", &clean(&format!("{value} {}", record.unit)), Some(Tone::Strong));
        }
        (None, why) => {
            page.labelled("failed   ", &clean(why.as_deref().unwrap_or("no number")), Some(Tone::Mark));
        }
    }
    page.heading("Output", "");
    record.output.lines().for_each(|it| page.line(&line(it)));
    page.finish()
}
