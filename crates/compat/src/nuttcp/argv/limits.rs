//! What the options of a client allow together: ports, streams, lengths, rates.

use linerate_units::Span;

use super::values::checked_port;
use super::{NuttcpArgvReader, NuttcpInvocation, mistake};
use crate::nuttcp::MAX_STREAMS;
use crate::nuttcp::options::{NEIGHBOURS, RateLimit};

impl NuttcpArgvReader {
    /// Checks the options of a client that depend on each other.
    pub(super) fn client_limits(&mut self, control_port: u16) -> Result<(), NuttcpInvocation> {
        let client = &mut self.client;
        if self.streams == 0 {
            return mistake("invalid nstream = 0");
        }
        if self.streams > u64::from(MAX_STREAMS) {
            let text = format!("nstream = {} > MAXSTREAM, set to {MAX_STREAMS}", self.streams);
            self.warnings.push(text);
        }
        client.streams = self.streams.min(u64::from(MAX_STREAMS)) as u16;
        let streams = u32::from(client.streams);
        let port = checked_port(self.port_given, "port")?;
        if u32::from(port) + streams > 65_536 {
            return mistake(format!("invalid port/nstream = {port}/{streams}"));
        }
        client.data_port = port;
        if (u32::from(port)..u32::from(port) + streams).contains(&u32::from(control_port)) {
            return mistake(format!("ctlport = {control_port} overlaps port/nstream = {port}/{streams}"));
        }
        let source = |port: Option<u64>, name: &str| port.map(|port| checked_port(port, name)).transpose();
        client.source_port = source(self.sources[0], "source port")?;
        client.control_source_port = source(self.sources[1], "source control port")?;
        self.length_limits()?;
        self.rate_limits()
    }

    /// Checks the length of a block, and what has no room in it.
    fn length_limits(&mut self) -> Result<(), NuttcpInvocation> {
        let client = &mut self.client;
        let longest = if client.udp { 65_507 } else { 64 << 20 };
        match client.length {
            Some(0) => return mistake("invalid buflen = 0"),
            Some(length @ 1..=4) if client.udp => {
                self.warnings.push(format!("UDP buflen = {length} < 5, set to 5"));
                client.length = Some(5);
            }
            Some(length) if length > longest => {
                let name = if client.udp { "UDP buflen" } else { "buflen" };
                let limit = if client.udp { "MAXUDPBUFLEN" } else { "the limit" };
                self.warnings.push(format!("{name} = {length} > {limit}, set to {longest}"));
                client.length = Some(longest);
            }
            _ => {}
        }
        let short = |limit: u64| client.length.is_some_and(|length| length < limit);
        let unable = [
            (client.udp && client.interval > Span::ZERO && short(32), "print interval loss information", 32),
            (client.jitter & NEIGHBOURS != 0 && short(32), "check out of order when calculating jitter", 32),
            (client.udp && client.one_way_delay > 0 && short(16), "calculate one-way delay", 16),
        ];
        for (_, what, limit) in unable.into_iter().filter(|(wanted, ..)| *wanted) {
            self.warnings.push(format!("Unable to {what} if UDP buflen < {limit}"));
        }
        if !client.udp && client.transmit && short(32) {
            let text = "Unable to print retransmission information if TCP buflen < 32";
            self.warnings.push(text.to_owned());
        }
        if client.stdio && (client.udp || client.streams > 1) {
            return mistake("nuttcp: -s works only with one TCP stream; remove -u and -N");
        }
        Ok(())
    }

    /// Checks the rate, and the options that depend on it or on the time.
    fn rate_limits(&mut self) -> Result<(), NuttcpInvocation> {
        let client = &mut self.client;
        client.instantaneous = self.instantaneous.unwrap_or(client.jitter > 0);
        if client.jitter > 0 && client.rate == Some(RateLimit::Unlimited) {
            return mistake("jitter option not supported for unlimited rate");
        }
        if client.jitter > 0 && !client.instantaneous {
            return mistake("jitter option requires \"-Ri\" instantaneous rate limit option");
        }
        if client.flip && client.udp {
            return mistake("flip option not supported for UDP");
        }
        let time = client.request(None).timeout;
        if time > Span::ZERO && client.interval >= time {
            self.warnings.push(format!(
                "ignoring interval={:.6} which is greater than or equal timeout={:.6}",
                client.interval.as_secs_f64(),
                time.as_secs_f64()
            ));
            client.interval = Span::ZERO;
        }
        Ok(())
    }
}
