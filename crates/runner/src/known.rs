//! The tables of `narrows list`: rows of an id and a sentence.

pub fn causes() -> Vec<(String, String)> {
    rows(narrows_diagnose::causes::names())
}

pub fn experiments() -> Vec<(String, String)> {
    rows(narrows_diagnose::experiments::TCP.iter().map(|experiment| (experiment.id, experiment.words)))
}

/// The collectors of facts.
pub fn collectors() -> Vec<(String, String)> {
    rows(narrows_collect::COLLECTORS.iter().map(|collector| (collector.id, collector.about)))
}

/// The faults of the lab.
pub fn faults() -> Vec<(String, String)> {
    rows(narrows_lab::faults::ALL.iter().map(|fault| (fault.id, fault.about)))
}

/// The scenarios of the suite.
pub fn scenarios() -> Vec<(String, String)> {
    let about = |(name, text): &(&str, &str)| {
        let cases = crate::scenarios::cases(name, text);
        let about = cases.map_or_else(
            |error| error.to_string(),
            |cases| cases.first().map_or_else(String::new, |case| case.about.clone()),
        );
        ((*name).to_owned(), about)
    };
    crate::scenarios::TABLE.iter().chain(crate::scenarios::FIELD).map(about).collect()
}

/// The kernel parameters that `narrows tune apply` sets, and their values.
pub fn parameters() -> Vec<(String, String)> {
    crate::tune::parameters().collect()
}

fn rows<'a>(table: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    table.map(|(id, about)| (id.to_owned(), about.to_owned())).collect()
}
