//! The server's end of a sweep over message sizes.

use linerate_sock::handle::BorrowedFd;

use linerate_engine::Sockets;
use linerate_proto::{Ended, SessionInput, SweepTrial};

use super::ServerRun;
use crate::error::ControlError;
use crate::sweep::Runner;

/// The server's end of the sweep's stream, while there is one.
#[derive(Debug, Default)]
pub(super) struct ServerSweep {
    runner: Option<Runner>,
}

impl ServerSweep {
    /// Wakes the dialogue when a trial is over.
    pub(super) fn waker(&self) -> Option<BorrowedFd<'_>> {
        self.runner.as_ref().map(Runner::waker)
    }

    /// Ends the running trial.
    pub(super) fn drop_stream(&mut self) {
        self.runner = None;
    }
}

impl ServerRun<'_> {
    /// Begins the sweep when its stream has arrived.
    pub(super) fn begin_series(&mut self, sockets: Sockets) -> Result<(), ControlError> {
        let Some(client) = self.client.as_ref() else { return Ok(()) };
        let Sockets::Tcp(mut streams) = sockets else { return Ok(()) };
        let stream =
            streams.pop().ok_or_else(|| ControlError::Local("a series without a stream".to_owned()))?;
        let account = self.shared.queue.account(client.ticket);
        self.series.runner = Some(Runner::new(stream, &client.spec, false)?.counted_in(account));
        self.dialogue.begin_counting();
        self.dialogue.input(SessionInput::FlowsOpen)
    }

    pub(super) fn begin_trial(&mut self, trial: SweepTrial) -> Result<(), ControlError> {
        match &mut self.series.runner {
            Some(runner) => runner.begin(trial),
            None => Err(ControlError::Local("a trial without a stream".to_owned())),
        }
    }

    /// Sends the counts of a finished trial, and reports that the client is alive during a running one.
    pub(super) fn check_series(&mut self) -> Result<(), ControlError> {
        let Some(runner) = &mut self.series.runner else { return Ok(()) };
        let (alive, count) = (runner.alive(), runner.take());
        if alive {
            self.dialogue.input(SessionInput::Alive)?;
        }
        count.map_or(Ok(()), |count| self.dialogue.input(SessionInput::TrialCounted(count)))
    }

    /// Sends the final report of this end in reply to the client's.
    pub(super) fn end_series(&mut self, ended: &Ended) -> Result<(), ControlError> {
        let Some(mut runner) = self.series.runner.take() else { return Ok(()) };
        runner.stop();
        // A trial that the client abandoned was not counted at its end either.
        let mut own = runner.final_report(ended.flow);
        self.dialogue.note_counts(&mut own.tally);
        own.caveats.extend(self.dialogue.extra_caveats().iter().cloned());
        self.dialogue.input(SessionInput::FlowEnded(Box::new(own)))
    }
}
