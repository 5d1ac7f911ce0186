//! Many datagrams in one call, as far as the system has such calls.
//!
//! A batch owns all memory that a call needs and allocates it once.

pub use crate::datagram::Datagram;
pub use crate::system::batch::{RecvBatch, send_segments};

/// Most datagrams per buffer (UDP_MAX_SEGMENTS of Linux 6.9 and later); earlier kernels refuse more than 64.
pub const MAX_SEGMENTS: usize = 128;

/// Largest payload of one call to a UDP socket over IPv4, bytes.
pub const MAX_DATAGRAM: usize = 65_507;
