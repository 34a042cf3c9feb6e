//! Fixes that `--try` proved: what is said of those that are kept, of those that may be in force since the run ended early, and of fixes of
//! the load.

use crate::samples;

use narrows_model::{Ending, Report, Status};
use narrows_render::{Style, diagnosis, picture::picture};

/// The text with single blanks instead of its lines.
fn flat(report: &Report) -> String {
    let text = diagnosis::text(report, Style::default());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How the verdict is painted on a terminal, and the bar beside it in the picture.
fn paint(report: &Report, word: &str) -> [String; 2] {
    let text = diagnosis::text(report, Style { color: true, ..Style::default() });
    let svg = picture(report);
    let bar = svg.lines().find(|line| line.contains("width=\"8\"")).expect("a bar");
    let fill = bar.split("fill=\"").nth(1).and_then(|it| it.split('"').next()).expect("a colour");
    [text.split_once(word).expect("a verdict").0.to_owned(), fill.to_owned()]
}

#[test]
fn what_a_run_that_ended_early_left_in_force_is_neither_kept_nor_rolled_back() {
    for ending in [Ending::Interrupted, Ending::Failed("cannot roll back it".to_owned())] {
        let mut report = samples::kept();
        report.run.ending = ending;
        let text = flat(&report);
        let left = "! 2 changes may still be in force: narrows tune undo 1 on the client (dct00), narrows \
                    tune undo 1 on the server (dct00, 192.41.230.25)";
        assert!(text.starts_with("LIMITED tcp-receive-window on the server") && text.contains(left), "{text}");
        assert!(text.contains("2 fixes are proven (37.1 Mbit/s to 941 Mbit/s) "), "{text}");
        assert!(text.contains("; changes may still be in force why"), "{text}");
        assert!(text.contains("(perhaps in force)") && !text.contains("(in force)"), "{text}");
        assert!(!text.contains("rolled back;") && !text.contains("kept"), "{text}");
        assert!(!picture(&report).contains("WAS LIMITED"));
        report.rounds[0].changes[0].in_force = false;
        assert!(flat(&report).contains("! 1 change may still be in force: narrows tune undo 1 on the client"));
    }
}

#[test]
fn only_a_path_that_is_healthy_after_its_fixes_is_shown_as_well() {
    let good = paint(&samples::healthy(), "HEALTHY");
    let mark = paint(&samples::suspected(), "SUSPECTED");
    let limit = Some("path-capacity".to_owned());
    for (status, cause, says, colors) in [
        (Status::Healthy, limit.clone(), "", &good),
        (Status::Limited, limit.clone(), "; now limited by path-capacity on the path", &mark),
        (Status::Suspected, limit, "; now suspected: path-capacity on the path", &mark),
        (Status::Suspected, None, "; what limits now is unknown", &mark),
        (Status::Unknown, None, "; what limits now is unknown", &mark),
    ] {
        let mut report = samples::kept();
        (report.rounds[2].status, report.rounds[2].cause) = (status, cause);
        let text = flat(&report);
        assert!(
            text.contains(&format!("fixed and kept: 37.1 Mbit/s to 941 Mbit/s{says} before the fix: The")),
            "{text}"
        );
        assert_eq!(&paint(&report, "WAS LIMITED"), colors, "{status}");
        let svg = picture(&report);
        let now = says.trim_start_matches("; ");
        let subtitle =
            if now.is_empty() { ">before the fix: The".to_owned() } else { format!(">{now}; before the fix: The") };
        assert!(svg.contains(&subtitle) && !svg.contains("confidence"), "{svg}");
    }
}

#[test]
fn a_fix_of_the_load_is_neither_kept_nor_the_gain_of_another_one() {
    let mut kept = samples::kept();
    kept.rounds[0].changes.clear();
    let text = flat(&kept);
    let says = "WAS LIMITED by tcp-send-buffer on the client (dct00), fixed and kept; tcp-receive-window on the \
                server (dct00, 192.41.230.25) remains, since its fix is another load before the fix: ";
    assert!(text.starts_with(says), "{text}");
    let mark = paint(&samples::suspected(), "SUSPECTED");
    assert_eq!(paint(&kept, "WAS LIMITED"), mark);
    assert!(diagnosis::markdown(&kept).starts_with("# Was limited: tcp-send-buffer on the client\n"));
    kept.rounds[0].proof = None;
    kept.rounds[1].cause = None;
    assert!(flat(&kept).starts_with("WAS LIMITED a fix is kept: 37.1 Mbit/s to 941 Mbit/s before the fix: "));

    let mut rolled_back = samples::three_acts();
    rolled_back.rounds[0].changes.clear();
    let says = "are possible. the fix is proven and rolled back; `--try --keep` keeps it until the next boot you got";
    assert!(flat(&rolled_back).contains(says), "{}", flat(&rolled_back));
    rolled_back.rounds[1].changes.clear();
    let text = flat(&rolled_back);
    assert!(text.contains("2 fixes are proven (37.1 Mbit/s to 941 Mbit/s) you got"), "{text}");
    assert!(text.contains("; no host was changed") && !text.contains("rolled back"), "{text}");
}
