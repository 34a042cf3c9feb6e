//! What narrows knows, read from the tables that drive it: rows of an id and a sentence.

/// What the diagnosis can name.
#[must_use]
pub fn causes() -> Vec<(String, String)> {
    rows(narrows_diagnose::causes::names())
}

/// What separates two hypotheses.
#[must_use]
pub fn experiments() -> Vec<(String, String)> {
    rows(narrows_diagnose::experiments::TCP.iter().map(|experiment| (experiment.id, experiment.words)))
}

/// What reads a host.
#[must_use]
pub fn collectors() -> Vec<(String, String)> {
    rows(narrows_collect::COLLECTORS.iter().map(|collector| (collector.id, collector.about)))
}

/// What the lab can do to a host or a path.
#[must_use]
pub fn faults() -> Vec<(String, String)> {
    rows(narrows_lab::faults::ALL.iter().map(|fault| (fault.id, fault.about)))
}

/// The scenarios of the bank.
#[must_use]
pub fn scenarios() -> Vec<(String, String)> {
    let about = |(name, text): &(&str, &str)| {
        let cases = crate::bank::cases(name, text);
        let about = cases.map_or_else(
            |error| error.to_string(),
            |cases| cases.first().map_or_else(String::new, |case| case.about.clone()),
        );
        ((*name).to_owned(), about)
    };
    crate::bank::TABLE.iter().map(about).collect()
}

fn rows<'a>(table: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    table.map(|(id, about)| (id.to_owned(), about.to_owned())).collect()
}
