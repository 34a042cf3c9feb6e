//! The server's end of `TCP_CRR`: connections come in at the server's one port, so it is the accept path that recognises them
//! by their hello and answers them, with what it finds here.
//!
//! [`Answers`] is what the trial and the accept path share; [`Answering`] is one connection's transaction as a state
//! machine without IO, which an asynchronous accept path drives; [`answer`] drives it on a blocking socket.

use super::budget::{AGAIN, Budget};
use super::requester::FILL;
use super::tally::Tally;
use crate::common::limits::CALL_LIMIT;
use crate::common::sockets::waits;
use narrows_model::{RrPlan, RrSample};
use narrows_sys::{clock, net, tcp};
use narrows_wire::hello;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A connection whose transaction takes longer is dropped.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The transactions of one trial, as the server's accept path answers them. All clones are one.
#[derive(Debug, Clone)]
pub struct Answers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    streams: Vec<Stream>,
    request_bytes: u64,
    response_bytes: u64,
    budget: Budget,
    first: OnceLock<Instant>,
    over: AtomicBool,
}

#[derive(Debug)]
struct Stream {
    tally: Tally,
    /// This end and the other one, of its first connection.
    ends: OnceLock<(SocketAddr, SocketAddr)>,
}

impl Answers {
    /// For a trial of this plan, made before its first connection may come.
    pub fn new(plan: &RrPlan) -> Self {
        let stream = || Stream { tally: Tally::new(), ends: OnceLock::new() };
        Self(Arc::new(Shared {
            streams: (0..plan.streams.min(RrPlan::MAX_STREAMS)).map(|_| stream()).collect(),
            request_bytes: plan.request_bytes.into(),
            response_bytes: plan.response_bytes.into(),
            budget: Budget::new(plan),
            first: OnceLock::new(),
            over: AtomicBool::new(false),
        }))
    }

    /// The transaction of a connection from `peer` that came in at `local` and whose hello
    /// ([`narrows_wire::Wanted::Transaction`]) was just read; `id` is the hello's.
    /// Errors: why it is not answered, in a sentence for [`narrows_wire::Answer::No`].
    pub fn begin(&self, id: u32, local: SocketAddr, peer: SocketAddr) -> Result<Answering, &'static str> {
        if self.0.over.load(Ordering::Relaxed) {
            return Err("the trial is over");
        }
        let stream = self.0.streams.get(id as usize).ok_or("the trial has no such stream")?;
        self.0.first.get_or_init(clock::now);
        stream.ends.get_or_init(|| (local, peer));
        Ok(Answering {
            unread: self.0.request_bytes.saturating_sub(hello::LENGTH as u64),
            unwritten: self.0.response_bytes,
            answers: self.clone(),
            id: id as usize,
            begun: false,
        })
    }

    /// Whether the trial is over: what is not answered yet may be dropped.
    pub fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Relaxed)
    }

    pub(super) fn close(&self) {
        self.0.over.store(true, Ordering::Relaxed);
    }

    /// When the first connection came.
    pub(super) fn first(&self) -> Option<Instant> {
        self.0.first.get().copied()
    }

    pub(super) fn count(&self) -> usize {
        self.0.streams.len()
    }

    /// `address:0` of this end and of the other one, once a connection came.
    pub(super) fn ends(&self, index: usize) -> Option<(String, String)> {
        let (local, peer) = self.0.streams.get(index)?.ends.get()?;
        let every = |address: &SocketAddr| SocketAddr::new(net::canonical(*address).ip(), 0).to_string();
        Some((every(local), every(peer)))
    }

    pub(super) fn sample(&self, index: usize, at_us: u64) -> RrSample {
        self.0.streams.get(index).map_or_else(RrSample::default, |stream| stream.tally.sample(at_us, false))
    }
}

/// One connection's transaction after its hello.
#[derive(Debug)]
pub struct Answering {
    unread: u64,
    unwritten: u64,
    answers: Answers,
    id: usize,
    /// Whether it was counted among what the server may answer.
    begun: bool,
}

/// What a transaction needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Requests come faster than the plan says: ask again after this time.
    Wait(Duration),
    /// Read at most this many bytes, whatever they are, and report how many with [`Answering::read`].
    Read(usize),
    /// Write these bytes or the first of them, and report how many with [`Answering::wrote`].
    Write(&'static [u8]),
    Close,
}

impl Answering {
    /// What to do next.
    pub fn step(&mut self) -> Step {
        self.begun = self.begun || self.answers.0.budget.take(1, clock::now()) > 0;
        if !self.begun {
            return if self.answers.is_over() { Step::Close } else { Step::Wait(AGAIN) };
        }
        let chunk = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX).min(FILL.len());
        match (self.unread, self.unwritten) {
            (0, 0) => Step::Close,
            (0, bytes) => Step::Write(&FILL[..chunk(bytes)]),
            (bytes, _) => Step::Read(chunk(bytes)),
        }
    }

    /// The most that its socket may send, in bytes per second, if there is a maximum.
    pub fn bytes_per_s(&self) -> Option<u64> {
        self.answers.0.budget.bytes_per_s_of_stream()
    }

    /// This many bytes of the request came in.
    pub fn read(&mut self, bytes: usize) {
        self.unread = self.unread.saturating_sub(bytes as u64);
    }

    /// This many bytes of the response were taken. With the last of them the transaction is counted as answered.
    pub fn wrote(&mut self, bytes: usize) {
        let before = self.unwritten;
        self.unwritten = before.saturating_sub(bytes as u64);
        if before > 0
            && self.unwritten == 0
            && let Some(stream) = self.answers.0.streams.get(self.id)
        {
            stream.tally.answered(1);
        }
    }
}

/// Answers one connection whose hello was read, and closes it. Blocks, no longer than [`ANSWER_LIMIT`] or the trial.
/// Errors: the socket's error; `TimedOut` after the limit; `UnexpectedEof` where the request ended early.
pub fn answer(socket: TcpStream, mut answering: Answering) -> io::Result<()> {
    tcp::set_call_limit(&socket, CALL_LIMIT).map_err(|error| error.source)?;
    let start = clock::now();
    let mut buffer = vec![0; usize::try_from(answering.unread).unwrap_or(usize::MAX).min(FILL.len())];
    loop {
        let done = match answering.step() {
            Step::Wait(time) => {
                clock::sleep(time);
                Err(ErrorKind::WouldBlock.into())
            }
            Step::Read(most) => match tcp::receive(socket.as_fd(), &mut buffer[..most]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                done => done.map(|bytes| answering.read(bytes)),
            },
            Step::Write(bytes) => tcp::send(socket.as_fd(), bytes).map(|bytes| answering.wrote(bytes)),
            Step::Close => {
                // All of the request was read, so this is a close in order.
                drop(socket);
                return Ok(());
            }
        };
        match done {
            Err(error) if waits(&error) => {
                if answering.answers.is_over() || start.elapsed() > ANSWER_LIMIT {
                    return Err(ErrorKind::TimedOut.into());
                }
            }
            done => done?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::Transaction;
    use std::net::Ipv4Addr;

    fn answers(request_bytes: u32, response_bytes: u32) -> Answers {
        let transaction = Transaction::TcpConnect;
        Answers::new(&RrPlan { transaction, request_bytes, response_bytes, streams: 2, ..RrPlan::default() })
    }

    fn begin(answers: &Answers, id: u32) -> Result<Answering, &'static str> {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        answers.begin(id, at(5220), at(40_000))
    }

    #[test]
    fn a_transaction_reads_the_rest_writes_the_response_and_counts_once() {
        let answers = answers(100, 70_000);
        let mut one = begin(&answers, 1).unwrap();
        assert_eq!(one.step(), Step::Read(56));
        one.read(50);
        assert_eq!(one.step(), Step::Read(6));
        one.read(6);
        assert!(matches!(one.step(), Step::Write(bytes) if bytes.len() == FILL.len()));
        one.wrote(69_999);
        assert_eq!((one.step(), answers.sample(1, 0).transactions), (Step::Write(&FILL[..1]), 0));
        one.wrote(1);
        one.wrote(0);
        assert_eq!((one.step(), answers.sample(1, 0).transactions), (Step::Close, 1));
        assert_eq!(answers.sample(0, 0).transactions, 0);
        assert_eq!(answers.ends(1), Some(("127.0.0.1:0".to_owned(), "127.0.0.1:0".to_owned())));
        assert_eq!(answers.ends(0), None);
    }

    #[test]
    fn a_request_within_the_hello_needs_no_more_and_a_foreign_one_gets_none() {
        let answers = answers(1, 1);
        assert_eq!(begin(&answers, 0).unwrap().step(), Step::Write(&FILL[..1]));
        assert_eq!(begin(&answers, 2).unwrap_err(), "the trial has no such stream");
        answers.close();
        assert_eq!(begin(&answers, 0).unwrap_err(), "the trial is over");
    }

    #[test]
    fn connections_that_come_too_fast_wait_and_end_with_the_trial() {
        let plan = RrPlan { transaction: Transaction::TcpConnect, max_answers_per_s: Some(0.01), ..RrPlan::default() };
        let answers = Answers::new(&RrPlan { streams: 16, ..plan });
        let [mut one, mut two] = [0, 1].map(|id| begin(&answers, id).unwrap());
        assert_eq!((one.step(), two.step()), (Step::Write(&FILL[..1]), Step::Wait(AGAIN)));
        one.wrote(1);
        assert_eq!((one.step(), two.step()), (Step::Close, Step::Wait(AGAIN)));
        answers.close();
        assert_eq!(two.step(), Step::Close);
    }
}
