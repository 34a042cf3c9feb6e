//! Threads that keep every core awake while a trial runs, and yield to everything else on it.

use super::stop::Stop;
use narrows_sys::{cpu, thread as kernel};
use std::thread::{Builder, Scope};

/// Starts one for each core that this process may use; they end with `over`. A thread that cannot
/// get the idle policy ends at once.
/// Errors: a remark, where the threads could not be started.
pub(crate) fn keep<'scope>(scope: &'scope Scope<'scope, '_>, over: &'scope Stop) -> Result<(), String> {
    let cpus = cpu::allowed_cpus().map_err(|error| format!("cannot keep the CPUs out of idle states: {error}"))?;
    for core in cpus {
        let spin = move || {
            // On another core, or with another priority, it would disturb the measurement.
            if !kernel::set_idle() || cpu::pin(&[core]).is_err() {
                return;
            }
            while !over.is_set() {
                for _ in 0..1_000 {
                    std::hint::spin_loop();
                }
            }
        };
        let thread = Builder::new().name("awake".to_owned()).stack_size(64 << 10).spawn_scoped(scope, spin);
        thread.map_err(|error| format!("cannot keep the CPUs out of idle states: {error}"))?;
    }
    Ok(())
}
