//! Changes socket options of open connections.

use linerate_compat::stand_in::{Link, LinkOptions};
use linerate_sock::{SockError, SocketOptions, sockopt};

use super::super::driver_event::DriverEvent;
use super::super::endpoint::{opened, socket_options};
use super::{DriverEvents, LinkSocket, Links};

impl Links {
    /// Sets the options of a connection as far as the kernel permits, and reports the resulting settings.
    pub(in crate::stand_in) fn tune(&mut self, link: Link, options: &LinkOptions, events: &mut DriverEvents) {
        let Some(LinkSocket::Connection(connection)) = self.table.get_mut(&link).map(|entry| &mut entry.kind)
        else {
            return;
        };
        // The options are a request of the client. It is served even if the kernel refuses them.
        for refused in try_all(&socket_options(options), &connection.stream) {
            tracing::info!(%refused, "a connection stays as it is");
        }
        connection.keeps_queue_short = options.notsent_lowat.is_some();
        let (local, peer) = (connection.local, Some(connection.peer));
        events.push_back(DriverEvent::Opened { link, opened: opened(&connection.stream, local, peer, None) });
    }
}

/// Sets each option separately, so that a refused one does not prevent the others.
fn try_all(requested: &SocketOptions, stream: &std::net::TcpStream) -> Vec<SockError> {
    let set = [
        requested.snd_buf.map(|bytes| sockopt::set_snd_buf(stream, bytes)),
        requested.rcv_buf.map(|bytes| sockopt::set_rcv_buf(stream, bytes)),
        requested.tos.map(|tos| sockopt::set_tos(stream, tos)),
        requested.congestion.as_deref().map(|name| sockopt::set_congestion(stream, name)),
        requested.no_delay.then(|| sockopt::set_no_delay(stream, true)),
        requested.notsent_lowat.map(|bytes| sockopt::set_notsent_lowat(stream, bytes)),
        requested.user_timeout.map(|timeout| sockopt::set_user_timeout(stream, timeout)),
    ];
    set.into_iter().flatten().filter_map(Result::err).collect()
}
