//! From the connection to the open streams.

use linerate_units::Timestamp;

use super::{CONTROL, FIRST_STREAM, Iperf3Client, Iperf3ClientPhase, RUN, SETUP_TIMEOUT};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::iperf3::params::Params;
use crate::iperf3::plan;
use crate::iperf3::report::{Iperf3Control, Iperf3Stream, Iperf3TestParameters};
use crate::iperf3::test_state::Iperf3OpenTest;
use crate::iperf3::wire::{HELLO, frame, is_hello_reply};
use crate::stand_in::{FlowId, Link, Opened, Output, SystemError};

/// Default block length over TCP, bytes.
const TCP_BLOCK: u64 = 128 << 10;
/// Default datagram length, bytes, if the control connection does not tell one: fits 1500 bytes on most paths.
const UDP_BLOCK: u64 = 1460;
/// Largest datagram payload, bytes.
const MAX_DATAGRAM_BYTES: u32 = 65_507;
/// The errno of an unknown congestion control algorithm.
const ENOENT: i32 = 2;

impl Iperf3Client {
    pub(super) fn connect(&mut self) {
        let opening = self.report.opening();
        self.print(opening);
        let settings = &self.config.settings;
        let mut options = plan::control_options(&settings.common);
        options.connect_timeout = settings.client.connect_timeout;
        let port = settings.common.port;
        self.out.push_back(Output::Connect { link: CONTROL, port, to: None, options });
    }

    pub(super) fn control_opened(&mut self, now: Timestamp, opened: Opened) {
        if self.phase == Iperf3ClientPhase::Connecting {
            self.control = Some(opened);
            self.send(self.cookie.bytes());
            self.enter(Iperf3ClientPhase::Agreeing, Some(now + SETUP_TIMEOUT));
        }
    }

    pub(super) fn not_opened(&mut self, link: Link, reason: &SystemError) {
        let congested = self.config.settings.client.congestion.is_some() && reason.errno == ENOENT;
        let number = match link {
            CONTROL => Iperf3ErrorNumber::CONNECT,
            _ if congested => Iperf3ErrorNumber::CONGESTION,
            _ => Iperf3ErrorNumber::STREAM_CONNECT,
        };
        self.fail(&Iperf3Error::because(number, reason.errno, reason.text.clone()));
    }

    /// The server requests the parameters.
    pub(super) fn agree(&mut self, now: Timestamp) {
        let block = self.block();
        let unix_ms = self.unix_ms(now);
        let token = match &self.config.login {
            None => None,
            Some(login) => match login.token(unix_ms / 1000, &mut self.random) {
                Some(token) => Some(token),
                None => return self.fail(&Iperf3Error::new(Iperf3ErrorNumber::AUTH)),
            },
        };
        let settings = &self.config.settings;
        let params = Params::of(settings, block, token);
        let control = self.control.as_ref();
        let control_connection = Iperf3Control {
            host: settings.host.clone().unwrap_or_default(),
            port: settings.common.port,
            cookie: self.cookie.text(),
            mss: control.and_then(|opened| opened.mss).unwrap_or(0),
            unix_ms,
        };
        let mss = control_connection.mss;
        let text = self.report.connected(&control_connection, Iperf3TestParameters::asked(settings, block));
        let too_long = params.udp && mss > 0 && block > u64::from(mss);
        let message = params.write();
        let words = self.report.message("send_parameters:", &message);
        self.speak(words);
        self.send(frame(&message));
        self.params = Some(params);
        if too_long {
            self.out.push_back(Output::PrintError(format!(
                "warning: UDP block size {block} exceeds TCP MSS {mss}, may result in fragmentation / drops\n"
            )));
        }
        self.print(text);
        self.enter(Iperf3ClientPhase::Agreeing, Some(now + SETUP_TIMEOUT));
    }

    /// The server has accepted the parameters. The streams are opened one after another, because their order
    /// determines their numbers.
    pub(super) fn open_streams(&mut self, now: Timestamp) {
        let Some(params) = &self.params else { return };
        let links: Vec<Link> = (FIRST_STREAM..).map(Link).take(params.streams()).collect();
        let mut numbers = (0..).map(FlowId);
        let groups = plan::groups(params, true, &links, || numbers.next().unwrap_or_default());
        let flows = groups.iter().map(|group| (group.flow, group.direction)).collect();
        let interval = self.config.settings.common.interval;
        let planned = plan::planned(params, flows, RUN, CONTROL, true, interval);
        self.out.push_back(Output::Plan(Box::new(planned)));
        self.open_next(now);
    }

    fn open_next(&mut self, now: Timestamp) {
        let Some(params) = &self.params else { return };
        let at = self.streams.len();
        if at >= params.streams() {
            return self.streams_open(now);
        }
        let common = &self.config.settings.common;
        let unreadable = common.file.as_ref().and_then(|file| file.unreadable.clone());
        if let Some((errno, text)) = unreadable.filter(|_| self.config.settings.is_sending_client()) {
            return self.fail(&Iperf3Error::because(Iperf3ErrorNumber::FILE, errno, text));
        }
        let mut options = plan::located(plan::stream_options(params), common);
        let offset = u16::try_from(at).unwrap_or(0);
        options.local_port = self.config.settings.client.cport.map(|port| port.saturating_add(offset));
        let (link, port) = (link_of(at), common.port);
        let to = self.control.as_ref().and_then(|control| control.remote);
        if options.flow_label.is_some() && to.is_some_and(|to| to.ip().to_canonical().is_ipv4()) {
            return self.fail(&Iperf3Error::new(Iperf3ErrorNumber::FLOW_LABEL));
        }
        self.out.push_back(Output::Connect { link, port, to, options });
        self.enter(Iperf3ClientPhase::Opening, Some(now + SETUP_TIMEOUT));
    }

    pub(super) fn stream_opened(&mut self, now: Timestamp, link: Link, opened: Opened) {
        if self.phase != Iperf3ClientPhase::Opening || link != link_of(self.streams.len()) {
            return;
        }
        let window = self.config.settings.client.window.unwrap_or(0);
        if opened.snd_buf < window || opened.rcv_buf < window {
            return self.fail(&Iperf3Error::new(Iperf3ErrorNumber::SET_BUF_SIZE));
        }
        self.streams.push(opened);
        if self.is_udp() {
            self.out.push_back(Output::Send { link, bytes: HELLO.to_vec() });
            self.enter(Iperf3ClientPhase::Opening, Some(now + SETUP_TIMEOUT));
        } else {
            let bytes = self.cookie.bytes();
            self.out.push_back(Output::Send { link, bytes });
            self.open_next(now);
        }
    }

    /// Handles a datagram on a socket without a flow: the answer to the first datagram, or early data.
    pub(super) fn datagram(&mut self, now: Timestamp, link: Link, bytes: &[u8]) {
        let Some(at) = self.streams.len().checked_sub(1) else { return };
        if self.phase == Iperf3ClientPhase::Opening
            && self.is_udp()
            && link == link_of(at)
            && is_hello_reply(bytes)
        {
            if self.params.as_ref().is_some_and(|params| params.server_sends(at)) {
                // Its data may arrive before the answer on a later stream.
                self.out.push_back(Output::Hold { link });
            }
            self.open_next(now);
        }
    }

    /// All streams are open. Receivers read from now on, because data may arrive before the server's
    /// TEST_RUNNING.
    fn streams_open(&mut self, now: Timestamp) {
        let Some(params) = self.params.clone() else { return };
        let links: Vec<Link> = (0..self.streams.len()).map(link_of).collect();
        let mut numbers = (0..).map(FlowId);
        let groups = plan::groups(&params, true, &links, || numbers.next().unwrap_or_default());
        for (at, opened) in self.streams.iter().enumerate() {
            let (snd_buf, rcv_buf) = opened.unconnected_buffers.unwrap_or((opened.snd_buf, opened.rcv_buf));
            let stream = Iperf3Stream {
                socket: opened.descriptor,
                local: opened.local,
                remote: opened.remote.unwrap_or(opened.local),
                sends: !params.server_sends(at),
                snd_buf,
                rcv_buf,
            };
            let text = self.report.stream(stream);
            if !text.is_empty() {
                self.out.push_back(Output::Print(text));
            }
        }
        let interval = self.config.settings.common.interval;
        self.test = Some(Iperf3OpenTest::new(&params, groups, &self.streams, interval));
        self.start_flows(false);
        self.enter(Iperf3ClientPhase::Ready, Some(now + SETUP_TIMEOUT));
        self.listen(now);
    }

    /// Length of a block or datagram, bytes.
    fn block(&self) -> u64 {
        let client = &self.config.settings.client;
        let fits = self.control.as_ref().and_then(|control| control.mss);
        match client.length {
            Some(length) => length,
            None if !client.udp => TCP_BLOCK,
            None => fits.filter(|mss| (1..=MAX_DATAGRAM_BYTES).contains(mss)).map_or(UDP_BLOCK, u64::from),
        }
    }

    fn unix_ms(&self, now: Timestamp) -> u64 {
        self.config.unix_ms.saturating_add(now.as_ns() / 1_000_000)
    }
}

fn link_of(at: usize) -> Link {
    Link(FIRST_STREAM.saturating_add(u32::try_from(at).unwrap_or(0)))
}
