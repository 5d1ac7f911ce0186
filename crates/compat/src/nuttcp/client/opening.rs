//! The start of a client's test: the control connection, the server's version, and the listeners.

use std::net::SocketAddr;

use linerate_units::{Span, Timestamp};

use super::{
    CONTROL, DATA, ECONNREFUSED, FLOW, MAX_TRIES, NuttcpClient, NuttcpClientPhase, RETRY_DELAY, RUN,
    SERVER_TIMEOUT,
};
use crate::nuttcp::plan::Terms;
use crate::nuttcp::transfer::NuttcpTransfer;
use crate::nuttcp::wire::NuttcpVersion;
use crate::stand_in::{Link, LinkOptions, Opened, Output, SystemError};

impl NuttcpClient {
    pub(super) fn connect(&mut self) {
        self.out.push_back(Output::Connect {
            link: CONTROL,
            port: self.options.control_port,
            to: None,
            options: LinkOptions {
                ipv4: self.options.ipv4,
                ipv6: self.options.ipv6,
                local_port: self.options.control_source_port,
                no_delay: true,
                ..LinkOptions::default()
            },
        });
    }

    pub(super) fn connected(&mut self, now: Timestamp, opened: &Opened) {
        self.control_open = true;
        self.server_address = opened.remote;
        self.request = self.options.request(opened.mss);
        self.phase = NuttcpClientPhase::Greeting;
        self.due = Some(now + SERVER_TIMEOUT);
        self.out.push_back(Output::Send { link: CONTROL, bytes: NuttcpVersion::REPORTED.greeting() });
    }

    /// There is no server; some tests work with a plain ttcp.
    pub(super) fn not_connected(&mut self, now: Timestamp, reason: &SystemError) {
        self.tries += 1;
        if self.options.again && self.tries < MAX_TRIES {
            self.due = Some(now + RETRY_DELAY);
            return;
        }
        if reason.errno == 0 {
            let host = self.options.host.clone();
            return self.fail(&format!("bad hostname or address: {}: {host}", reason.text));
        }
        let needs = [
            (self.options.interval > Span::ZERO, "interval option"),
            (self.options.flip, "flip option"),
            (self.options.udp, "UDP transfers"),
        ];
        let transmits = self.options.transmit;
        if let Some((_, what)) = needs.iter().find(|(asked, _)| *asked && transmits) {
            return self.fail(&format!(
                "connect failed: {}\n{what} only supported for client/server mode",
                reason.text
            ));
        }
        if !transmits || reason.errno != ECONNREFUSED {
            return self.system_error("connect", reason);
        }
        let before = self.prefix(true);
        self.print_error(&format!(
            "{before}Info: attempting to switch to deprecated \"classic\" mode\n\
             {before}Info: will use less reliable transmitter side statistics"
        ));
        self.classic = true;
        self.prepare(now);
    }

    /// Opens the listeners before the request is sent.
    pub(super) fn prepare(&mut self, now: Timestamp) {
        let options = &self.options;
        let data = options.data_host.map(|host| SocketAddr::new(host, 0)).or(self.server_address);
        let terms = Terms {
            window: options.window,
            stdio: options.stdio,
            peer: self.server,
            to: data,
            ipv4: options.ipv4,
            ipv6: options.ipv6,
            affinity: options.affinity,
            idle: options.idle,
            classic: self.classic,
            ..Terms::of(&self.request, options.streams, options.data_port)
        };
        self.phase = NuttcpClientPhase::Preparing;
        self.due = None;
        let mut transfer = NuttcpTransfer::new(terms, DATA, FLOW, RUN);
        transfer.prepare(&mut self.out);
        self.transfer = Some(transfer);
        self.handle_events(now);
    }

    /// All listeners are open.
    pub(super) fn ready(&mut self, now: Timestamp) {
        // A transfer of standard input or output is not a flow, so nothing is archived.
        if let Some(transfer) = self.transfer.as_ref().filter(|transfer| !transfer.terms.stdio) {
            let link = if self.classic { Link(DATA) } else { CONTROL };
            let peer = Some(self.server).filter(|_| !self.classic);
            let planned = transfer.terms.planned(RUN, FLOW, link, peer);
            self.out.push_back(Output::Plan(Box::new(planned)));
            self.planned = true;
        }
        if self.classic {
            self.phase = NuttcpClientPhase::Testing;
            if let Some(transfer) = &mut self.transfer {
                transfer.connect_or_wait(now, Span::ZERO);
            }
            return;
        }
        self.phase = NuttcpClientPhase::Asking;
        self.due = Some(now + SERVER_TIMEOUT);
        self.out.push_back(Output::Send { link: CONTROL, bytes: self.request.encode(self.server) });
    }

    /// Warns about options that a server of an old version does not know.
    pub(super) fn warn_unsupported(&mut self) {
        let options = &self.options;
        let needs = [
            (options.interval > Span::ZERO, "interval", 30_302, "3.3.2"),
            (options.flip, "flip", 30_401, "3.4.1"),
            (options.instantaneous, "instantaneous rate", 30_601, "3.6.1"),
            (options.mss.is_some(), "datamss", 50_201, "5.2.1"),
            (options.tos != 0, "tos", 50_301, "5.3.1"),
            (options.burst > 1 && !options.transmit, "maxburst", 60_207, "6.2.7"),
            (options.jitter > 0, "jitter", 70_001, "7.0.1"),
            (options.one_way_delay > 0, "one-way delay", 70_001, "7.0.1"),
            (options.server_affinity.is_some(), "CPU affinity", 60_206, "6.2.6"),
            (
                options.source_port.is_some() && options.transmit == options.flip,
                "source port",
                70_301,
                "7.3.1",
            ),
        ];
        let before = self.prefix(options.transmit);
        let server = self.server;
        let missing: Vec<String> = needs
            .iter()
            .filter(|(asked, _, since, _)| *asked && server < NuttcpVersion::new(*since))
            .map(|(_, name, _, since)| {
                format!("{before}{name} option not supported by server version {server}, need >= {since}")
            })
            .collect();
        for text in missing {
            self.print_error(&text);
        }
    }
}
