//! The Markdown of a diagnosis.

mod samples;

use narrows_render::markdown;

#[test]
fn every_shape() {
    for (name, report) in samples::all() {
        insta::assert_snapshot!(name, markdown::report(&report));
    }
}

#[test]
fn words_from_outside_stay_words() {
    assert_eq!(markdown::text("<script>*x*|`y`\x1b[2J"), "&lt;script&gt;\\*x\\*\\|\\`y\\`?\\[2J");
    assert_eq!(markdown::code("a`b|c\nd"), "a'b\\|c d");
    let page = markdown::report(&samples::long_names());
    assert!(!page.contains('\x1b'));
}
