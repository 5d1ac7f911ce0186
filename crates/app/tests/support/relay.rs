//! A forwarder of TCP connections, which thus blocks UDP and sees the messages of both ends.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::pause;

/// A one-time action when a message passes.
type RelayAction = Box<dyn FnOnce() + Send>;

/// A running forwarder on its own port, closed on drop.
pub(crate) struct Relay {
    pub(crate) port: u16,
    stop: Arc<AtomicBool>,
}

/// The message that triggers the action of a forwarder.
pub(super) struct MessageTrigger {
    mark: Vec<u8>,
    act: Mutex<Option<RelayAction>>,
}

impl MessageTrigger {
    /// A trigger that never matches.
    pub(super) fn nothing() -> Self {
        Self::on("no such message", || {})
    }

    fn on(message: &str, act: impl FnOnce() + Send + 'static) -> Self {
        Self { mark: format!("\"type\":\"{message}\"").into_bytes(), act: Mutex::new(Some(Box::new(act))) }
    }
}

impl Relay {
    /// Forwards to a port of this host.
    pub(crate) fn to(port: u16) -> Self {
        Self::watching(port, "no such message", || {})
    }

    /// Forwards, and calls `act` before the first control message of this type passes.
    pub(crate) fn watching(port: u16, message: &str, act: impl FnOnce() + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let own = listener.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let watch = Arc::new(MessageTrigger::on(message, act));
        let stopped = Arc::clone(&stop);
        std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((near, _)) => join(&near, port, &watch),
                    Err(_) => pause(Duration::from_millis(2)),
                }
            }
        });
        Self { port: own, stop }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Forwards between a connection and a new one; both end when either does.
pub(super) fn join(near: &TcpStream, port: u16, watch: &Arc<MessageTrigger>) {
    let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return };
    near.set_nonblocking(false).unwrap();
    for (from, to) in [(near, &far), (&far, near)] {
        let _ = from.set_nodelay(true);
        let (from, to, watch) = (from.try_clone().unwrap(), to.try_clone().unwrap(), Arc::clone(watch));
        std::thread::spawn(move || carry(from, to, &watch));
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, watch: &MessageTrigger) {
    let mut piece = [0; 16 << 10];
    // The bytes of a message may be split between reads.
    let mut tail = Vec::new();
    loop {
        let count = match from.read(&mut piece) {
            Ok(count @ 1..) => count,
            Ok(_) => {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Err(_) => break,
        };
        tail.extend_from_slice(&piece[..count]);
        if tail.windows(watch.mark.len()).any(|part| part == watch.mark) {
            let act = watch.act.lock().unwrap().take();
            if let Some(act) = act {
                act();
            }
        }
        tail.drain(..tail.len().saturating_sub(watch.mark.len()));
        if to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
