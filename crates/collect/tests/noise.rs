//! A host whose files hold arbitrary text: no collector panics, and each key becomes a fact or an absence.

use narrows_collect::kernel::{Answer, Ethtool, Link, Question, Reported, Route};
use narrows_collect::{COLLECTORS, Host, Missing, inventory};
use narrows_sys::ethtool::Driver;
use proptest::prelude::*;

/// Every file has the same text, every directory its words.
struct Noise(String);

impl Host for Noise {
    fn read(&self, _path: &str) -> Result<String, Missing> {
        Ok(self.0.clone())
    }

    fn list(&self, _path: &str) -> Result<Vec<String>, Missing> {
        Ok(self.0.split_whitespace().map(str::to_owned).collect())
    }

    fn target(&self, _path: &str) -> Result<String, Missing> {
        Ok(self.0.clone())
    }

    fn ask(&self, question: &Question) -> Result<Answer, Missing> {
        Ok(match question {
            Question::Link { device } => Answer::Link(Link { name: device.clone(), ..Link::default() }),
            Question::Route { .. } => Answer::Route(Route { device: self.0.clone(), ..Route::default() }),
            Question::Ethtool { .. } => {
                let driver = Driver { bus: "0000:03:00.0".into(), ..Driver::default() };
                Answer::Ethtool(Ethtool { driver: Reported::Known(driver), ..Ethtool::default() })
            }
            // An answer to another query, as a capture with mixed-up files would give.
            _ => Answer::FilterRules(1),
        })
    }

    fn taken_unix_us(&self) -> u64 {
        0
    }
}

fn check(text: &str) {
    let facts = inventory(&Noise(text.to_owned()), None);
    for key in COLLECTORS.iter().flat_map(|collector| collector.provides).filter(|key| !key.name.ends_with('*')) {
        let known = facts.get(key.name).is_some() || facts.why_absent(key.name).is_some();
        assert!(known, "{} is lost for {text:?}", key.name);
    }
}

/// Texts that resemble the parsers' input: their numbers, headers and lists, truncated and mixed.
fn kernel_like() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("TcpExt:".to_owned()),
        Just("cpu0".to_owned()),
        Just("NET_RX:".to_owned()),
        Just("TCP: mem".to_owned()),
        Just("0::/a/../b".to_owned()),
        Just("some total=".to_owned()),
        Just("MemTotal:".to_owned()),
        Just("16.0 GT/s PCIe".to_owned()),
        Just("flags : hypervisor".to_owned()),
        "[0-9]{1,25}",
        "-?[0-9]{1,20}",
        "[0-9a-f]{8}",
        "[0-9]{1,5}-[0-9]{1,12}",
        "\\PC{0,8}",
    ];
    let separator = prop_oneof![Just(" "), Just("\n"), Just("\t"), Just(","), Just(": ")];
    proptest::collection::vec((word, separator), 0..40)
        .prop_map(|parts| parts.iter().flat_map(|(word, end)| [word.as_str(), end]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,300}") {
        check(&text);
    }

    #[test]
    fn mixtures_of_known_words_never_panic(text in kernel_like()) {
        check(&text);
    }
}

#[test]
fn extreme_numbers_never_panic() {
    for text in ["", "\n", "18446744073709551615", "-9223372036854775808", "0-4294967295", "ffffffffffffffff", "9e999"]
    {
        check(text);
    }
}
