//! The connection with a real broker, nats-server, that is killed, stopped and configured anew.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be prepared fails")]

mod connection;
mod events;
mod garbage;
mod login;
mod nats_server;
mod permissions;
mod tls;
