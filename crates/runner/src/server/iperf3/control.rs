//! The control connection of a test, with what came and is not read yet. All reads can be cancelled.

use super::limits::ANSWER;
use crate::server::trial::part;
use narrows_wire::iperf3::{Inbox, State};
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub(super) struct Control {
    stream: TcpStream,
    inbox: Inbox,
}

impl Control {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, inbox: Inbox::default() }
    }

    async fn more(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => {
                self.inbox.push(&bytes[..count]);
                Ok(())
            }
        }
    }

    /// The next state that the client tells.
    pub(super) async fn state(&mut self) -> io::Result<State> {
        loop {
            if let Some(byte) = self.inbox.byte() {
                return State::of(byte).ok_or_else(|| ErrorKind::InvalidData.into());
            }
            self.more().await?;
        }
    }

    pub(super) async fn json(&mut self, most: usize) -> io::Result<Vec<u8>> {
        within(ANSWER, async {
            loop {
                match self.inbox.json(most) {
                    Ok(Some(text)) => return Ok(text),
                    Ok(None) => self.more().await?,
                    Err(_) => return Err(ErrorKind::InvalidData.into()),
                }
            }
        })
        .await
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        within(ANSWER, self.stream.write_all(bytes)).await
    }

    pub(super) async fn tell(&mut self, state: State) -> io::Result<()> {
        self.send(&[state.byte()]).await
    }

    /// Refuses the test with iperf3's code, and closes so that it arrives.
    pub(super) async fn refuse(self, code: i32) {
        let word = [&[State::ServerError.byte()][..], &code.to_be_bytes(), &0_i32.to_be_bytes()].concat();
        part(self.stream, &word).await;
    }

    /// Says that there is no room.
    pub(super) async fn deny(self) {
        part(self.stream, &[State::AccessDenied.byte()]).await;
    }

    /// Ends the test in the server's name.
    pub(super) async fn terminate(self) {
        part(self.stream, &[State::ServerTerminate.byte()]).await;
    }
}

/// A call with a time limit.
pub(super) async fn within<T>(limit: Duration, call: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(limit, call).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}
