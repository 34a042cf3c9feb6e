//! The text of a diagnosis, as a reader sees it.

use crate::samples;

use narrows_render::{Style, diagnosis, picture::picture};

#[test]
fn every_shape() {
    for (name, report) in samples::all() {
        insta::assert_snapshot!(name, diagnosis::text(&report, Style::default()));
    }
}

#[test]
fn fixes_that_are_kept_or_rolled_back_are_said_first_with_what_remains() {
    let head = |report| {
        let text = diagnosis::text(&report, Style::default());
        text.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let kept = head(samples::kept());
    let says = "WAS LIMITED  by tcp-receive-window on the server (dct00, 192.41.230.25) and \
                tcp-send-buffer on the client (dct00), fixed and kept: 37.1 Mbit/s to 941 Mbit/s before the fix: ";
    assert!(kept.starts_with(says), "{kept}");
    let rolled_back = head(samples::three_acts());
    let says =
        "2 fixes are proven (37.1 Mbit/s to 941 Mbit/s) and rolled back; `--try --keep` keeps them until the next boot";
    assert!(rolled_back.starts_with("LIMITED  tcp-receive-window") && rolled_back.ends_with(says), "{rolled_back}");
    let mut untried = samples::limited();
    untried.hosts.server.absent.push(narrows_model::Absent {
        collector: "diagnosis".to_owned(),
        what: "tcp-receive-window".to_owned(),
        why: "its fix cannot be tried here: this server does not allow changes".to_owned(),
    });
    let says = "tcp-receive-window: its fix cannot be tried here: this server does not allow changes";
    assert!(head(untried).ends_with(says));
    let mut no_prediction = samples::at_least();
    no_prediction.rounds[0].proof.as_mut().expect("a proof").predicted_bps = 0.0;
    let text = diagnosis::text(&no_prediction, Style { width: 160, ..Style::default() });
    assert!(text.lines().any(|line| line.trim() == "no prediction was possible"), "{text}");
}

#[test]
fn a_narrow_terminal() {
    insta::assert_snapshot!(diagnosis::text(&samples::long_names(), Style { width: 80, ..Style::default() }));
}

#[test]
fn forty_columns_squeeze_no_sentence_and_keep_columns_below_their_headings() {
    let text = diagnosis::text(&samples::limited(), Style { width: 40, ..Style::default() });
    let lines: Vec<&str> = text.lines().collect();
    let at = |start: &str| lines.iter().position(|line| line.trim_start().starts_with(start)).expect(start);
    let [got, could] = ["you got", "you could get"].map(at);
    assert!(lines[got].ends_with("bit/s") && lines[could].ends_with("bit/s"), "{text}");
    assert!(lines[could + 1].starts_with("    ") && lines[could + 1].chars().count() > 20, "{text}");
    let hosts = &lines[at("both hosts")..];
    assert!(hosts.iter().any(|line| line.trim_start().starts_with("client (dct00): ")), "{text}");
    let text = diagnosis::text(&samples::healthy(), Style { width: 40, ..Style::default() });
    let line = |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).expect(start);
    let end = |line: &str, of: &str| line.find(of).map(|from| from + of.len());
    for (row, cell) in [("idle  ", "34.9 ms"), ("under load ", "47.1 ms")] {
        assert_eq!(end(line(row), cell), end(line("p50"), "p50"), "{text}");
    }
}

#[test]
fn everything() {
    insta::assert_snapshot!(diagnosis::text(&samples::limited(), Style { full: true, width: 140, ..Style::default() }));
}

#[test]
fn a_cause_that_tcp_does_not_see_is_explained_beside_the_time_budget() {
    let explained = |congestion_window: f64| {
        let mut report = samples::limited();
        let budget = report.accounts.time_budget.as_mut().expect("it has one");
        (budget.congestion_window, budget.receive_window) = (congestion_window, 0.99 - congestion_window);
        let cause = &mut report.verdict.causes[0];
        cause.id = "app-core-saturated".to_owned();
        let text = diagnosis::text(&report, Style { width: 200, ..Style::default() });
        text.lines().any(|line| {
            line.trim_start().starts_with("TCP sees only that it waits")
                && line.contains("app-core-saturated on the server")
        })
    };
    assert!(explained(0.98));
    assert!(!explained(0.02), "the bar says the same as the verdict");
}

#[test]
fn fits_the_screen_and_never_acts_upon_the_terminal() {
    for (name, report) in samples::all() {
        for width in [40, 60, 70, 80, 100, 160] {
            let text = diagnosis::text(&report, Style { width, ..Style::default() });
            assert!(!text.contains('\x1b'), "{name}");
            for line in text.lines().filter(|line| !line.contains("sysctl -w")) {
                assert!(line.chars().count() <= width, "{name} at {width}: {line}");
            }
        }
    }
    let lines = diagnosis::text(&samples::limited(), Style::default()).lines().count();
    assert!(lines <= 46, "{lines} lines");
}

#[test]
fn colours_change_nothing_but_colour() {
    for (name, report) in samples::all() {
        let plain = diagnosis::text(&report, Style::default());
        let colored = diagnosis::text(&report, Style { color: true, ..Style::default() });
        assert!(colored.contains("\x1b[1"));
        let trim = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(trim(&plain), trim(&samples::same::unpainted(&colored)), "{name}");
    }
}

#[test]
fn a_diagnosis_as_a_picture() {
    insta::assert_snapshot!("picture-rounds.svg", picture(&samples::three_acts()));
    assert!(picture(&samples::unknown()).contains(">UNKNOWN</text>"));
    let open = picture(&samples::at_least());
    assert!(open.contains(">at least: more was not measured</text>"), "{open}");
    assert!(
        open.contains(">nothing arrived without the fix</text>") && open.contains(">≥ 949 Mbit/s</text>"),
        "{open}"
    );
    let mut report = samples::healthy();
    insta::assert_snapshot!("picture.svg", picture(&report));
    let profile = report.accounts.path_profile.as_mut().expect("it has a profile");
    profile.steps[0].offered_bps = 4e6;
    profile.steps[0].delivered_bps = 4e6;
    (profile.capacity_bps, profile.capacity_interval_bps) = (None, None);
    insta::assert_snapshot!("picture-wide.svg", picture(&report));
    report.accounts.path_profile.as_mut().expect("it has a profile").steps.clear();
    assert!(picture(&report).contains("No step was made."));
    report.accounts.roofline.iter_mut().for_each(|limit| limit.bps = f64::NAN);
    assert!(!picture(&report).contains("NaN"));
}
