//! The time budget: where the sender's time went. The parts sum to 1.

use super::TcpEvidence;
use narrows_model::TimeBudget;

/// The budget of the baseline; `None` where the kernel keeps no limited-time counters (before 4.10).
pub fn time_budget(evidence: &TcpEvidence) -> Option<TimeBudget> {
    let shares = evidence.base.shares?;
    // The clock of busy time goes on while anything is in flight, though the application gives nothing more.
    let app_idle = (1.0 - shares.busy).max(evidence.starved().unwrap_or(0.0));
    let busy = 1.0 - app_idle;
    // The two limited times are parts of `busy`; jiffies can make their sum exceed it.
    let (window, buffer) = (evidence.held_by_window()?, evidence.held_by_buffer()?);
    let limited = window + buffer;
    let excess = (limited - busy).max(0.0);
    let rest = (busy - limited).max(0.0);
    let recovery = shares.recovery.min(rest);
    let whole = app_idle + limited + rest;
    // Rounding may leave less than nothing.
    let part = |share: f64| (share / whole).max(0.0);
    Some(TimeBudget {
        app_idle: part(app_idle),
        receive_window: part(window - excess * window / limited.max(f64::EPSILON)),
        send_buffer: part(buffer - excess * buffer / limited.max(f64::EPSILON)),
        congestion_window: part(rest - recovery),
        recovery: part(recovery),
        unexplained: part(excess),
    })
}
