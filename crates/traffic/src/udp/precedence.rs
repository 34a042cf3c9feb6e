//! A data thread that often sleeps asks to run before others when its instant comes, or when its data does: a kernel that
//! preempts only at its tick would make a sender late by milliseconds whenever another thread is at work, and let a receiver's
//! buffer overflow. One that hardly sleeps would keep others from their work, the other end on the same host first of
//! all, so it gives the precedence back.

use narrows_sys::thread;

/// The share of sleep is looked at this often.
const LOOK_NS: u64 = 20_000_000;

/// See the module. Ends with its value.
#[derive(Debug)]
pub(crate) struct Precedence {
    granted: bool,
    looked_ns: u64,
    slept_ns: u64,
}

impl Precedence {
    /// Asks for it; where it is not allowed, nothing changes.
    pub(crate) fn ask(now_ns: u64) -> Self {
        Self { granted: thread::set_real_time(), looked_ns: now_ns, slept_ns: 0 }
    }

    /// After each wait: the time, and for how long it slept.
    pub(crate) fn waited(&mut self, now_ns: u64, slept_ns: u64) {
        if !self.granted {
            return;
        }
        self.slept_ns += slept_ns;
        let passed = now_ns.saturating_sub(self.looked_ns);
        if passed >= LOOK_NS {
            if self.slept_ns < passed / 4 {
                self.give_back();
            }
            (self.looked_ns, self.slept_ns) = (now_ns, 0);
        }
    }

    fn give_back(&mut self) {
        if self.granted {
            self.granted = false;
            thread::set_ordinary();
        }
    }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_hardly_sleeps_gives_it_back() {
        // Granted or not: the word is the same.
        let mut precedence = Precedence { granted: true, ..Precedence::ask(0) };
        precedence.waited(10_000_000, 9_000_000);
        precedence.waited(20_000_000, 1_000_000);
        assert!(precedence.granted);
        precedence.waited(40_000_000, 4_000_000);
        assert!(!precedence.granted);
    }
}
