//! Requests of senders on their sync connections, and the answers.

use linerate_units::Timestamp;

use super::clients::NtttcpClientMessage;
use super::{NtttcpReceiver, NtttcpReceiverState};
use crate::ntttcp::wire::{self, END, FINISHED, IDLE, READY, RUNNING, WAIT};
use crate::stand_in::{Link, Output};

impl NtttcpReceiver {
    pub(super) fn bytes(&mut self, now: Timestamp, link: Link, bytes: &[u8]) {
        if self.options.sync && self.state == NtttcpReceiverState::Idle && !self.clients.is_one_agreed(link) {
            self.unasked(now, link);
        }
        for message in self.clients.push(now, link, bytes) {
            self.handle_message(now, link, message);
        }
    }

    /// Handles data before the start: the sender does not use a sync connection.
    pub(super) fn unasked(&mut self, now: Timestamp, link: Link) {
        let before = self.waiting.len();
        self.waiting.retain(|(other, _)| *other != link);
        if self.waiting.len() < before {
            self.console
                .error(now, "data came before any sender asked for a test: give -N to both ends or to none");
            self.console.outputs.push_back(Output::Reset { link });
        }
    }

    pub(super) fn handle_message(&mut self, now: Timestamp, link: Link, message: NtttcpClientMessage) {
        match message {
            NtttcpClientMessage::Query if self.serves => self.queried(link),
            NtttcpClientMessage::Query => {
                let number = match self.state {
                    NtttcpReceiverState::Lingering => FINISHED,
                    NtttcpReceiverState::Idle if self.options.many || !self.clients.is_one_agreed(link) => {
                        IDLE
                    }
                    _ => RUNNING,
                };
                self.reply(link, number);
            }
            NtttcpClientMessage::Time(_) if self.serves && !self.is_session(link) => {
                self.turn_away(now, link)
            }
            NtttcpClientMessage::Time(seconds) => {
                let agreed = self.agree(seconds);
                self.agreed = agreed;
                self.reply(link, i32::try_from(agreed).unwrap_or(i32::MAX));
                if agreed != self.options.seconds {
                    self.console.info(now, &format!("Test cycle time negotiated is: {agreed} seconds"));
                }
            }
            NtttcpClientMessage::Ready { last } => self.ready(now, link, last),
            NtttcpClientMessage::End => self.ended_by_sender(now, link),
            NtttcpClientMessage::Nonsense => self.turn_away(now, link),
        }
    }

    fn turn_away(&mut self, now: Timestamp, link: Link) {
        self.console.outputs.push_back(Output::Close { link });
        self.left(now, link);
    }

    pub(super) fn reply(&mut self, link: Link, number: i32) {
        self.console.outputs.push_back(Output::Send { link, bytes: wire::encode(number) });
    }

    /// The seconds of the whole test, from those that a sender proposes.
    pub(super) fn agree(&self, proposed: u32) -> u32 {
        let own = self.options.seconds;
        if self.options.many {
            own
        } else if own == 0 || proposed == 0 {
            0
        } else {
            proposed.max(own)
        }
    }

    pub(super) fn ready(&mut self, now: Timestamp, link: Link, last: bool) {
        match self.state {
            NtttcpReceiverState::Idle if self.serves => self.reply(link, END),
            NtttcpReceiverState::Idle if self.options.many && !last => self.reply(link, WAIT),
            NtttcpReceiverState::Idle => self.ask(now, link),
            NtttcpReceiverState::Reserved if self.is_session(link) => self.gather(now),
            NtttcpReceiverState::Gathering => {}
            NtttcpReceiverState::Running => self.reply(link, READY),
            NtttcpReceiverState::Asked => {}
            _ => self.reply(link, END),
        }
    }
}
