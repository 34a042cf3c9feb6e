//! A host whose files, directories, links and kernel answers are whatever the bytes say: every parser of the collectors.
use narrows_collect::kernel::{Answer, Question};
use narrows_collect::{Host, Meta, Missing, counters, inventory};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, Ipv4Addr};

/// More would only be slow: the collectors have limits of their own, which other tests try.
const NAMES_MOST: usize = 16;

/// The parts of the input are dealt out to the questions, the same part always to the same question.
struct Noise<'a>(Vec<&'a str>);

impl Noise<'_> {
    fn part(&self, question: &str) -> Result<&str, Missing> {
        let mut hasher = DefaultHasher::new();
        question.hash(&mut hasher);
        let nth = usize::try_from(hasher.finish() >> 1).unwrap_or(0).checked_rem(self.0.len());
        nth.and_then(|nth| self.0.get(nth).copied()).ok_or_else(|| Missing::because("there is no input"))
    }
}

impl Host for Noise<'_> {
    fn read(&self, path: &str) -> Result<String, Missing> {
        self.part(path).map(str::to_owned)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Missing> {
        Ok(self.part(path)?.split_whitespace().take(NAMES_MOST).map(str::to_owned).collect())
    }

    fn target(&self, path: &str) -> Result<String, Missing> {
        self.part(path).map(str::to_owned)
    }

    fn ask(&self, question: &Question) -> Result<Answer, Missing> {
        serde_json::from_str(self.part(&question.file())?).map_err(Missing::because)
    }

    fn taken_unix_us(&self) -> u64 {
        0
    }
}

pub(crate) fn run(bytes: &[u8]) {
    let _ = serde_json::from_slice::<Meta>(bytes);
    let text = String::from_utf8_lossy(bytes);
    let noise = Noise(text.split('\0').collect());
    let peer = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    for snapshot in [inventory(&noise, None), inventory(&noise, peer), counters(&noise, peer)] {
        assert!(snapshot.facts.iter().all(|fact| !fact.key.is_empty() && !fact.source.is_empty()));
        assert!(snapshot.absent.iter().all(|absent| !absent.why.is_empty()));
    }
}
