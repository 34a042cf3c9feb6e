//! The text of a diagnosis, as a reader sees it.

mod samples;

use narrows_render::{Style, path_profile, text};

#[test]
fn every_shape() {
    for (name, report) in samples::all() {
        insta::assert_snapshot!(name, text::report(&report, Style::default()));
    }
}

#[test]
fn a_narrow_terminal() {
    insta::assert_snapshot!(text::report(&samples::long_names(), Style { width: 80, ..Style::default() }));
}

#[test]
fn everything() {
    insta::assert_snapshot!(text::report(&samples::limited(), Style { full: true, width: 140, ..Style::default() }));
}

#[test]
fn fits_the_screen_and_never_acts_upon_the_terminal() {
    for (name, report) in samples::all() {
        for width in [60, 70, 80, 100, 160] {
            let text = text::report(&report, Style { width, ..Style::default() });
            assert!(!text.contains('\x1b'), "{name}");
            for line in text.lines().filter(|line| !line.contains("sysctl -w")) {
                assert!(line.chars().count() <= width, "{name} at {width}: {line}");
            }
        }
    }
    let lines = text::report(&samples::limited(), Style::default()).lines().count();
    assert!(lines <= 46, "{lines} lines");
}

#[test]
fn colours_change_nothing_but_colour() {
    for (name, report) in samples::all() {
        let plain = text::report(&report, Style::default());
        let colored = text::report(&report, Style { color: true, ..Style::default() });
        assert!(colored.contains("\x1b[1"));
        let mut stripped = String::new();
        let mut rest = colored.as_str();
        while let Some((before, after)) = rest.split_once("\x1b[") {
            stripped.push_str(before);
            rest = after.split_once('m').unwrap().1;
        }
        stripped.push_str(rest);
        let trim = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(trim(&plain), trim(&stripped), "{name}");
    }
}

#[test]
fn the_path_profile_as_a_picture() {
    let mut report = samples::healthy();
    insta::assert_snapshot!("path-profile.svg", path_profile::picture(&report).expect("it has a profile"));
    let profile = report.accounts.path_profile.as_mut().expect("it has a profile");
    profile.steps[0].offered_bps = 4e6;
    profile.steps[0].delivered_bps = 4e6;
    (profile.capacity_bps, profile.capacity_interval_bps) = (None, None);
    insta::assert_snapshot!("path-profile-wide.svg", path_profile::picture(&report).expect("it has a profile"));
    report.accounts.path_profile.as_mut().expect("it has a profile").steps.clear();
    assert!(path_profile::picture(&report).expect("it has a profile").contains("No step was made."));
    assert_eq!(path_profile::picture(&samples::limited()), None);
}
