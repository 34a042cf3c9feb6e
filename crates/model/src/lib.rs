//! The plain data of narrows and its units: no IO, no clock, no logic that decides.
//!
//! The spine, each step a file of this crate:
//!
//! ```text
//! Plan -> Trial (+ Snapshot) -> Run -> Accounts -> Verdict -> Report
//! ```
//!
//! Only a [`Run`] is stored; everything right of it is derived, so an old run can be
//! diagnosed again by newer rules.

pub mod diagnosis;
pub mod host;
pub mod lab;
pub mod load;
pub mod run;
pub mod trace;
pub mod words;

pub use diagnosis::account::{Ceiling, Method, TimeBudget};
pub use diagnosis::ledger::{Ledger, Stage};
pub use diagnosis::verdict::{Command, Finding, Fix, Prediction, Rejected, Status, Verdict, Witness};
pub use host::audit::{Audit, AuditRow, Hazard, Severity};
pub use host::change::{Change, Setting};
pub use host::connection::{
    ConnectionCeiling, ConnectionEnds, ConnectionLimit, ConnectionOrder, ConnectionSample, ConnectionShares,
    ConnectionView, ConnectionsReading, ConnectionsView, Others, Owner,
};
pub use host::fact::{Absent, CollectorRun, Fact, FactKey, Snapshot, Unit, Value};
pub use host::keys;
pub use host::watch::{InterfaceSample, WatchView};
pub use load::host::{CpuTimes, HostSample, SocketMemory};
pub use load::kind::{Cap, Carrier, EndRecord, Load, Plan, Sample, StreamSpec, TrialOf};
pub use load::placement::{Pin, Placement};
pub use load::profile::{
    ProfileEndRecord, ProfilePlan, ProfileProbe, ProfileSample, ProfileStep, ProfileStream, ProfileTrial, StepPart,
    StepReceived, StepRecord, StepSent,
};
pub use load::rr::report::{LatencyUnderLoad, RrReport};
pub use load::rr::{RrEndRecord, RrPlan, RrSample, RrStreamRecord, RrTrial, Transaction};
pub use load::tcp::{
    Application, BufferLock, Limit, Receive, TcpEndRecord, TcpPlan, TcpSample, TcpStreamRecord, TcpSubflow, TcpTrial,
    Transport, ZeroCopy,
};
pub use load::tcp_info::TcpInfo;
pub use load::trial::{Kind, Trial};
pub use load::udp::record::{Distribution, UdpEndRecord, UdpReceived, UdpSample, UdpSent, UdpStreamRecord, Unsent};
pub use load::udp::report::MeasureUdpReport;
pub use load::udp::{Batching, DatagramSizes, UdpPlan, UdpRate, UdpTrial};
pub use load::{LoadPlan, LoadRecord, LoadSample, Progress, StreamProgress};
pub use run::both_directions::BothDirections;
pub use run::diff::DiffReport;
pub use run::measure::MeasureReport;
pub use run::report::Report;
pub use run::search::{Goal, GoalResult, LoadTrial, Observation, SearchMethod, SearchPlan, SearchRecord};
pub use run::sweep::{
    SweepCell, SweepFigures, SweepOutcome, SweepPlan, SweepPoint, SweepProtocol, SweepRecord, SweepReport,
};
pub use run::{DiagnosePlan, Ending, Purpose, Run, Target, TrialRecord, Underlay};
pub use trace::record::{AnswerKind, MplsLabel, ProbePurpose, TraceAnswer, TraceProbe, TraceRecord};
pub use trace::report::TraceReport;
pub use trace::{TracePlan, TraceProtocol};
pub use words::place::{Direction, Family, Flow, Place};
