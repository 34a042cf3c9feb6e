//! Real-time priority of a data thread that often sleeps: a kernel that preempts only at its tick would make a sender late by
//! milliseconds whenever another thread runs, and let a receiver's buffer overflow. A thread that rarely sleeps would starve
//! others, above all the other end on the same host, so it returns to the ordinary priority.

use narrows_sys::thread;

/// The share of sleep is checked this often.
const CHECK_NS: u64 = 20_000_000;

/// See the module. Ends with its value.
#[derive(Debug)]
pub(crate) struct Priority {
    granted: bool,
    checked_ns: u64,
    slept_ns: u64,
}

impl Priority {
    /// Requests it, if the client may have it; where it is not allowed, nothing changes.
    pub(crate) fn request(now_ns: u64, may: bool) -> Self {
        Self { granted: may && thread::set_real_time(), checked_ns: now_ns, slept_ns: 0 }
    }

    /// After each wait: the time, and for how long it slept.
    pub(crate) fn waited(&mut self, now_ns: u64, slept_ns: u64) {
        if !self.granted {
            return;
        }
        self.slept_ns += slept_ns;
        let passed = now_ns.saturating_sub(self.checked_ns);
        if passed >= CHECK_NS {
            if self.slept_ns < passed / 4 {
                self.give_back();
            }
            (self.checked_ns, self.slept_ns) = (now_ns, 0);
        }
    }

    fn give_back(&mut self) {
        if self.granted {
            self.granted = false;
            thread::set_ordinary();
        }
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_may_not_have_it_gets_none() {
        assert!(!Priority::request(0, false).granted);
    }

    #[test]
    fn a_thread_that_rarely_sleeps_gives_it_back() {
        // The rule is the same whether the kernel grants it or not.
        let mut priority = Priority { granted: true, ..Priority::request(0, true) };
        priority.waited(10_000_000, 9_000_000);
        priority.waited(20_000_000, 1_000_000);
        assert!(priority.granted);
        priority.waited(40_000_000, 4_000_000);
        assert!(!priority.granted);
    }
}
