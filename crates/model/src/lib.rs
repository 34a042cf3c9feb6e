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

pub mod account;
pub mod advice;
pub mod audit;
pub mod change;
pub mod device_state;
pub mod fact;
pub mod forwarding;
pub mod forwarding_ab;
pub mod forwarding_ab_report;
pub mod forwarding_modifiers;
pub mod forwarding_plan;
pub mod forwarding_report;
pub mod frame_words;
pub mod frames;
pub mod frames_report;
pub mod lab;
pub mod ledger;
pub mod line_rate;
pub mod load;
pub mod mac;
pub mod measure;
pub mod measure_rr;
pub mod measure_udp;
pub mod place;
pub mod plan;
pub mod report;
pub mod rr;
pub mod run;
pub mod search;
pub mod search_report;
pub mod show;
pub mod side_by_side;
pub mod sweep;
pub mod tcp_info;
pub mod trial;
pub mod udp;
pub mod units;
pub mod verdict;
pub mod watch;

pub use account::{Accounts, Ceiling, Method, TimeBudget};
pub use audit::{Audit, AuditRow, Hazard, Severity};
pub use change::{Change, Setting};
pub use fact::{Absent, CollectorRun, Fact, Key, Snapshot, Unit, Value};
pub use ledger::{Ledger, Stage};
pub use load::{Carrier, LoadPlan, LoadRecord};
pub use measure::MeasureReport;
pub use measure_rr::{LatencyUnderLoad, RrReport};
pub use measure_udp::{MeasureUdpReport, UdpProgress, UdpStreamProgress};
pub use place::{Direction, Family, Flow, Place};
pub use plan::{Application, DiagnosePlan, Limit, TcpPlan, ZeroCopy};
pub use report::Report;
pub use rr::{RrEndRecord, RrPlan, RrSample, RrStreamRecord, RrTrial, Transaction};
pub use run::{Ending, Purpose, RrTrialRecord, Run, Target, TrialRecord, UdpTrialRecord};
pub use search::{Goal, GoalResult, LoadTrial, Observation, SearchMethod, SearchPlan, SearchRecord};
pub use sweep::{
    SweepCell, SweepFigures, SweepOutcome, SweepPlan, SweepPoint, SweepProtocol, SweepRecord, SweepReport,
};
pub use tcp_info::TcpInfo;
pub use trial::{BufferLock, CpuTimes, EndRecord, HostSample, SocketMemory, StreamRecord, StreamSample, Trial};
pub use udp::{
    Batching, DatagramSizes, Distribution, UdpEndRecord, UdpPlan, UdpRate, UdpReceived, UdpSample, UdpSent,
    UdpStreamRecord, UdpTrial, Unsent,
};
pub use verdict::{Command, Finding, Fix, Prediction, Rejected, Status, Verdict, Witness};
pub use watch::{InterfaceSample, WatchView};
