//! The settings of a host of a fleet beside those of its group.

use crate::doc::Doc;
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::words::plural;
use narrows_model::run::fleet::{ComparedSetting, FleetSettings};

/// Those of a host as a page, or why they are not known.
pub fn page(host: &str, known: Result<&FleetSettings, &str>) -> String {
    known.map_or_else(|why| Doc::new(host).paragraph(&format!("Its settings are not known: {why}")), doc).html()
}

fn doc(report: &FleetSettings) -> Doc {
    let doc = Doc::new(&format!("Settings of {}", report.host)).heading("settings");
    let Some(all) = &report.settings else {
        return doc.paragraph(&format!("{} has not sent its settings yet", report.host));
    };
    doc.paragraph(&says(report, all.len() as u64)).table(table(report, all))
}

fn says(report: &FleetSettings, shown: u64) -> String {
    let FleetSettings { others, known, compared, differ, left_out, .. } = *report;
    let group = match report.group.as_str() {
        "" => "of no group".to_owned(),
        group => format!("of group {group}"),
    };
    let (others, sent) = (format!("{} {group}", plural(others, "other host")), format!("{known} sent their settings"));
    let differ = format!("{differ} of {} differ", plural(shown + left_out, "setting"));
    match compared {
        0 => format!("Not compared: of {others}, {sent}; at least 2 are needed."),
        _ if compared < known => format!("{differ}. Of {others}, {sent}; {compared} of them are compared."),
        _ => format!("{differ}. Of {others}, {sent}."),
    }
}

fn table(report: &FleetSettings, all: &[ComparedSetting]) -> Table {
    let columns = [
        Column::words("").spare(3),
        Column::words("setting"),
        Column::words(&report.host),
        Column::words("most common").spare(1),
        Column::figures("hosts").spare(2),
    ];
    let mut remarks = Vec::new();
    if report.compared > 0 {
        remarks.push(
            "most common: the value that most of the others have; hosts: how many of those that have one".to_owned(),
        );
    }
    if report.left_out > 0 {
        remarks.push(format!("{} more are not shown", report.left_out));
    }
    let mut table = Table::new("", remarks.join("; "), &columns);
    let row = |it: &ComparedSetting| {
        let hosts = it.common.as_ref().map(|_| format!("{} of {}", it.hosts[0], it.hosts[1]));
        Row::new(vec![
            Cell::new(if it.differs() { "≠" } else { "" }),
            Cell::new(&it.key),
            Cell::maybe(it.value.clone()).tone_if(it.differs(), Tone::Mark),
            Cell::maybe(it.common.clone()),
            Cell::maybe(hosts),
        ])
    };
    table.rows.extend(all.iter().map(row));
    table.trimmed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fits::{NARROWEST, fits};
    use crate::style::Style;

    fn report() -> FleetSettings {
        let row = |key: &str, value: Option<&str>, common: Option<&str>, hosts| {
            let [value, common] = [value, common].map(|it| it.map(str::to_owned));
            ComparedSetting { key: key.to_owned(), value, common, hosts }
        };
        FleetSettings {
            host: "h<3".to_owned(),
            group: "west<i>".to_owned(),
            others: 5,
            known: 4,
            compared: 4,
            differ: 2,
            left_out: 7,
            settings: Some(vec![
                row("qdisc", None, Some("fq"), [3, 4]),
                row("tcp.sack", Some("off<b>"), Some("on"), [4, 4]),
                row("nic.hardware", Some("eth9"), None, [0, 4]),
                row("tcp.wmem.max", Some("4194304"), Some("4194304"), [4, 4]),
            ]),
        }
    }

    #[test]
    fn settings_that_differ_are_marked() {
        let wide = doc(&report()).text(Style::default());
        insta::assert_snapshot!("settings", wide);
        fits("settings", &doc(&report()).text(Style { width: NARROWEST, ..Style::default() }));
        let page = page("h3", Ok(&report()));
        let row =
            "<td>≠</td><td>tcp.sack</td><td class=\"mark\">off&lt;b&gt;</td><td>on</td><td class=\"n\">4 of 4</td>";
        assert!(page.contains("<h2>Settings</h2>") && page.contains(row), "{page}");
        assert!(!page.contains("<b>") && !page.contains("<i>"), "{page}");
    }

    #[test]
    fn what_is_not_known_is_said() {
        let unknown = FleetSettings { settings: None, ..report() };
        assert!(page("h<3", Ok(&unknown)).contains("<p>h&lt;3 has not sent its settings yet</p>"));
        assert!(page("h3", Err("<b>why")).contains("Its settings are not known: &lt;b&gt;why"));
        let alone = |it: ComparedSetting| ComparedSetting { common: None, hosts: [0, 0], ..it };
        let settings = report().settings.map(|all| all.into_iter().map(alone).collect());
        let few = FleetSettings { settings, group: String::new(), others: 1, known: 1, compared: 0, ..report() };
        let page = page("h3", Ok(&few));
        assert!(page.contains("Not compared: of 1 other host of no group, 1 sent their settings;"), "{page}");
        assert!(!page.contains("most common") && !page.contains("≠"), "{page}");
        let part = FleetSettings { known: 1_200, compared: 400, ..report() };
        assert!(says(&part, 4).ends_with("1200 sent their settings; 400 of them are compared."), "{part:?}");
    }
}
