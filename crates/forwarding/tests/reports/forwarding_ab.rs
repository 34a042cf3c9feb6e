//! Two configurations of a device compared: view, tables, picture and page.

use crate::samples;

use narrows_forwarding::data::ab_report::AbReport;
use narrows_forwarding::views::{build_pair, mean_intervals};
use narrows_forwarding::writing::ab;
use narrows_render::{Style, json};
use samples::pair;

fn built() -> AbReport {
    let (record, derived) = pair();
    build_pair(&record, derived)
}

#[test]
fn as_text() {
    insta::assert_snapshot!(ab::text(&built(), Style::default()));
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(ab::markdown(&built()));
}

#[test]
fn as_a_picture_and_a_page() {
    let report = built();
    insta::assert_snapshot!("comparison.svg", ab::svg(&report, &mean_intervals(&report)).expect("a picture"));
    let page = ab::html(&report, &mean_intervals(&report));
    assert!(page.contains("<svg") && page.contains("B is 75.01 % ± 0.25 % slower than A"));
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("url("), "nothing is fetched or run");
}

#[test]
fn as_json_it_reads_back_and_holds_no_secret() {
    let report = built();
    let text = json::pretty(&report).expect("json");
    assert_eq!(serde_json::from_str::<AbReport>(&text).expect("it reads back"), report);
    assert_eq!(report.b.steps, ["fault forward-rules=10000", "command ssh"]);
    for form in
        [text, ab::text(&report, Style::default()), ab::markdown(&report), ab::html(&report, &mean_intervals(&report))]
    {
        assert!(!form.contains("a-secret"), "{form}");
    }
}

#[test]
fn a_run_that_is_not_complete_has_no_part_in_it() {
    let report = built();
    assert_eq!((report.a.runs, report.b.runs, report.planned), (3, 2, 3));
    assert_eq!(report.rows[0].b.map(|it| (it.n, it.mean)), Some((2, 249_950.0)));
    assert_eq!(report.runs[5].left_out.as_deref(), Some("interrupted"));
}

#[test]
fn nothing_measured_is_no_picture() {
    let (mut record, _) = pair();
    record.measured.clear();
    let report = build_pair(&record, narrows_forwarding::data::ab_report::AbDerived::default());
    assert_eq!(ab::svg(&report, &mean_intervals(&report)), None);
    assert!(
        ab::html(&report, &mean_intervals(&report)).contains("ended early")
            && ab::text(&report, Style::default()).contains("0 runs")
    );
}
