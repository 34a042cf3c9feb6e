//! The climb of `--try` over ends that are played: what is tried in which order, what stays, and that everything is set back
//! however it ends. The trials are those of stored runs: slow without the fix, fast with it.

use narrows_model::run::{DiagnosePlan, Ending, Purpose};
use narrows_model::{
    Change, LoadPlan, Place, Progress, Run, Setting, Snapshot, Status, TcpEndRecord, TcpPlan, Trial, Value,
};
use narrows_runner::diagnosis::{self, Watch};
use narrows_runner::ends::{self, Changes, Ends, EndsError, On, TrialFailed};
use narrows_wire::iperf3::Params;
use std::path::Path;

fn stored(name: &str) -> Run {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fixtures/runs/{name}.run.json"));
    narrows_store::load(&path).expect("a stored run")
}

fn trial_of(run: &Run) -> Trial {
    run.trials.iter().find(|it| it.purpose == Purpose::Baseline { round: 0 }).expect("a baseline").trial.clone()
}

/// The slow run as it would be if `tcp_rmem`, and not a fixed buffer, ended the window: its fix is a setting.
fn slow_by_sysctl() -> Run {
    let mut run = stored("long-path-before");
    let trial = &mut run.trials[0].trial;
    let end = trial.server.get_mut::<TcpEndRecord>().expect("TCP");
    let mut buffer = 0;
    for stream in &mut end.streams {
        let lock = stream.buffer_lock.as_mut().expect("a lock");
        lock.receive = false;
        buffer =
            stream.samples.iter().filter_map(|sample| sample.memory).map(|m| m.rcvbuf_bytes).max().expect("memory");
    }
    for snapshot in [&mut run.server, &mut end.before, &mut end.after] {
        for fact in snapshot.facts.iter_mut().filter(|fact| fact.key == "tcp.rmem.max") {
            fact.value = Value::Integer(buffer.into());
        }
    }
    run
}

/// What goes wrong, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    /// The fix changes nothing.
    NoHelp,
    /// The server is lost in the trial of this number.
    LostInTrial(usize),
    /// The user interrupts in the trial of this number.
    StopInTrial(usize),
    StuckChange,
}

struct Played {
    before: Run,
    after: Trial,
    trouble: Trouble,
    /// Whether the far end is one of iperf3.
    iperf3: bool,
    in_force: Vec<Change>,
    kept: Vec<String>,
    log: Vec<bool>,
    serial: u32,
}

impl Played {
    fn new(trouble: Trouble) -> Self {
        let after = trial_of(&stored("long-path-after"));
        let (in_force, kept, log) = (vec![], vec![], vec![]);
        Self { before: slow_by_sysctl(), after, trouble, iperf3: false, in_force, kept, log, serial: 0 }
    }
}

impl Changes for Played {
    fn apply(&mut self, place: Place, setting: &Setting) -> Result<Change, EndsError> {
        self.serial += 1;
        let change = Change {
            id: format!("change-{}", self.serial),
            at: place,
            set: setting.clone(),
            before: "4096 87380 262144".into(),
            made_unix_us: 0,
            in_force: true,
        };
        self.in_force.push(change.clone());
        Ok(change)
    }

    fn undo(&mut self, change: &Change) -> Result<(), EndsError> {
        if self.trouble == Trouble::StuckChange && self.log.len() > 7 {
            return Err(EndsError::Failed("the kernel said no".into()));
        }
        let known = self.in_force.iter().position(|one| one.id == change.id).expect("only what is in force is undone");
        self.in_force.remove(known);
        Ok(())
    }

    fn keep(&mut self, change: &Change) -> Result<(), EndsError> {
        self.kept.push(change.id.clone());
        Ok(())
    }
}

impl Ends for Played {
    fn inventory(&mut self, place: Place) -> Result<Snapshot, EndsError> {
        Ok(if place == Place::Client { self.before.client.clone() } else { self.before.server.clone() })
    }

    fn idle_rtt_us(&mut self) -> Vec<u64> {
        self.before.idle_rtt_us.clone()
    }

    fn refuses(&self, plan: &LoadPlan) -> Option<String> {
        Params::of(plan).err().filter(|_| self.iperf3)
    }

    fn trial(&mut self, plan: &LoadPlan, on: On, _: ends::Watch<'_>) -> Result<Trial, TrialFailed> {
        let (Some(plan), On::Path) = (plan.get::<TcpPlan>(), on) else {
            return Err(TrialFailed { why: EndsError::Failed("no such trial here".into()), partial: None });
        };
        let number = self.log.len();
        let fixed = !self.in_force.is_empty();
        self.log.push(fixed);
        let fast = fixed && self.trouble != Trouble::NoHelp;
        let mut trial = if fast { self.after.clone() } else { trial_of(&self.before) };
        let measured = trial.plan.get::<TcpPlan>().expect("TCP");
        let plan = TcpPlan { direction: measured.direction, omit_ms: measured.omit_ms, ..plan.clone() };
        trial.plan = plan.into();
        if self.trouble == Trouble::LostInTrial(number) {
            let why = EndsError::Lost("lost the server at 192.0.2.2:5220: it says no more".into());
            return Err(TrialFailed { why, partial: Some(Box::new(trial)) });
        }
        Ok(trial)
    }

    fn stopped(&self) -> bool {
        matches!(self.trouble, Trouble::StopInTrial(number) if self.log.len() > number)
    }
}

#[derive(Default)]
struct Told {
    results: Vec<String>,
    saves: usize,
}

impl Watch for Told {
    fn step(&mut self, _: &str) {}
    fn result(&mut self, text: &str) {
        self.results.push(text.to_owned());
    }
    fn progress(&mut self, _: Place, _: &Progress, _: Option<u64>) {}
    fn save(&mut self, _: &Run) {
        self.saves += 1;
    }
}

fn climb(trouble: Trouble, keep: bool) -> (Run, Played, Told) {
    let mut ends = Played::new(trouble);
    let plan = DiagnosePlan { try_fixes: true, keep, ..plan(&ends) };
    let (run, told) = diagnosed(&mut ends, &plan);
    (run, ends, told)
}

fn plan(ends: &Played) -> DiagnosePlan {
    DiagnosePlan::of(trial_of(&ends.before).plan)
}

fn diagnosed(ends: &mut Played, plan: &DiagnosePlan) -> (Run, Told) {
    let mut told = Told::default();
    let target = ends.before.target.clone();
    let run = diagnosis::diagnose(ends, &mut told, plan, target, ("test".into(), "test".into()));
    (run, told)
}

#[test]
fn what_the_far_end_cannot_do_is_left_out_said_once_and_named_by_the_verdict() {
    let mut ends = Played { iperf3: true, ..Played::new(Trouble::None) };
    let plan = DiagnosePlan { profile: true, budget_ms: 20_000, ..plan(&ends) };
    let (run, told) = diagnosed(&mut ends, &plan);
    assert_eq!(run.ending, Ending::Complete);
    assert!(!told.results.iter().any(|line| line.contains("failed")), "{:?}", told.results);
    let left_out = told.results.iter().filter(|line| line.starts_with("left out: a profile of the path")).count();
    assert_eq!(left_out, 1, "{:?}", told.results);
    let report = narrows_diagnose::report(&run).expect("a report");
    let missing = &report.verdict.missing[0];
    assert!(missing.starts_with("no path profile: iperf3 has no such load"), "{missing}");
}

#[test]
fn a_diagnosis_keeps_to_its_time() {
    let mut ends = Played::new(Trouble::None);
    let plan = DiagnosePlan { profile: true, budget_ms: 1_000, ..plan(&ends) };
    let (run, told) = diagnosed(&mut ends, &plan);
    assert_eq!((run.ending, run.trials.len()), (Ending::Complete, 1), "the load alone");
    assert!(told.results.iter().any(|line| line.contains("no time was left for it")), "{:?}", told.results);
}

#[test]
fn a_diagnosis_keeps_to_its_bytes() {
    let mut ends = Played::new(Trouble::None);
    let plan = DiagnosePlan { profile: true, budget_ms: 20_000, budget_bytes: Some(1), ..plan(&ends) };
    let (run, told) = diagnosed(&mut ends, &plan);
    assert_eq!((run.ending, run.trials.len()), (Ending::Complete, 1), "the load used them all");
    assert!(told.results.iter().any(|line| line.contains("no bytes were left for it")), "{:?}", told.results);

    ends.before.trials[0].trial.elapsed_us = 500_000;
    let (run, _) = diagnosed(&mut ends, &plan);
    let Ending::Failed(why) = &run.ending else { panic!("{:?}", run.ending) };
    assert!(why.contains("1 B of --budget-bytes were used in 500 ms"), "{why}");
    let report = narrows_diagnose::report(&run).expect("a report");
    assert!(report.verdict.status == Status::Unknown && report.verdict.causes.is_empty() && report.carried_bytes > 1);
}

#[test]
fn a_fix_that_helps_is_proved_in_turn_and_set_back_at_the_end() {
    let (run, ends, told) = climb(Trouble::None, false);
    assert_eq!(run.ending, Ending::Complete, "{:?}", told.results);
    // The baseline, then A B, B A, A B, then the next round with the fix in force.
    assert_eq!(ends.log, [false, false, true, true, false, false, true, true]);
    assert!(ends.in_force.is_empty() && ends.kept.is_empty());
    let report = narrows_diagnose::report(&run).expect("a report");
    assert_eq!(report.verdict.causes[0].id, "tcp-receive-window");
    assert_eq!(report.rounds.len(), 2);
    assert_eq!(report.rounds[1].status, Status::Healthy);
    assert_eq!(diagnosis::final_status(&run), Some(Status::Healthy));
    let proof = report.proof.expect("a proof");
    assert!(proof.helped && proof.before_bps.len() == 3 && proof.after_bps.len() == 3);
    assert!(report.rounds[0].changes.iter().all(|change| !change.in_force), "{:?}", report.rounds[0].changes);
    assert!(told.saves > ends.log.len(), "the run is saved after every step");
}

#[test]
fn what_helped_stays_where_that_was_asked_for() {
    let (run, ends, _) = climb(Trouble::None, true);
    assert_eq!(run.ending, Ending::Complete);
    assert_eq!(ends.kept.len(), 1);
    assert_eq!(ends.in_force.len(), 1);
    assert!(run.attempts[0].changes.iter().any(|change| change.in_force));
}

#[test]
fn a_fix_that_does_not_help_is_set_back_and_lowers_the_diagnosis() {
    let (run, ends, told) = climb(Trouble::NoHelp, true);
    assert_eq!(run.ending, Ending::Complete);
    assert!(ends.in_force.is_empty() && ends.kept.is_empty());
    assert!(told.results.iter().any(|line| line.contains("did not help")), "{:?}", told.results);
    let report = narrows_diagnose::report(&run).expect("a report");
    assert_eq!(report.verdict.status, Status::Suspected);
    // What is told last is what the report says.
    assert!(report.verdict.headline.contains("was suspected"), "{}", report.verdict.headline);
    assert!(told.results.contains(&report.verdict.headline), "{:?}", told.results);
}

#[test]
fn a_server_lost_in_the_proof_leaves_what_was_measured_and_a_sentence() {
    let (run, ends, _) = climb(Trouble::LostInTrial(2), false);
    assert!(matches!(&run.ending, Ending::Failed(why) if why.contains("lost the server")), "{:?}", run.ending);
    let proofs = run.trials.iter().filter(|record| matches!(record.purpose, Purpose::Proof { .. })).count();
    assert_eq!((run.trials.len(), proofs), (3, 2), "the partial trial is kept too");
    assert!(ends.in_force.is_empty());
    assert!(narrows_diagnose::report(&run).is_some());
}

#[test]
fn an_interrupt_sets_all_back_and_keeps_what_was_measured() {
    for trial in 0..7 {
        let (run, ends, _) = climb(Trouble::StopInTrial(trial), true);
        assert_eq!(run.ending, Ending::Interrupted, "in trial {trial}");
        assert_eq!(run.trials.len(), trial + 1);
        assert!(ends.in_force.is_empty() && ends.kept.is_empty(), "in trial {trial}");
    }
}

#[test]
fn a_change_that_cannot_be_set_back_is_named_with_the_way_out() {
    let (run, ends, _) = climb(Trouble::StuckChange, false);
    assert_eq!(ends.in_force.len(), 1);
    let Ending::Failed(why) = &run.ending else { panic!("{:?}", run.ending) };
    assert!(why.contains("sysctl -w net.ipv4.tcp_rmem") && why.contains("narrows tune undo all"), "{why}");
}
