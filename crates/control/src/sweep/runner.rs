//! Executes the trials of a sweep over its stream, at either end, each in its own thread.

use linerate_sock::handle::{AsFd, BorrowedFd};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use linerate_compat::stand_in::{Exchange, Exchanged, Link, SystemError};
use linerate_engine::{ByteAccount, clamped_buffers, exchange, exchange_both, stream_settings};
use linerate_model::flow::FlowId;
use linerate_model::{MessageMode, Side, SideSettings, Tally, TestSpec};
use linerate_proto::{Ended, SweepTrial, TrialCount};
use linerate_sock::poll::EventFd;
use linerate_sock::{affinity, clock, tcp_info};
use linerate_units::{Bytes, Span};

use crate::error::ControlError;

/// One end of a sweep's stream.
#[derive(Debug)]
pub(crate) struct Runner {
    stream: Arc<TcpStream>,
    mode: MessageMode,
    client: bool,
    cpu: Option<u32>,
    settings: SideSettings,
    waker: Arc<EventFd>,
    sender: Sender<TrialCount>,
    counts: Receiver<TrialCount>,
    thread: Option<JoinHandle<()>>,
    /// Payload of all trials that were finished here: read, written.
    payload: (u64, u64),
    /// Number of bytes moved at the last check.
    moved: u64,
    /// Where they are added at the end.
    account: Option<Arc<ByteAccount>>,
}

impl Runner {
    /// Uses a connection whose options are set.
    pub(crate) fn new(stream: TcpStream, spec: &TestSpec, client: bool) -> Result<Self, ControlError> {
        let cpu = if client { spec.host.affinity } else { spec.host.server_affinity };
        let settings = stream_settings(&stream, &spec.socket, cpu);
        let mode = spec.sweep.as_ref().map_or(MessageMode::PingPong, linerate_model::Sweep::mode);
        let (sender, counts) = channel();
        Ok(Self {
            stream: Arc::new(stream),
            mode,
            client,
            cpu,
            settings,
            waker: Arc::new(EventFd::new()?),
            sender,
            counts,
            thread: None,
            payload: (0, 0),
            moved: 0,
            account: None,
        })
    }

    /// Adds the bytes of the stream to an account when it ends.
    pub(crate) fn counted_in(mut self, account: Option<Arc<ByteAccount>>) -> Self {
        self.account = account;
        self
    }

    pub(crate) const fn settings(&self) -> &SideSettings {
        &self.settings
    }

    /// Wakes the dialogue when a trial is over.
    pub(crate) fn waker(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    /// Begins a trial after the previous one is over.
    pub(crate) fn begin(&mut self, trial: SweepTrial) -> Result<(), ControlError> {
        self.join();
        let (stream, waker, sender) =
            (Arc::clone(&self.stream), Arc::clone(&self.waker), self.sender.clone());
        let (mode, client, cpu) = (self.mode, self.client, self.cpu);
        let work = move || {
            // If the CPU is not available, the kernel chooses one.
            let _ = cpu.map(|cpu| affinity::set_thread_affinity(&[cpu as usize]));
            // Sending fails only if the sweep has ended meanwhile.
            let _ = sender.send(carry_out(&stream, trial, mode, client));
            waker.wake();
        };
        self.thread = Some(linerate_sock::thread::spawn("exchange", work)?);
        Ok(())
    }

    /// The counts of the trial if it is over.
    pub(crate) fn take(&mut self) -> Option<TrialCount> {
        let _ = self.waker.clear();
        let count = self.counts.try_recv().ok()?;
        self.payload.0 += count.read_bytes.get();
        self.payload.1 += count.written_bytes.get();
        Some(count)
    }

    /// Whether bytes have moved since the last call, which shows that the peer is alive even if its messages
    /// are late.
    pub(crate) fn alive(&mut self) -> bool {
        let before = self.moved;
        self.look();
        self.moved != before
    }

    fn look(&mut self) {
        if let Ok(info) = tcp_info(&*self.stream) {
            self.moved = info.bytes_received.unwrap_or(0).wrapping_add(info.bytes_acked.unwrap_or(0));
        }
    }

    /// Ends a running trial, and the stream with it.
    pub(crate) fn stop(&mut self) {
        // An error means that the connection is already closed.
        let _ = self.stream.shutdown(Shutdown::Both);
        self.join();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// The final report of this end: the settings, and the payload in the direction of the server.
    pub(crate) fn final_report(&mut self, flow: FlowId) -> Ended {
        let (read, written) = self.payload;
        let bytes = Bytes::new(if self.client { written } else { read });
        let retransmits = tcp_info(&*self.stream).ok().and_then(|info| info.total_retrans).map(u64::from);
        Ended {
            flow,
            side: if self.client { Side::Sender } else { Side::Receiver },
            settings: self.settings.clone(),
            tally: Tally { bytes, total_bytes: bytes, retransmits, complete: true, ..Tally::default() },
            caveats: clamped_buffers(&self.settings),
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
        }
        self.look();
        if let Some(account) = &self.account {
            account.add(Bytes::new(self.moved));
        }
    }
}

/// The exchange of one trial, as seen by this end.
fn carry_out(stream: &TcpStream, trial: SweepTrial, mode: MessageMode, client: bool) -> TrialCount {
    let message = trial.message_bytes;
    let moves = |moves: bool| if moves { message } else { Bytes::new(0) };
    let task = Exchange {
        link: Link(0),
        send: moves(client || mode != MessageMode::Stream),
        receive: moves(!client || mode != MessageMode::Stream),
        sends_first: client,
        repeats: trial.repeats,
        timeout: trial.timeout_ns,
        head: Vec::new(),
        cold: false,
        each_turn: false,
    };
    match handshake(stream, &task).and_then(|task| in_mode(stream, &task, mode)) {
        Ok(exchanged) => TrialCount {
            trial: trial.trial,
            read_bytes: Bytes::new(task.receive.get() * u64::from(trial.repeats)),
            written_bytes: Bytes::new(task.send.get() * u64::from(trial.repeats)),
            elapsed_ns: exchanged.elapsed,
            first_ns: exchanged.first,
            waiting_bytes: exchanged.waiting,
            arrived_bytes: exchanged.arrived,
            arriving_ns: exchanged.arriving,
            trouble: None,
        },
        Err(reason) => {
            TrialCount { trial: trial.trial, trouble: Some(reason.text.into()), ..TrialCount::default() }
        }
    }
}

/// Exchanges one byte in each direction, so that both ends are ready. Returns the task with the remaining time.
fn handshake(stream: &TcpStream, task: &Exchange) -> Result<Exchange, SystemError> {
    let began = clock::now();
    let one = Bytes::new(1);
    exchange(stream, &Exchange { send: one, receive: one, repeats: 1, ..task.clone() })?;
    let spent = Span::from(clock::now().since(began));
    Ok(Exchange { timeout: task.timeout.saturating_sub(spent), ..task.clone() })
}

fn in_mode(stream: &TcpStream, task: &Exchange, mode: MessageMode) -> Result<Exchanged, SystemError> {
    if mode == MessageMode::Both { exchange_both(stream, task) } else { exchange(stream, task) }
}
