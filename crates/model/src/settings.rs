//! Socket settings of a side: requested, granted and effective.

use std::collections::BTreeMap;

use linerate_units::{Bitrate, Bytes, Span};
use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;
use crate::import::{Figure, Quantity};
use crate::spec::SocketKnobs;

/// A setting as requested and as it took effect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effective<T> {
    /// As requested; absent if left to the kernel.
    pub asked: Option<T>,
    /// As it took effect; absent if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<T>,
}

impl<T> Effective<T> {
    /// Whether the setting was left to the kernel.
    pub(crate) const fn is_unasked(&self) -> bool {
        self.asked.is_none()
    }
}

/// A file that one end sent, or to which it wrote what it received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestFile {
    /// Its name, without folders.
    pub name: ForeignText,
    /// Rate at which the disk alone read or wrote it before the test; absent if that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_bps: Option<Bitrate>,
}

/// The settings of the first stream's socket on one side, read back from the kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SideSettings {
    /// Socket buffers as requested.
    #[serde(rename = "window_bytes")]
    pub window: Option<Bytes>,
    /// Send buffer as granted at the start (SO_SNDBUF as read back).
    #[serde(rename = "snd_buf_bytes", skip_serializing_if = "Option::is_none")]
    pub snd_buf: Option<Bytes>,
    /// Receive buffer as granted at the start (SO_RCVBUF as read back).
    #[serde(rename = "rcv_buf_bytes", skip_serializing_if = "Option::is_none")]
    pub rcv_buf: Option<Bytes>,
    /// Segment size in bytes of payload.
    pub mss: Effective<u32>,
    /// Congestion control.
    pub congestion: Effective<ForeignText>,
    /// Type-of-service byte.
    pub tos: Effective<u8>,
    /// Kernel pacing rate (SO_MAX_PACING_RATE).
    pub pacing_bps: Effective<Bitrate>,
    /// Whether a queueing discipline keeps the departure times of datagrams (SO_TXTIME).
    #[serde(skip_serializing_if = "Effective::is_unasked")]
    pub txtime: Effective<bool>,
    /// How the sender passes bytes to the kernel; at the receiver, whether they are copied to the program.
    pub io: Effective<ForeignText>,
    /// Most bytes in the socket that were not sent yet (TCP_NOTSENT_LOWAT).
    #[serde(rename = "notsent_lowat_bytes", skip_serializing_if = "Effective::is_unasked")]
    pub notsent_lowat: Effective<Bytes>,
    /// Whether the first bytes travelled with the SYN (TCP Fast Open).
    #[serde(skip_serializing_if = "Effective::is_unasked")]
    pub fast_open: Effective<bool>,
    /// How long a waiting call polls the network device (SO_BUSY_POLL).
    #[serde(rename = "busy_poll_ns", skip_serializing_if = "Effective::is_unasked")]
    pub busy_poll: Effective<Span>,
    /// Bytes per write, or payload of one datagram.
    #[serde(rename = "length_bytes")]
    pub length: Bytes,
    /// TCP options in effect: `timestamps`, `sack`, `wscale`, `ecn`.
    pub tcp_options: Vec<ForeignText>,
    /// Path MTU known to the kernel.
    #[serde(rename = "pmtu_bytes", skip_serializing_if = "Option::is_none")]
    pub pmtu: Option<u32>,
    /// Datagrams per send call (UDP segmentation offload); 1 means one packet, one call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams_per_call: Option<u32>,
    /// Whether the kernel may merge datagrams on receive (UDP_GRO).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_merging: Option<bool>,
    /// Local address and port of the first stream.
    pub local: ForeignText,
    /// Remote address and port of the first stream.
    pub remote: ForeignText,
    /// Whether MPTCP is in effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mptcp: Option<bool>,
    /// CPU the data threads are pinned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<u32>,
    /// The file that was sent or written instead of generated payload; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<TestFile>,
    /// Settings of a peer that are unknown to this version.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub other: BTreeMap<ForeignText, ForeignText>,
}

impl SideSettings {
    /// How the sender passed bytes to the kernel without copying; absent for the usual copying.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        let used = self.io.effective.as_deref().or(self.io.asked.as_deref());
        used.filter(|method| *method != "copy")
    }

    /// What a foreign program's result reports about the sockets of one end.
    #[must_use]
    pub fn reported(asked: &SocketKnobs, length: Bytes, effective: &[Figure]) -> Self {
        let find = |quantity| effective.iter().find(|figure| figure.quantity == quantity);
        let bytes = |quantity| find(quantity).map(|figure| Bytes::new(figure.value as u64));
        Self {
            window: asked.window,
            snd_buf: bytes(Quantity::SendBuffer),
            rcv_buf: bytes(Quantity::ReceiveBuffer),
            mss: Effective { asked: asked.mss, effective: find(Quantity::Mss).map(|mss| mss.value as u32) },
            tos: Effective { asked: asked.tos, effective: None },
            length,
            ..Self::default()
        }
    }
}
