//! A measurement while it runs: its samples on disk as they come, at full resolution. A killed program loses what it wrote last, and a long
//! measurement keeps what its record in memory has no room for.
//!
//! The file is a sequence of zstd frames with lines of JSON, each an [`Entry`]. A skippable frame (RFC 8878, section 3.1.2) before each says
//! what it covers, so that a reader takes only what it needs; `zstd -dc FILE` shows all.

use crate::Error;
use narrows_model::{LoadPlan, Place, Progress, Run};
use narrows_sys::clock;
use narrows_sys::files::{Appender, Locked, Reader};

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long samples wait for their frame, at most.
const HOLD: Duration = Duration::from_secs(5);
/// The lines of a frame, about, in bytes.
const FRAME: usize = 256 << 10;
/// The largest frame that is read, in bytes.
const FRAME_MAX: usize = 64 << 20;
/// After each such part of a file a report more is left out between two that are written, so that it grows ever slower.
const PART: u64 = 256 << 20;
/// Magic number and length of a skippable frame that tells of the next one.
const HEAD: [u8; 8] = [0x5e, 0x2a, 0x4d, 0x18, 24, 0, 0, 0];

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The run before its first trial.
    Run(Box<Run>),
    /// A trial of this plan begins.
    Trial(LoadPlan),
    /// What an end told of it.
    Report(Place, Progress),
}

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cover {
    /// Number of the trial, from 0.
    pub trial: u32,
    /// Time of the first report, microseconds since the trial began; 0 where there are other entries.
    pub from_us: u64,
    /// Time of the last report; the highest number where there are other entries.
    pub to_us: u64,
}

/// The writer of a spool. The file is made with the first frame: a short measurement makes none.
#[derive(Debug)]
pub struct Spool {
    path: PathBuf,
    file: Option<(Appender, Locked)>,
    lines: Vec<u8>,
    cover: Option<Cover>,
    since: Instant,
    written: u64,
    trials: u32,
    reports: u64,
}

impl Spool {
    /// A spool that will have this path.
    pub fn new(path: PathBuf) -> Self {
        let since = clock::now();
        Self { path, file: None, lines: Vec::new(), cover: None, since, written: 0, trials: 0, reports: 0 }
    }

    /// Adds an entry; what has waited long enough is written.
    pub fn put(&mut self, entry: &Entry) -> Result<(), Error> {
        let (from_us, to_us) = match entry {
            Entry::Report(_, progress) => {
                self.reports += 1;
                // Both ends tell in turn.
                if !(self.reports / 2).is_multiple_of(1 + self.written / PART) {
                    return Ok(());
                }
                (progress.at_us, progress.at_us)
            }
            Entry::Run(_) => (0, u64::MAX),
            Entry::Trial(_) => {
                if self.trials > 0 {
                    self.write()?;
                }
                self.trials += 1;
                (0, u64::MAX)
            }
        };
        let before = self.cover.unwrap_or(Cover { trial: self.trials.saturating_sub(1), from_us, to_us });
        let (from_us, to_us) = (before.from_us.min(from_us), before.to_us.max(to_us));
        self.cover = Some(Cover { from_us, to_us, ..before });
        let encoded = serde_json::to_writer(&mut self.lines, entry);
        encoded.map_err(|error| Error::Encode(self.path.display().to_string(), error.to_string()))?;
        self.lines.push(b'\n');
        if self.lines.len() >= FRAME || self.since.elapsed() >= HOLD { self.write() } else { Ok(()) }
    }

    /// How many reports came in.
    pub const fn reports(&self) -> u64 {
        self.reports
    }

    /// Writes what waits, and gives the file the name that a whole one has; without a file there is none.
    pub fn finish(mut self, whole: &Path) -> Result<(), Error> {
        self.write()?;
        self.file.as_ref().map_or(Ok(()), |_| Ok(narrows_sys::files::rename(&self.path, whole)?))
    }

    /// Removes the file.
    pub fn discard(self) -> Result<(), Error> {
        self.file.as_ref().map_or(Ok(()), |_| Ok(narrows_sys::files::remove(&self.path)?))
    }

    fn write(&mut self) -> Result<(), Error> {
        self.since = clock::now();
        let Some(cover) = self.cover.take() else { return Ok(()) };
        let fails = |error: std::io::Error| Error::Encode(self.path.display().to_string(), error.to_string());
        let packed = zstd::bulk::compress(&self.lines, 3).map_err(fails)?;
        self.lines.clear();
        let mut bytes = Vec::with_capacity(HEAD.len() + 24 + packed.len());
        bytes.extend(HEAD);
        bytes.extend(cover.trial.to_le_bytes());
        bytes.extend(u32::try_from(packed.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend(cover.from_us.to_le_bytes());
        bytes.extend(cover.to_us.to_le_bytes());
        bytes.extend(packed);
        if self.file.is_none() {
            let locked = narrows_sys::files::lock(&self.path)?;
            self.file = Some((Appender::open(&self.path, 0o600)?, locked));
        }
        if let Some((file, _)) = &mut self.file {
            file.append(&bytes)?;
            self.written += bytes.len() as u64;
        }
        Ok(())
    }
}

/// Reads the frames that are wanted, entry by entry, each with the number of its trial. What a killed program wrote in part is left out.
/// Errors: the file cannot be read, or is damaged before its end.
pub fn read(path: &Path, wanted: impl Fn(Cover) -> bool, mut take: impl FnMut(u32, Entry)) -> Result<(), Error> {
    let file = Reader::open(path)?;
    let damaged = |at: u64, why: &str| Error::NoRun(path.to_owned(), format!("frame at byte {at}: {why}"));
    let mut at = 0;
    loop {
        let head = file.read_at(at, HEAD.len() + 24)?;
        let (Some(magic), Some(rest)) = (head.get(..8), head.get(8..32)) else { return Ok(()) };
        if magic != HEAD {
            return Err(damaged(at, "it has no header"));
        }
        let four = |from: usize| rest[from..from + 4].try_into().map_or(0, u32::from_le_bytes);
        let eight = |from: usize| rest[from..from + 8].try_into().map_or(0, u64::from_le_bytes);
        let (length, cover) = (four(4), Cover { trial: four(0), from_us: eight(8), to_us: eight(16) });
        at += 32;
        if length as usize > FRAME_MAX {
            return Err(damaged(at, "it is too large"));
        }
        if wanted(cover) {
            let packed = file.read_at(at, length as usize)?;
            if packed.len() < length as usize {
                return Ok(());
            }
            let lines = zstd::bulk::decompress(&packed, FRAME_MAX).map_err(|error| damaged(at, &error.to_string()))?;
            for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let entry = serde_json::from_slice(line).map_err(|error| damaged(at, &error.to_string()))?;
                take(cover.trial, entry);
            }
        }
        at += u64::from(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{Flow, StreamProgress, TcpPlan, TcpSample};
    use narrows_sys::files;

    fn report(at_us: u64) -> Entry {
        let sample = TcpSample { at_us, bytes: at_us / 8, ..TcpSample::default() }.into();
        Entry::Report(
            Place::Client,
            Progress { at_us, streams: vec![StreamProgress { id: 0, flow: Flow::Up, sample }] },
        )
    }

    #[test]
    fn entries_come_back_by_their_time_and_what_was_cut_off_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.zst");
        let mut spool = Spool::new(path.clone());
        let run = crate::file::tests::run("a");
        spool.put(&Entry::Trial(TcpPlan::default().into())).unwrap();
        spool.put(&Entry::Run(Box::new(run.clone()))).unwrap();
        for at_us in (0..4_000_000).step_by(1_000) {
            spool.put(&report(at_us)).unwrap();
        }
        assert_eq!(spool.reports(), 4_000);
        // Another process sees that it is being written.
        assert!(narrows_sys::files::try_lock(&path).unwrap().is_none());
        let part = path;
        let path = directory.path().join("whole.zst");
        spool.finish(&path).unwrap();
        assert!(!files::exists(&part));
        assert!(narrows_sys::files::try_lock(&path).unwrap().is_some());
        let times = |from: u64, to: u64| {
            let (mut times, mut runs) = (Vec::new(), 0);
            read(
                &path,
                |cover| cover.to_us >= from && cover.from_us <= to,
                |_, entry| match entry {
                    Entry::Report(_, progress) => times.push(progress.at_us),
                    Entry::Run(read) => runs += usize::from(*read == run),
                    Entry::Trial(_) => {}
                },
            )
            .map(|()| (times, runs))
        };
        let (all, runs) = times(0, u64::MAX).unwrap();
        assert_eq!((all, runs), ((0..4_000_000).step_by(1_000).collect::<Vec<_>>(), 1));
        let (part, _) = times(3_500_000, 3_500_000).unwrap();
        assert!(part.contains(&3_500_000) && part.len() < 3_000, "{}", part.len());

        let whole = files::read(&path, 1 << 20).unwrap();
        for cut in [1, 20, 40, 1_000, 3_000] {
            files::write_whole(&path, &whole[..whole.len() - cut], 0o600).unwrap();
            let (rest, _) = times(0, u64::MAX).unwrap();
            assert!(!rest.is_empty() && rest.len() < 4_000, "{cut}: {}", rest.len());
        }
        let mut damaged = whole.clone();
        damaged[100] ^= 0xff;
        files::write_whole(&path, &damaged, 0o600).unwrap();
        assert!(times(0, u64::MAX).unwrap_err().to_string().contains("frame at byte 32"));
        files::write_whole(&path, &[7; 100], 0o600).unwrap();
        assert!(times(0, u64::MAX).unwrap_err().to_string().contains("it has no header"));
    }

    #[test]
    fn a_short_measurement_makes_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.zst");
        let mut spool = Spool::new(path.clone());
        spool.put(&report(0)).unwrap();
        spool.discard().unwrap();
        assert!(!path.exists());
    }
}
