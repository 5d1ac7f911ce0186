//! What `-d` adds to the output: the states and messages of the dialogue.
//!
//! iperf3 also prints every block that it moves. That would be a measurement of the terminal, so it is left out.

use super::{Iperf3Report, OutputText, json};
use crate::iperf3::json::Iperf3Json;
use crate::iperf3::state::Iperf3State;

/// The level from which states are printed.
const STATES: u8 = 3;

/// The state of the dialogue, as iperf3 prints it.
#[derive(Debug)]
pub(super) struct PrintedState(String);

impl Default for PrintedState {
    fn default() -> Self {
        Self("0-Test reset".to_owned())
    }
}

/// Number and name of a state.
fn printed(state: Iperf3State) -> String {
    let name = match state {
        Iperf3State::TestStart => "TEST_START - starting a new test",
        Iperf3State::TestRunning => "TEST_RUNNING",
        Iperf3State::TestEnd => "TEST_END",
        Iperf3State::ParamExchange => "PARAM_EXCHANGE - Client to Server Parameters Exchange",
        Iperf3State::CreateStreams => "CREATE_STREAMS",
        Iperf3State::ServerTerminate => "SERVER_TERMINATE",
        Iperf3State::ClientTerminate => "CLIENT_TERMINATE",
        Iperf3State::ExchangeResults => "EXCHANGE_RESULTS",
        Iperf3State::DisplayResults => "DISPLAY_RESULTS",
        Iperf3State::IperfDone => "IPERF_DONE",
        Iperf3State::AccessDenied => "ACCESS_DENIED - Server is busy",
        Iperf3State::ServerError => "SERVER_ERROR",
    };
    format!("{}-{name}", state.byte().cast_signed())
}

impl Iperf3Report {
    /// The peer has sent a state.
    pub fn received_state(&mut self, state: Iperf3State) -> OutputText {
        let (own, peer) = if self.settings.is_client() { ("client", "Server") } else { ("server", "Client") };
        let (before, now) = (&self.state.0, printed(state));
        let text = format!(
            "Reading new State from the {peer} - current state is {before}\n\
             State change: {own} received and changed State to {now}\n"
        );
        self.state.0 = now;
        self.debug(STATES, &text)
    }

    /// This end has sent a state.
    pub fn sent_state(&mut self, state: Iperf3State) -> OutputText {
        self.change_state(printed(state))
    }

    /// Server: it waits for the next test.
    pub(super) fn idle_state(&mut self) -> OutputText {
        self.change_state("15-IPERF_START - waiting for a new test".to_owned())
    }

    fn change_state(&mut self, now: String) -> OutputText {
        let text = format!("State change: State set to {now} (from {})\n", self.state.0);
        self.state.0 = now;
        self.debug(STATES, &text)
    }

    /// A message of the dialogue was sent or received.
    #[must_use]
    pub fn message(&self, title: &str, bytes: &[u8]) -> OutputText {
        match Iperf3Json::parse(bytes) {
            Some(message) if self.settings.common.debug.is_some() => {
                self.debug(1, &format!("{title}\n{}", json::pretty(&message)))
            }
            _ => OutputText::default(),
        }
    }

    /// Text for developers. With `-J` it goes to standard error, so that the object stays readable.
    fn debug(&self, level: u8, text: &str) -> OutputText {
        if self.settings.common.debug.is_none_or(|wanted| wanted < level) {
            return OutputText::default();
        }
        if self.settings.common.json {
            OutputText { out: String::new(), err: text.to_owned() }
        } else {
            OutputText { out: self.line(text), err: String::new() }
        }
    }
}
