//! Passwords are decrypted one at a time, and few of a source wait for it.

use crate::lock;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// Logins of a source that wait, the one that is decrypted included.
const MAX_OF_SOURCE: usize = 8;

#[derive(Debug)]
pub(super) struct Logins {
    turn: Arc<Semaphore>,
    waiting: Mutex<HashMap<IpAddr, usize>>,
}

impl Default for Logins {
    fn default() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), waiting: Mutex::default() }
    }
}

/// One login of a source, over on drop.
struct Waiting<'a>(&'a Logins, IpAddr);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.0.waiting);
        let left = waiting.get(&self.1).map_or(0, |count| count - 1);
        if left == 0 {
            waiting.remove(&self.1)
        } else {
            waiting.insert(self.1, left)
        };
    }
}

impl Logins {
    /// Runs what decrypts, on a thread of its own. `None`: it gave nothing, or too many of this source wait.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        source: IpAddr,
        decrypt: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let _waiting = {
            let mut waiting = lock(&self.waiting);
            let count = waiting.entry(source).or_default();
            if *count >= MAX_OF_SOURCE {
                return None;
            }
            *count += 1;
            Waiting(self, source)
        };
        let turn = self.turn.clone().acquire_owned().await.ok()?;
        let decrypted = tokio::task::spawn_blocking(move || {
            // Until it is over, also where the connection is not there any more.
            let _turn = turn;
            decrypt()
        });
        decrypted.await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;
    use tokio::time::timeout;

    const MOMENT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_decryption_has_its_turn_until_it_ends_whatever_becomes_of_the_client() {
        let logins = Logins::default();
        let (end, ended) = mpsc::channel::<()>();
        let evicted = logins.run([192, 0, 2, 1].into(), move || ended.recv().ok());
        assert!(timeout(MOMENT, evicted).await.is_err(), "it is decrypted");
        let mut next = Box::pin(logins.run([192, 0, 2, 2].into(), || Some(7)));
        assert!(timeout(MOMENT, &mut next).await.is_err(), "one at a time");
        end.send(()).expect("it still runs");
        assert_eq!(next.await, Some(7));
        assert!(lock(&logins.waiting).is_empty());
    }

    #[tokio::test]
    async fn few_logins_of_a_source_wait() {
        let logins = Logins::default();
        let turn = logins.turn.clone().acquire_owned().await.expect("a turn");
        let of = |host: u8| Box::pin(logins.run([192, 0, 2, host].into(), || Some(())));
        let mut waiting: Vec<_> = (0..MAX_OF_SOURCE).map(|_| of(1)).collect();
        for one in &mut waiting {
            assert!(timeout(Duration::ZERO, one).await.is_err(), "it waits");
        }
        assert_eq!(timeout(MOMENT, of(1)).await, Ok(None), "one too many");
        let mut other = of(2);
        assert!(timeout(Duration::ZERO, &mut other).await.is_err(), "another source waits for its turn");
        drop((turn, waiting));
        assert_eq!(other.await, Some(()));
    }
}
